#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

using Loss = std::function<Tensor()>;

// Gradients of a loss by the sources, with deferred or immediate products, and the number of calls of each op.
struct Found {
  std::vector<Tensor> gradients;
  std::map<std::string, int> ops;
};

Found differentiate(const Loss& loss, const std::vector<Tensor>& sources, bool deferred) {
  Found found;
  Tape tape({.deferred_products = deferred});
  for (const Tensor& source : sources) tape.watch(source);
  Tensor target = loss();
  debug::Listen listen([&](const debug::OpEvent& event) { ++found.ops[event.op]; });
  found.gradients = tape.gradient(target, sources);
  return found;
}

double distance(const Tensor& a, const Tensor& b) {
  NoRecord pause;
  Tensor x = to(a, f64), y = to(b, f64);
  return max(abs(x - y)).item() / std::max(1e-300, max(abs(y)).item());
}

// Sums in another order differ by their roundings, of which each product has fewer than a hundred here, and each total
// no more than two hundred. Halves round each product and the total once more.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f64: return 300 * 0x1p-53;
    case DType::f32: return 300 * 0x1p-24;
    case DType::f16: return 8 * 0x1p-11;
    default: return 8 * 0x1p-8;
  }
}

void check_same(const Loss& loss, const std::vector<Tensor>& sources) {
  Found later = differentiate(loss, sources, true), at_once = differentiate(loss, sources, false);
  CHECK(later.ops["append_rows"] > 0);
  CHECK(at_once.ops["append_rows"] == 0);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    CAPTURE(i);
    CHECK(later.gradients[i].dtype() == sources[i].dtype());
    CHECK(distance(later.gradients[i], at_once.gradients[i]) <= tolerance(sources[i].dtype()));
  }
}

Tensor normal(const Shape& shape, DType dtype) { return to(randn(shape, {.dtype = f64}) * 0.3, dtype); }

}  // namespace

TEST_CASE("the gradient of a weight used at every step is the same from one product as from many") {
  for (DType dtype : {f32, f64, bf16, f16})
    for (std::int64_t rows : {1, 2, 4}) {
      CAPTURE(name_of(dtype), rows);
      Tensor w = normal({130, 130}, dtype) * 0.2, u = normal({40, 130}, dtype) * 0.2, x = normal({6, rows, 40}, dtype);
      check_same(
          [&] {
            Tensor h = zeros({rows, 130}, {.dtype = dtype});
            for (int t = 0; t < 6; ++t) h = tanh(matmul(h, w) + matmul(x(t), u));
            return sum(h);
          },
          {w, u});
    }
}

TEST_CASE("a weight on the left of columns is deferred, too") {
  for (DType dtype : {f32, f64}) {
    Tensor w = normal({100, 100}, dtype) * 0.3, x = normal({100, 2}, dtype), v = normal({100}, dtype);
    check_same(
        [&] {
          Tensor h = x;
          for (int t = 0; t < 5; ++t) h = tanh(matmul(w, h));
          return sum(h) + sum(matmul(w, v));
        },
        {w, x});
  }
}

TEST_CASE("one product is formed for a weight, however often it was used") {
  Tensor w = normal({100, 100}, f32), x = normal({2, 100}, f32);
  auto loss = [&] {
    Tensor h = x;
    for (int t = 0; t < 50; ++t) h = tanh(matmul(h, w));
    return sum(h);
  };
  Found found = differentiate(loss, {w}, true);
  CHECK(found.ops["append_rows"] >= 50);
  CHECK(found.ops["append_rows"] < 60);
  // One product for w, and fifty for the states.
  CHECK(found.ops["matmul"] <= 51);
  CHECK(found.ops["accumulate_transposed_product"] == 0);
}

TEST_CASE("many rows are multiplied at once, into the sum") {
  Tensor w = normal({8, 8}, f32), x = normal({100, 8}, f32);
  auto loss = [&] { return sum(tanh(matmul(tanh(matmul(x, w)), w))); };
  Found found = differentiate(loss, {w}, true);
  CHECK(found.ops["append_rows"] == 0);
  CHECK(found.ops["accumulate_transposed_product"] == 1);
  CHECK(distance(found.gradients[0], differentiate(loss, {w}, false).gradients[0]) == 0);
}

