#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <future>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

std::string location(int line) { return std::string("checkpoint_test.cpp:") + std::to_string(line); }

Tensor values() { return tensor({0.3, -0.7, 1.6, 2.4}); }

// A block with a product, dropout, and a shared parameter that is used twice.
struct Block : nn::Module {
  nn::Parameter W, b;
  explicit Block(std::int64_t size)
      : W(*this, "W", {size, size}, nn::normal(0, 0.3)), b(*this, "b", {size}, nn::normal(0, 0.3)) {}
  Tensor operator()(const Tensor& x) const {
    Tensor h = dropout(tanh(matmul(x, W) + b), {.probability = 0.3});
    return gelu(matmul(h, W)) + x * b;
  }
};

// The gradients of all parameters and of x after a backward of a chain of blocks, each computed by `run`.
using Run = std::function<Tensor(const Block&, const Tensor&)>;
std::vector<Tensor> gradients(const std::vector<Block>& blocks, const Tensor& x, int rounds, const Run& run) {
  manual_seed(7);
  Tape tape;
  tape.watch(x);
  Tensor h = x;
  for (int round = 0; round < rounds; ++round)
    for (const Block& block : blocks) h = run(block, h);
  std::vector<Tensor> sources{x};
  for (const Block& block : blocks)
    for (const Tensor& parameter : block.parameters()) sources.push_back(parameter);
  std::vector<Tensor> found = tape.gradient(sum(h * h), sources);
  found.push_back(randn({3}));
  return found;
}

void check_equal_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].to_vector<float>() == b[i].to_vector<float>());
}

Tensor checkpointed(const Block& block, const Tensor& x) {
  return checkpoint([&block](const Tensor& x) { return block(x); }, x);
}

// The maximum of bytes that tensors of this thread hold while f runs, minus those before.
std::size_t peak_of(const std::function<void()>& f) {
  std::size_t before = memory_statistics().live_bytes, most = before;
  debug::Listen listen([&](const debug::OpEvent&) { most = std::max(most, memory_statistics().live_bytes); });
  f();
  return most - before;
}

// Together with their blocks' headers these exactly fit a size class of the allocator.
constexpr std::int64_t elements = (1 << 14) - 64;
constexpr std::size_t bytes = 1 << 16;

// A chain of products with a parameter, `steps` long.
Tensor chain(const Tensor& h, const Tensor& w, int steps) {
  Tensor y = h;
  for (int i = 0; i < steps; ++i) y = y * w;
  return y;
}

}  // namespace

TEST_CASE("gradients through checkpoints are those without to the bit, with dropout and shared parameters") {
  manual_seed(1);
  std::vector<Block> blocks;
  for (int i = 0; i < 4; ++i) blocks.emplace_back(8);
  Tensor x = randn({5, 8});
  auto plain = gradients(blocks, x, 3, [](const Block& block, const Tensor& h) { return block(h); });
  check_equal_bits(plain, gradients(blocks, x, 3, checkpointed));
  // Nested three deep.
  check_equal_bits(plain, gradients(blocks, x, 3, [](const Block& block, const Tensor& h) {
                     return checkpoint(
                         [&block](const Tensor& h) {
                           return checkpoint([&block](const Tensor& h) { return checkpointed(block, h); }, h);
                         },
                         h);
                   }));
}

TEST_CASE("a captured tensor may be an input of a checkpoint within that does not use it") {
  Tape tape;
  Tensor x = values(), c = values();
  tape.watch(x);
  tape.watch(c);
  Tensor y = checkpoint(
      [&c](const Tensor& x) { return checkpoint([](const Tensor& x, const Tensor&) { return x * x; }, x, c); }, x);
  CHECK(tape.gradient(sum(y), x).to_vector<double>() == (2 * x).to_vector<double>());
}

TEST_CASE("a checkpoint within another is held to the same from the start") {
  Tape tape;
  Tensor x = values(), c = values();
  tape.watch(x);
  tape.watch(c);
  auto overwrites = [](const Tensor& x) {
    return checkpoint(
        [](const Tensor& x) {
          Tensor y = x;
          y += 1;
          return y;
        },
        x * 2);
  };
  CHECK_THAT(error_of<TapeError>([&] { checkpoint(overwrites, x); }), contains("overwrote its input 0"));
  auto returns = [&c](const Tensor&) { return checkpoint([](const Tensor& c) { return c; }, c); };
  CHECK(tape.gradient(sum(checkpoint(returns, x)), c).to_vector<double>() == std::vector<double>(4, 1));
}

TEST_CASE("backward through checkpoints adds into grad what it does without, in halves too") {
  manual_seed(1);
  for (DType dtype : {f32, bf16}) {
    Tensor w = randn({6, 6}, {.dtype = dtype}).requires_grad(), x = randn({4, 6}, {.dtype = dtype});
    auto train = [&](bool keeps) {
      w.set_grad({});
      Tape tape;
      Tensor h = x;
      auto step = [&w](const Tensor& h) { return tanh(matmul(tanh(matmul(h, w)), w)); };
      for (int i = 0; i < 3; ++i) h = keeps ? step(h) : checkpoint(step, h);
      tape.backward(sum(h));
      return to(w.grad(), f32).to_vector<float>();
    };
    CHECK(train(true) == train(false));
  }
}

TEST_CASE("tracked tensors that a checkpoint's function captures get their gradients") {
  Tensor x = values(), w = values().requires_grad();
  auto function = [&](std::span<const Tensor> in) {
    Tensor h = in[0] * in[1];
    auto f = [=](const Tensor& x) { return sin(x * h) * in[1] + stop_gradient(h); };
    return sum(checkpoint(f, h * in[0])) + sum(h);
  };
  CHECK(debug::gradcheck(
            [](std::span<const Tensor> in) {
              Tensor h = in[0] * in[1];
              return sum(checkpoint([=](const Tensor& x) { return sin(x * h) * in[1]; }, h * in[0])) + sum(h);
            },
            {x, values()})
            .agrees);
  Tape tape;
  tape.watch(x);
  std::vector<Tensor> both{x, w};
  Tensor y = function(both);
  auto [gx, gw] = tape.gradient(y, x, w);
  tape.watch(x);
  Tensor h = x * w;
  Tensor plain = sum(sin(h * x * h) * w + stop_gradient(h)) + sum(h);
  auto [ex, ew] = tape.gradient(plain, x, w);
  CHECK(max(abs(gx - ex)).item() < 1e-12);
  CHECK(max(abs(gw - ew)).item() < 1e-12);
}

TEST_CASE("checkpoints have second and third derivatives, and an input computed from a captured tensor counts once") {
  auto function = [](std::span<const Tensor> in) {
    Tensor h = in[0] * in[1];
    return sum(checkpoint([=](const Tensor& x) { return sin(x * h) * in[1]; }, h * in[0]));
  };
  Tensor half = values() * 0.5;
  CHECK(debug::gradcheck(function, {half, half + 0.1}).agrees);
  CHECK(debug::gradgradcheck(function, {half, half + 0.1}).agrees);
  for (bool keeps : {true, false}) {
    Tensor x = full({}, 0.4, {.dtype = f64});
    Tape a;
    a.watch(x);
    auto f = [&x](const Tensor& h) { return exp(h * 2) * x; };
    Tensor second;
    {
      Tape b;
      Tensor first;
      {
        Tape c;
        first = c.gradient(keeps ? f(x) : checkpoint(f, x), x);
      }
      second = b.gradient(first, x);
    }
    double e = std::exp(0.8);
    CHECK(second.item() == Approx(e * (4 * 0.4 + 4)));
    CHECK(a.gradient(second, x).item() == Approx(e * (8 * 0.4 + 12)));
  }
}