TEST_CASE("a computed weight gets its products before its own gradient is computed") {
  Tensor w = normal({100, 100}, f64), x = normal({2, 100}, f64), scale = full({}, 0.7, {.dtype = f64});
  check_same(
      [&] {
        Tensor normalised = w * scale / sqrt(sum(square(w))), transposed = transpose(normalised);
        Tensor h = x;
        for (int t = 0; t < 7; ++t) h = tanh(matmul(matmul(h, normalised), transposed));
        return sum(h) + sum(normalised);
      },
      {w, scale, x});
}

TEST_CASE("a weight may be a source, a parameter and an operand of other ops at the same time") {
  Tensor w = normal({80, 80}, f64) * 0.3, x = normal({1, 80}, f64);
  check_same([&] { return sum(matmul(matmul(x, w), w) + sum(w * w) + matmul(matmul(x, w * 2), w)); }, {w});
  Tensor p = normal({80, 80}, f64).requires_grad();
  Tape tape;
  tape.backward(sum(matmul(matmul(x, p), p)));
  Tensor once = p.grad();
  tape.backward(sum(matmul(matmul(x, p), p)));
  CHECK(distance(p.grad(), once * 2) <= tolerance(f64));
}

TEST_CASE("what waits is bounded, and what was full is added to") {
  // 30 rows of 2 × 2048 f64 are one megabyte.
  Tensor w = normal({2048, 2048}, f64) * 0.01, x = normal({30, 2048}, f64);
  std::size_t before = memory_statistics().live_bytes, most = 0;
  Found later;
  {
    Tape tape;
    tape.watch(w);
    Tensor h = x;
    for (int t = 0; t < 8; ++t) h = tanh(matmul(h, w));
    Tensor target = sum(h);
    h.reset();
    before = memory_statistics().live_bytes;
    debug::Listen listen([&](const debug::OpEvent& event) {
      ++later.ops[event.op];
      most = std::max(most, memory_statistics().live_bytes);
    });
    later.gradients = {tape.gradient(target, w)};
  }
  CHECK(later.ops["accumulate_transposed_product"] > 0);
  // The gradient of w is 32 MB itself; deferred products are computed from 4 MB on, in a panel of up to
  // twice the size, while the one before is still there as its rows move: 12 at most. The gradients of two states and a transposed product's operand are 1 MB each.
  CHECK(most - before < std::size_t{50} << 20);
  auto loss = [&] {
    Tensor h = x;
    for (int t = 0; t < 8; ++t) h = tanh(matmul(h, w));
    return sum(h);
  };
  CHECK(distance(later.gradients[0], differentiate(loss, {w}, false).gradients[0]) <= 10 * tolerance(f64));
}

TEST_CASE("nothing is deferred while an outer tape records, and second derivatives are right") {
  Tensor w = normal({3, 3}, f64), x = normal({2, 3}, f64);
  auto network = [&](std::span<const Tensor> in) {
    Tensor h = in[1];
    for (int t = 0; t < 3; ++t) h = tanh(matmul(h, in[0]));
    return h;
  };
  auto first = debug::gradcheck(network, {w, x}), second = debug::gradgradcheck(network, {w, x});
  INFO(first.text << "; " << second.text);
  CHECK(first.agrees);
  CHECK(second.agrees);
  Tensor large = normal({80, 80}, f64), row = normal({1, 80}, f64);
  Tape outer;
  outer.watch(large);
  int deferred = 0;
  debug::Listen listen([&](const debug::OpEvent& event) { deferred += std::string(event.op) == "append_rows"; });
  Tape inner;
  inner.gradient(sum(matmul(matmul(row, large), large)), large);
  CHECK(deferred == 0);
}

TEST_CASE("operands that were overwritten are found out before they are deferred") {
  Tensor w = normal({80, 80}, f32).requires_grad(), x = normal({1, 80}, f32);
  Tape tape;
  Tensor h = tanh(matmul(matmul(x, w), w));
  x.write<float>()[0] = 7;
  CHECK_THAT(error_of<TapeError>([&] { tape.backward(sum(h)); }), contains("overwritten at"));
  CHECK_FALSE(w.grad().defined());
  tape.backward(sum(matmul(matmul(x, w), w)));
  CHECK(w.grad().defined());
}

TEST_CASE("random trees of products give the same gradients deferred and at once") {
  for (int seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    manual_seed(static_cast<std::uint64_t>(seed));
    std::vector<Tensor> weights = {normal({70, 70}, f64) * 0.3, normal({70, 70}, f64) * 0.3,
                                   normal({70, 70}, f64) * 0.3};
    std::vector<Tensor> leaves;
    for (int i = 0; i < 6; ++i) leaves.push_back(normal({1 + i % 3 * 31, 70}, f64));
    std::vector<std::int64_t> draws = randint(0, 1000, {64}).to_vector<std::int64_t>();
    std::size_t next = 0;
    auto draw = [&](std::int64_t below) { return draws[next++ % draws.size()] % below; };
    std::function<Tensor(int)> tree = [&](int depth) -> Tensor {
      if (depth == 0) return leaves[static_cast<std::size_t>(draw(6))];
      const Tensor& w = weights[static_cast<std::size_t>(draw(3))];
      Tensor child = mean(tree(depth - 1), {0}, {.keepdims = true});
      switch (draw(4)) {
        case 0: return tanh(matmul(child, w) + tree(depth - 1));
        case 1: return tanh(matmul(child, transpose(w)));
        case 2: return transpose(matmul(w, transpose(child)));
        default: return matmul(child, matmul(w, w) * 0.1);
      }
    };
    std::vector<Tensor> sources = weights;
    sources.insert(sources.end(), leaves.begin(), leaves.end());
    auto gradients = [&](bool deferred) {
      next = 0;
      Tape tape({.deferred_products = deferred});
      for (const Tensor& source : sources) tape.watch(source);
      Tensor target = sum(tree(5));
      for (const Tensor& source : sources) target = target + sum(source * 1e-3);
      return tape.gradient(target, sources);
    };
    std::vector<Tensor> later = gradients(true), at_once = gradients(false);
    for (std::size_t i = 0; i < sources.size(); ++i) CHECK(distance(later[i], at_once[i]) <= tolerance(f64));
  }
}

TEST_CASE("rows that wait are no anomaly, and a product of them that is one is named by its op and line") {
  Tensor w = (normal({100, 100}, f32) * 0.1).requires_grad(), x = normal({2, 100}, f32);
  // Stale values in the memory of deferred products.
  for (int i = 0; i < 50; ++i) Tensor junk = full({1 + i, 100}, std::nan(""));
  auto scope = debug::detect_anomaly();
  Tape tape;
  Tensor h = x;
  for (int t = 0; t < 40; ++t) h = tanh(matmul(h, w));
  tape.backward(sum(h));
  CHECK(w.grad().defined());
  w.set_grad({});
  Tensor large = full({2, 100}, 1e20);
  int line = __LINE__ + 1;
  Tensor y = matmul(large, w);
  std::string text = error_of<AnomalyError>([&] { tape.backward(sum(y), {.seed = full({}, 1e20)}); });
  CHECK_THAT(text, contains("in the gradient of matmul"));
  CHECK_THAT(text, contains("deferred_products_test.cpp:" + std::to_string(line)));
  CHECK_FALSE(w.grad().defined());
}

TEST_CASE("products without rows or columns, and of strided rows, are right, deferred and at once") {
  Tensor w = normal({80, 80}, f64), none = normal({0, 80}, f64), thin = normal({80, 0}, f64), x = normal({80, 1}, f64);
  Tensor spread = slice(normal({1, 160}, f64), 1, 0, 160, 2);
  for (bool deferred : {true, false}) {
    Tape tape({.deferred_products = deferred});
    tape.watch(w);
    tape.watch(thin);
    Tensor empty = sum(matmul(none, w)) + sum(matmul(none, w)) + sum(matmul(transpose(x), thin));
    Tensor y = empty + sum(matmul(transpose(x), w)) + sum(matmul(spread, w)) + sum(matmul(w, x));
    auto [gw, gt] = tape.gradient(y, w, thin);
    NoRecord pause;
    Tensor row = ones({1, 80}, {.dtype = f64});
    Tensor expected = matmul(x, row) + matmul(transpose(spread), row) + matmul(transpose(row), transpose(x));
    CHECK(distance(gw, expected) <= tolerance(f64));
    CHECK(gt.shape() == thin.shape());
  }
}