TEST_CASE("second derivatives run through nested checkpoints with dropout") {
  auto penalty = [](const Block& block, const Tensor& x, bool keeps) {
    manual_seed(3);
    Tape outer;
    Tensor g;
    {
      Tape inner;
      inner.watch(x);
      auto f = [&block](const Tensor& h) { return checkpointed(block, h); };
      g = inner.gradient(sum(keeps ? block(x) : checkpoint(f, x)), x);
    }
    return outer.gradient(sum(square(g)), block.W);
  };
  manual_seed(1);
  Block block(6);
  Tensor x = randn({4, 6});
  CHECK(max(abs(penalty(block, x, true) - penalty(block, x, false))).item() < 1e-5);
}

TEST_CASE("several results, of which some are used, and an input that is returned") {
  auto function = [](std::span<const Tensor> in) {
    auto [a, b, c] = checkpoint(
        [](const Tensor& x, const Tensor& y) {
          return std::array{sin(x) * y, x, exp(y)};
        },
        in[0], in[1]);
    return sum(a * b) + sum(b);
  };
  CHECK(debug::gradcheck(function, {values(), values() * 2}).agrees);
  CHECK(debug::gradgradcheck(function, {values(), values() * 2}).agrees);
}

TEST_CASE("the same tensor may be given twice, and captured as well") {
  auto function = [](std::span<const Tensor> in) {
    return sum(checkpoint([=](const Tensor& a, const Tensor& b) { return a * exp(b) * in[0]; }, in[0], in[0]));
  };
  CHECK(debug::gradcheck(function, {values()}).agrees);
  CHECK(debug::gradgradcheck(function, {values()}).agrees);
}

TEST_CASE("a checkpoint leaves one entry, and nothing where nothing is recorded") {
  Tensor x = values(), w = values().requires_grad();
  auto f = [&w](const Tensor& x) { return sin(x * w) * x; };
  std::vector<double> expected = f(x).to_vector<double>();
  CHECK(checkpoint(f, x).to_vector<double>() == expected);
  Tape tape;
  int line = __LINE__ + 1;
  Tensor y = checkpoint(f, x);
  CHECK(y.to_vector<double>() == expected);
  CHECK(tape.size() == 1);
  CHECK_THAT(to_string(y.made_at()), contains(location(line)));
  Tensor untracked = checkpoint([](const Tensor& x) { return sin(x); }, x);
  CHECK(tape.size() == 1);
  {
    NoRecord pause;
    CHECK(checkpoint(f, x).to_vector<double>() == expected);
  }
  tape.backward(sum(y));
  CHECK(untracked.numel() == 4);
  CHECK(tape.size() == 0);
}

TEST_CASE("a tape may be opened inside a checkpoint") {
  auto function = [](std::span<const Tensor> in) {
    auto slope = [=](const Tensor& x) {
      Tape tape;
      tape.watch(x);
      return tape.gradient(sum(sin(x * in[1])), x);
    };
    return sum(square(checkpoint(slope, in[0])));
  };
  CHECK(debug::gradcheck(function, {values(), values() * 2}).agrees);
}

TEST_CASE("a tape counts what it holds inside a checkpoint, too") {
  Tape tape;
  Tensor x = values();
  tape.watch(x);
  Tensor h = chain(x, x, 100);
  std::size_t size = tape.size(), held = tape.bytes(), capacity = tape.capacity();
  checkpoint(
      [&](const Tensor& h) {
        CHECK(tape.size() == size);
        CHECK(tape.bytes() == held);
        CHECK(tape.peak_bytes() == held);
        CHECK(tape.capacity() == capacity);
        return h * h;
      },
      h);
}

TEST_CASE("a tape inside a checkpoint differentiates by a captured tensor that nobody outside asks for") {
  Tensor x = values(), w = values().requires_grad();
  auto f = [&w](const Tensor& x) {
    Tape tape;
    return x * tape.gradient(sum(w * w * w), w);
  };
  Tape tape;
  tape.watch(x);
  Tensor y = checkpoint(f, x);
  CHECK(tape.gradient(sum(y), x).to_vector<double>() == f(ones_like(x)).to_vector<double>());
}

TEST_CASE("derivatives inside a checkpoint may be taken at a captured tensor") {
  Tape tape;
  Tensor x = tensor<double>({0.5, 0.75, 1.5, 2.5});  // the products are exact on every instruction set
  tape.watch(x);
  Tensor h = x * x;
  auto f = [&h](const Tensor& x) { return vjp([](const Tensor& h) { return h * h; }, h, x).product; };
  Tensor y = sum(f(x)), again = sum(checkpoint(f, x));
  CHECK(tape.gradient(y + again, x).to_vector<double>() == (12 * x * x).to_vector<double>());
}

TEST_CASE("checkpoints and custom gradients may contain each other") {
  auto cube = [](const Tensor& x) {
    return custom_gradient([](const Tensor& x) { return x * x * x; },
                           [](const Tensor& dy, const Tensor& x) { return 3 * dy * x * x; }, x);
  };
  auto outside = [&](std::span<const Tensor> in) {
    return sum(checkpoint([=](const Tensor& x) { return cube(sin(x)) * in[1]; }, in[0]));
  };
  auto inside = [&](std::span<const Tensor> in) {
    return sum(
        custom_gradient([](const Tensor& x) { return checkpoint([](const Tensor& x) { return sin(x) * 2; }, x); },
                        [](const Tensor& dy, const Tensor& x) {
                          return dy * checkpoint([](const Tensor& x) { return cos(x) * 2; }, x);
                        },
                        in[0] * in[1]));
  };
  for (const debug::Differentiable& function : {debug::Differentiable(outside), debug::Differentiable(inside)}) {
    CHECK(debug::gradcheck(function, {values(), values() * 2}).agrees);
    CHECK(debug::gradgradcheck(function, {values(), values() * 2}).agrees);
  }
}

TEST_CASE("a checkpoint on a persistent tape can be asked for several times, and by a part of its inputs") {
  Tensor x = values(), w = values().requires_grad();
  Tape tape({.persistent = true});
  tape.watch(x);
  Tensor y = sum(checkpoint([&](const Tensor& x) { return sin(x * w) * w; }, x));
  auto [gx, gw] = tape.gradient(y, x, w);
  CHECK(tape.gradient(y, w).to_vector<double>() == gw.to_vector<double>());
  CHECK(tape.gradient(y, x).to_vector<double>() == gx.to_vector<double>());
}

TEST_CASE("a checkpoint's function may overwrite what it has made, and give parts names") {
  auto f = [](const Tensor& x, const Tensor& w) {
    Tensor y = x * w;
    mul_(y, w);
    y(slice(0, 2)) = sin(x(slice(2, 4)));
    return add_(y, x);
  };
  auto function = [f](std::span<const Tensor> in) { return sum(square(checkpoint(f, in[0], in[1]))); };
  CHECK(debug::gradcheck(function, {values(), values() + 0.1}).agrees);
  CHECK(debug::gradgradcheck(function, {values(), values() + 0.1}).agrees);
}

TEST_CASE("threads run checkpoints over shared parameters") {
  Tensor w = values().requires_grad(), x = values();
  auto train = [&] {
    Tape tape;
    Tensor h = x;
    for (int i = 0; i < 5; ++i) h = checkpoint([&w](const Tensor& h) { return tanh(h * w) + w; }, h);
    tape.backward(sum(h));
  };
  train();
  Tensor once = w.grad();
  std::vector<std::future<void>> threads;
  for (int i = 0; i < 3; ++i) threads.push_back(std::async(std::launch::async, train));
  for (std::future<void>& thread : threads) thread.get();
  CHECK(max(abs(w.grad() - 4 * once)).item() < 1e-12);
}

TEST_CASE("a parameter that a checkpoint used is a plain parameter afterwards") {
  Tensor w = values().requires_grad(), x = values();
  Tape tape({.persistent = true});
  Tensor before = w * x;
  Tensor y = checkpoint([&w](const Tensor& x) { return x * w * w; }, x);
  Tensor loss = sum(y * before + w);
  Tensor g = tape.gradient(loss, w);
  Tensor after = tape.gradient(sum(before * w), w);
  for (int i = 0; i < 4; ++i) {
    double v = values().to_vector<double>()[static_cast<std::size_t>(i)];
    CHECK(g.to_vector<double>()[static_cast<std::size_t>(i)] == Approx(3 * v * v * v * v + 1));
    CHECK(after.to_vector<double>()[static_cast<std::size_t>(i)] == Approx(2 * v * v));
  }
}

TEST_CASE("what a checkpoint's function hands out on the side belongs to no tape") {
  Tensor w = values().requires_grad(), x = values(), aside;
  Tape tape;
  Tensor y = checkpoint([&](const Tensor& x) { return (aside = x * w) * 2; }, x);
  CHECK(sum(aside).item() == Approx(sum(x * x).item()));
  tape.backward(sum(y));
  CHECK_THAT(error_of<TapeError>([&] { aside* w; }), contains("belongs to a tape that has finished"));
}

TEST_CASE("an embedding inside a checkpoint has its gradient") {
  manual_seed(1);
  nn::Embedding table(10, 4);
  Tensor rows = tensor({1L, 7L, 1L}), x = randn({3, 4});
  auto train = [&](bool keeps) {
    table.table.set_grad({});
    Tape tape;
    auto f = [&](const Tensor& x) { return table(rows) * x; };
    Tensor h = table(rows);
    tape.backward(sum(keeps ? f(h) : checkpoint(f, h)));
    return table.table.grad();
  };
  CHECK(max(abs(train(true) - train(false))).item() == 0);
}

TEST_CASE("a table whose rows are read by one op and multiplied in checkpoints before counts each use once") {
  for (DType dtype : {f64, f16}) {
    Tensor table = to(randn({8, 8}, {.dtype = f64}) * 0.3, dtype), x = ones({2, 8}, {.dtype = dtype});
    auto gradient = [&](bool keeps) {
      Tape tape;
      tape.watch(table);
      auto f = [&table](const Tensor& x) { return tanh(matmul(x, table)); };
      Tensor h = keeps ? f(f(x)) : checkpoint(f, checkpoint(f, x));
      Tensor rows = embedding(table, tensor({1L, 7L, 1L}), {.row_gradient = true});
      return to(tape.gradient(sum(h) + sum(rows * rows), table), f64);
    };
    CHECK(max(abs(gradient(true) - gradient(false))).item() < (dtype == f64 ? 1e-14 : 0.01));
  }
}

TEST_CASE("a table's gradient by rows, from inside a checkpoint and from around it, is that without, by rows still") {
  manual_seed(1);
  for (DType dtype : {DType::f32, DType::f16}) {
    Tensor table = to(randn({10, 4}), dtype).requires_grad(), rows = tensor({1L, 7L, 1L});
    auto train = [&](bool keeps, bool uses_all) {
      table.set_grad({});
      Tape tape;
      auto look_up = [&] { return embedding(table, rows, {.row_gradient = true}); };
      auto f = [&](const Tensor& x) { return look_up() * x + (uses_all ? mean(table) : mean(look_up())); };
      Tensor h = look_up();
      for (int step = 0; step < 3; ++step) h = (keeps ? f(h) : checkpoint(f, h)) * look_up();
      tape.backward(sum(h));
      CHECK(table.row_grad().defined() == !uses_all);
      return to(table.grad(), DType::f32);
    };
    for (bool uses_all : {false, true})
      CHECK(train(true, uses_all).to_vector<float>() == train(false, uses_all).to_vector<float>());
  }
}

TEST_CASE("a checkpoint's second derivative passes through no number that the first does not") {
  Tensor x = to(tensor({300.f, 300.f}), DType::f16), w = ones_like(x);
  Tape outer;
  outer.watch(x);
  outer.watch(w);
  auto scope = debug::detect_anomaly();
  Tape inner;
  Tensor y = checkpoint([](const Tensor& x, const Tensor& w) { return x * w; }, x, w);
  Tensor dx = inner.gradient(y, x, {.seed = full_like(x, 300)});
  CHECK(to(outer.gradient(sum(dx), w), DType::f32).to_vector<float>() == std::vector<float>{300, 300});
}

TEST_CASE("checkpoints keep their inputs only, and nested ones the root of that") {
  constexpr int segments = 64, steps = 8;
  Tensor w = full({elements}, 1.001).requires_grad(), x = full({elements}, 1.0);
  auto segment = [&w](const Tensor& h) { return chain(h, w, steps); };
  auto peak = [&](auto step, int count) {
    w.set_grad({});
    return peak_of([&] {
      Tape tape;
      Tensor h = x;
      for (int i = 0; i < count; ++i) h = step(h);
      tape.backward(sum(h));
    });
  };
  std::size_t plain = peak(segment, segments);
  std::size_t flat = peak([&](const Tensor& h) { return checkpoint(segment, h); }, segments);
  auto eight = [segment](const Tensor& h) {
    Tensor y = h;
    for (int i = 0; i < 8; ++i) y = checkpoint(segment, y);
    return y;
  };
  std::size_t nested = peak([&](const Tensor& h) { return checkpoint(eight, h); }, segments / 8);
  INFO(plain / bytes << " " << flat / bytes << " " << nested / bytes);
  CHECK(plain >= segments * steps * bytes);
  CHECK(flat <= (segments + steps + 8) * bytes);
  CHECK(nested <= (8 + 8 + steps + 8) * bytes);
  std::vector<float> found = w.grad().to_vector<float>();
  peak(segment, segments);
  CHECK(found == w.grad().to_vector<float>());
}

TEST_CASE("a second derivative keeps the inputs of checkpoints only") {
  constexpr int segments = 16, steps = 8;
  Tensor x = full({elements}, 1.0);
  auto segment = [](const Tensor& h) {
    Tensor y = h;
    for (int i = 0; i < steps; ++i) y = tanh(y);
    return y;
  };
  auto peak = [&](auto step) {
    return peak_of([&] {
      Tape outer;
      outer.watch(x);
      Tensor g;
      {
        Tape inner;
        Tensor h = x;
        for (int i = 0; i < segments; ++i) h = step(h);
        g = inner.gradient(sum(h * h), x);
      }
      outer.gradient(sum(g), x);
    });
  };
  std::size_t plain = peak(segment), kept = peak([&](const Tensor& h) { return checkpoint(segment, h); });
  INFO(plain / bytes << " " << kept / bytes);
  CHECK(kept * 2 < plain);
}

TEST_CASE("a captured tensor that another thread made, and this one watches, gets its gradient") {
  Tensor w = full({3}, 2.0, {.dtype = f64}), x = full({3}, 5.0, {.dtype = f64});
  std::async(std::launch::async, [&] {
    Tape tape;
    tape.watch(w);
    tape.watch(x);
    Tensor y = checkpoint([w](const Tensor& u) { return u * w; }, x);
    std::vector<Tensor> found = tape.gradient(sum(y + w), {x, w});
    CHECK(found[0].to_vector<double>() == std::vector<double>(3, 2.0));
    CHECK(found[1].to_vector<double>() == std::vector<double>(3, 6.0));
  }).get();
}
