#include <reel/reel.h>

#include <functional>
#include <future>

#include "catch.h"
#include "core/storage.h"

// Recording and differentiating overwrites.

using namespace reel;
using namespace reel_test;

namespace {

using Doubles = std::vector<double>;

std::string location(int line) { return std::string("in_place_test.cpp:") + std::to_string(line); }

Tensor vector(std::initializer_list<double> values) { return tensor(values); }
Doubles values(const Tensor& x) { return x.to_vector<double>(); }
std::uint32_t version_of(const Tensor& x) { return x.body().storage->version; }

template <class X, class Y>
concept Assignable = requires(X x, Y y) { std::forward<X>(x) = y; };

}  // namespace

TEST_CASE("overwriting an untracked tensor is a plain overwrite, recorded with its line") {
  Tensor x = vector({1, 2, 3}), y = vector({4, 5, 6});
  MemoryStatistics before = memory_statistics();
  std::uint32_t version_before = version_of(x);
  Tensor returned = add_(x, y);
  int line = __LINE__ - 1;
  CHECK(returned.is(x));
  CHECK(values(x) == Doubles{5, 7, 9});
  CHECK(version_of(x) == version_before + 1);
  CHECK(x.body().storage->last_overwrite().line == line);
  CHECK(memory_statistics().live_tensors == before.live_tensors);
  Tensor w = ones({3}, {.dtype = f64}).requires_grad();
  Tape tape;
  mul_(x, y);
  CHECK(tape.size() == 0);
  CHECK(tape.gradient(sum(x * w), w).to_vector<double>() == Doubles{20, 35, 54});
}

TEST_CASE("an in-place op is one entry, after which the tensor stands for the new values") {
  Tensor a = vector({1, 2}), b = vector({3, 4});
  Tape tape;
  tape.watch(a);
  tape.watch(b);
  Tensor x = copy(a), old = x * 1;
  std::size_t before = tape.size();
  add_(x, b);
  CHECK(tape.size() == before + 1);
  auto [ga, gb] = tape.gradient(sum(x * x + old), a, b);
  CHECK(values(ga) == Doubles{9, 13});
  CHECK(values(gb) == Doubles{8, 12});
}

TEST_CASE("gradients flow to both operands of every in-place function") {
  Tensor a = vector({1, 2}), b = vector({4, 8});
  struct Case {
    void (*run)(const Tensor& x, const Tensor& y);
    Doubles value, by_a, by_b;
  };
  const Case cases[] = {
      {[](const Tensor& x, const Tensor& y) { add_(x, y); }, {5, 10}, {1, 1}, {1, 1}},
      {[](const Tensor& x, const Tensor& y) { sub_(x, y); }, {-3, -6}, {1, 1}, {-1, -1}},
      {[](const Tensor& x, const Tensor& y) { mul_(x, y); }, {4, 16}, {4, 8}, {1, 2}},
      {[](const Tensor& x, const Tensor& y) { div_(x, y); }, {0.25, 0.25}, {0.25, 0.125}, {-0.0625, -0.03125}},
      {[](const Tensor& x, const Tensor& y) { copy_(x, y); }, {4, 8}, {0, 0}, {1, 1}},
      {[](const Tensor& x, const Tensor& y) { fill_(x, select(y, 0, 1)); }, {8, 8}, {0, 0}, {0, 2}},
      {[](const Tensor& x, const Tensor& y) { zero_(add_(x, y)); }, {0, 0}, {0, 0}, {0, 0}},
      {[](const Tensor& x, const Tensor& y) { clamp_(x, select(y, 0, 0) - 2.5); }, {1.5, 2}, {0, 1}, {1, 0}},
      {[](const Tensor& x, const Tensor& y) { masked_fill_(x, x < 1.5, select(y, 0, 0)); }, {4, 2}, {0, 1}, {1, 0}},
      {[](const Tensor& x, const Tensor& y) { index_put_(x, {tensor({1})}, slice(y, 0, 0, 1)); },
       {1, 4},
       {1, 0},
       {1, 0}},
  };
  for (const Case& row : cases) {
    Tape tape;
    tape.watch(a);
    tape.watch(b);
    Tensor x = copy(a);
    row.run(x, b);
    CHECK(values(x) == row.value);
    Tensor total = sum(x) + sum(a) * 0 + sum(b) * 0;
    auto [ga, gb] = tape.gradient(total, a, b);
    CHECK(values(ga) == row.by_a);
    CHECK(values(gb) == row.by_b);
    CHECK(values(a) == Doubles{1, 2});
    CHECK(values(b) == Doubles{4, 8});
  }
}

TEST_CASE("a chain of in-place ops has derivatives of every order") {
  auto f = [](std::span<const Tensor> inputs) {
    const Tensor &a = inputs[0], &b = inputs[1];
    Tensor x = copy(a);
    mul_(x, b);
    add_(x, tanh(x));
    x(slice(1)) = sin(copy(x(slice(0, -1))));
    x(0) *= b(1);
    div_(x, b);
    x -= a;
    return x * x;
  };
  std::vector<Tensor> inputs{vector({0.3, -0.7, 1.1}), vector({1.2, -0.8, 0.9})};
  debug::GradcheckReport first = debug::gradcheck(f, inputs), second = debug::gradgradcheck(f, inputs);
  INFO(first.text << second.text);
  CHECK(first.agrees);
  CHECK(second.agrees);
  // The third, of x³ by two multiplications in place.
  Tensor a = vector({2});
  Tape outer;
  outer.watch(a);
  Tape middle;
  Tape inner;
  Tensor x = copy(a);
  mul_(mul_(x, a), a);
  Tensor d = inner.gradient(sum(x), a), dd = middle.gradient(sum(d), a);
  CHECK(d.item() == 12);
  CHECK(dd.item() == 12);
  CHECK(outer.gradient(sum(dd), a).item() == 6);
}

TEST_CASE("rows written into a buffer in a loop carry gradients") {
  Tensor w = full({3, 3}, 0.5, {.dtype = f64}).requires_grad(), start = tensor({0.1, 0.2, 0.3});
  auto recurrent = [&](bool in_place) {
    Tape tape;
    Tensor out = zeros({4, 3}, {.dtype = f64}), h = start;
    std::vector<Tensor> rows;
    for (int t = 0; t < 4; ++t) {
      h = tanh(reshape(matmul(unsqueeze(h, 0), w), {3}));
      if (in_place)
        out(t) = h;
      else
        rows.push_back(h);
    }
    if (!in_place) out = stack(rows, 0);
    Tensor gradient = tape.gradient(sum(out * out * (arange(4, {.dtype = f64})(slice(), newaxis) + 1)), w);
    rows.push_back(out);
    return std::pair(values(out), values(gradient));
  };
  auto [outputs, gradient] = recurrent(true);
  auto [expected_outputs, expected_gradient] = recurrent(false);
  CHECK(outputs == expected_outputs);
  REQUIRE(gradient.size() == expected_gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) CHECK(gradient[i] == Approx(expected_gradient[i]).epsilon(1e-12));
}

TEST_CASE("a row written into a buffer costs its gradient a row, not the buffer") {
  Tensor h = ones({4}).requires_grad();
  Tape tape;
  Tensor out = zeros({1000, 4});
  for (int t = 0; t < 1000; ++t) out(t) = h;
  std::int64_t elements = 0;
  debug::Listen listen([&](const debug::OpEvent& event) {
    for (const Tensor& output : event.outputs) elements += std::string(event.op) == "copy" ? output.numel() : 0;
  });
  tape.backward(sum(out * out));
  CHECK(h.grad().to_vector<float>() == std::vector<float>(4, 2000));
  CHECK(elements <= 4 * 1000 + 2 * 4000);
}

TEST_CASE("a part that is assigned to changes the slot of the whole") {
  Tensor a = vector({1, 2, 3}), b = vector({10, 20});
  Tape tape({.persistent = true});
  tape.watch(a);
  tape.watch(b);
  Tensor x = copy(a);
  x(slice(1)) = b;
  CHECK(values(x) == Doubles{1, 10, 20});
  auto [ga, gb] = tape.gradient(sum(x * x), a, b);
  CHECK(values(ga) == Doubles{2, 0, 0});
  CHECK(values(gb) == Doubles{20, 40});
  x(0) = x(2);
  CHECK(values(x) == Doubles{20, 10, 20});
  CHECK(values(tape.gradient(sum(x), b)) == Doubles{1, 2});
  x(slice()) = 0.0;
  CHECK(values(x) == Doubles{0, 0, 0});
  CHECK(values(tape.gradient(sum(x * a), a)) == Doubles{0, 0, 0});
  CHECK(values(tape.gradient(sum(x), b)) == Doubles{0, 0});
  // Broadcasting, another dtype, and a buffer that was not tracked.
  Tensor table = zeros({2, 3});
  table(slice(), slice(std::nullopt, std::nullopt, -1)) = a;
  CHECK(table.to_vector<float>() == std::vector<float>{3, 2, 1, 3, 2, 1});
  CHECK(values(tape.gradient(sum(table * tensor({1.f, 2.f, 3.f})), a)) == Doubles{6, 4, 2});
}

TEST_CASE("in-place functions take a part, which stays usable, and so does the whole") {
  Tensor a = vector({1, 2, 3});
  Tape tape({.persistent = true});
  tape.watch(a);
  Tensor x = copy(a);
  auto part = x(slice(0, 2));
  Tensor returned = mul_(part, part);
  add_(x(2), sum(part));
  x(0) += 1.0;
  CHECK(values(x) == Doubles{2, 4, 8});
  CHECK(values(tape.gradient(sum(x), a)) == Doubles{4, 8, 1});
  CHECK(returned.is(part));
  CHECK_THAT(error_of<TapeError>([&] { part * 1; }), contains("was overwritten at"));
  Tensor y = copy(a);
  auto first = y(0);
  copy_(first, 5.0);
  zero_(y(1));
  fill_(y(2), 7);
  CHECK(values(tape.gradient(sum(y * a), a)) == Doubles{5, 0, 7});
  Tensor z = copy(a);
  auto last = z(-1);
  copy_(last, a(0) * 3);
  CHECK(values(tape.gradient(last * sum(z), a)) == Doubles{3 * 6 + 3 * 4, 3, 0});
}

TEST_CASE("only an unnamed part can be assigned to") {
  STATIC_REQUIRE(Assignable<Indexed&&, Tensor&>);
  STATIC_REQUIRE(Assignable<Indexed&&, double>);
  STATIC_REQUIRE(Assignable<Indexed&&, Indexed&&>);
  STATIC_REQUIRE_FALSE(Assignable<Indexed&, Tensor&>);
  STATIC_REQUIRE_FALSE(Assignable<Indexed&, Indexed&>);
  STATIC_REQUIRE_FALSE(Assignable<Indexed&, double>);
}

TEST_CASE("filling releases the old values' gradient") {
  Tensor a = vector({1, 2});
  Tape tape({.persistent = true});
  tape.watch(a);
  Tensor x = copy(a);
  zero_(x);
  CHECK(values(tape.gradient(sum((x + 1) * a), a)) == Doubles{1, 1});
  add_(x, a);
  CHECK(values(tape.gradient(sum(x * x), a)) == Doubles{2, 4});
  fill_(x, 3);
  CHECK(values(tape.gradient(sum(x * a), a)) == Doubles{3, 3});
  CHECK_THAT(error_of<TapeError>([&] { tape.gradient(sum(a), x); }), contains("source 0, (2,) f64"));
}

TEST_CASE("a tensor of a finished tape is plain after being copied onto itself, under whichever handle") {
  for (bool by_another_handle : {false, true}) {
    Tensor w = vector({1, 2}).requires_grad(), h;
    {
      Tape tape;
      h = w * 2;
    }
    Tensor same = h;
    copy_(h, by_another_handle ? same : h);
    Tape tape;
    CHECK(values(tape.gradient(sum(h * w), w)) == Doubles{2, 4});
  }
}

TEST_CASE("what a gradient needs and an in-place op overwrites is an error that names both lines") {
  Tensor a = vector({1, 2});
  Tape tape;
  tape.watch(a);
  int op_line = __LINE__ + 1;
  Tensor x = exp(a);
  int write_line = __LINE__ + 1;
  add_(x, 1);
  std::string text = error_of<TapeError>([&] { tape.gradient(sum(x), a); });
  CHECK_THAT(text, contains("exp: its gradient needs its result"));
  CHECK_THAT(text, contains(location(op_line)));
  CHECK_THAT(text, contains(location(write_line)));
}

TEST_CASE("a tracked view that is older than an in-place op is refused, a younger one is not") {
  Tensor a = vector({1, 2, 3});
  Tape tape;
  tape.watch(a);
  int made_line = __LINE__ + 1;
  Tensor x = copy(a), older = slice(x, 0, 0, 2);
  int write_line = __LINE__ + 1;
  mul_(x, x);
  Tensor younger = slice(x, 0, 0, 2);
  int use_line = 0;
  std::string text = error_of<TapeError>([&] {
    use_line = __LINE__ + 1;
    older * 2.0;
  });
  CHECK_THAT(text, contains("mul: operand (2,) f64, made at"));
  CHECK_THAT(text, contains("was overwritten at"));
  for (int line : {made_line, write_line, use_line}) CHECK_THAT(text, contains(location(line)));
  CHECK_THAT(error_of<TapeError>([&] { add_(older, 1.0); }), contains("add_: operand (2,) f64"));
  CHECK_THAT(error_of<TapeError>([&] { tape.gradient(sum(x), older); }), contains("does not depend on source 0"));
  CHECK(values(tape.gradient(sum(younger * younger), a)) == Doubles{4, 32, 0});
}

TEST_CASE("a target that was overwritten through a view is refused") {
  Tensor a = vector({3});
  Tape tape;
  tape.watch(a);
  Tensor loss = sum(a * a), view = reshape(loss, {});
  mul_(loss, 2);
  CHECK_THAT(error_of<TapeError>([&] { tape.gradient(view, a); }), contains("was overwritten at"));
  CHECK(tape.gradient(loss, a).item() == 12);
  CHECK(values(loss) == Doubles{18});
}

TEST_CASE("an untracked tensor whose elements received tracked values is no silent constant") {
  Tensor h = vector({1, 2, 3}).requires_grad();
  Tape tape({.persistent = true});
  int made_line = __LINE__ + 1;
  Tensor out = zeros({2, 3}, {.dtype = f64});
  Tensor other = select(out, 0, 1), row = select(out, 0, 0);
  int write_line = __LINE__ + 1;
  copy_(row, h);
  CHECK(values(tape.gradient(sum(row * row), h)) == Doubles{2, 4, 6});
  int use_line = 0;
  std::string text = error_of<TapeError>([&] {
    use_line = __LINE__ + 1;
    sum(out);
  });
  CHECK_THAT(text, contains("sum: operand (2, 3) f64, made at"));
  CHECK_THAT(text, contains("shares its elements with a tensor of an open tape, into which values were written"));
  for (int line : {made_line, write_line, use_line}) CHECK_THAT(text, contains(location(line)));
  CHECK_THROWS_AS(other * 2, TapeError);
  CHECK_THROWS_AS(slice(out, 0, 0, 1), TapeError);
  CHECK_THROWS_AS(add_(out, 1), TapeError);
  CHECK_THROWS_AS(tape.watch(out), TapeError);
  CHECK_THROWS_AS(out(1) = h, TapeError);
  // Its value can be read, and detached from the tape.
  CHECK(values(out) == Doubles{1, 2, 3, 0, 0, 0});
  CHECK((out > 1).to_vector<bool>()[1]);
  CHECK(values(tape.gradient(sum(stop_gradient(row) * h), h)) == Doubles{1, 2, 3});
  // Overwritten as a whole it is a constant.
  zero_(out);
  CHECK(values(tape.gradient(sum((out + 1) * h), h)) == Doubles{2, 2, 2});
}

TEST_CASE("a parameter is overwritten under NoRecord only") {
  Tensor w = vector({1, 2}).requires_grad(), x = vector({3, 4});
  {
    Tape tape;
    for (const std::function<void()>& write : std::initializer_list<std::function<void()>>{
             [&] { add_(w, x); }, [&] { zero_(w); }, [&] { copy_(w, x); }, [&] { w(0) = 1.0; }, [&] { w *= 2; },
             [&] { clamp_(w, 0); }, [&] { masked_fill_(w, w > 0, 1); }, [&] { index_put_(w, {tensor({0})}, 1); }}) {
      std::string text = error_of<TapeError>(write);
      CHECK_THAT(text, contains("is a parameter"));
      CHECK_THAT(text, contains("overwrite it under NoRecord, or overwrite a copy"));
    }
    CHECK(values(w) == Doubles{1, 2});
    Tensor y = w * 3;
    {
      NoRecord pause;
      sub_(w, x);
    }
    tape.backward(sum(y + w));
    CHECK(values(w.grad()) == Doubles{4, 4});
  }
  zero_(w);
  CHECK(values(w) == Doubles{0, 0});
  // The values of a parameter that a recorded write has reached through a view belong to no leaf any more.
  Tape tape;
  Tensor view = slice(w, 0, 0, 2);
  add_(view, x);
  CHECK_THAT(error_of<TapeError>([&] { w * 2; }), contains("into which values were written"));
}

TEST_CASE("a parameter is refused after a number was written through a recorded view of it") {
  Tensor w = vector({1, 2}).requires_grad();
  Tape tape;
  Tensor view = slice(w, 0, 0, 2);
  fill_(view, 0.5);
  CHECK_THAT(error_of<TapeError>([&] { sin(w); }), contains("into which values were written"));
  CHECK(values(view * 2) == Doubles{1, 1});
}

TEST_CASE("a watched tensor is not overwritten while its tape records") {
  Tensor x = vector({1, 2});
  Tape tape;
  tape.watch(x);
  std::string text = error_of<TapeError>([&] { add_(x, 1); });
  CHECK_THAT(text, contains("add_: (2,) f64, made at"));
  CHECK_THAT(text, contains("is watched by an open tape"));
  CHECK_THAT(text, contains("overwrite a copy"));
  CHECK_THROWS_AS(x(0) = 3.0, TapeError);
  CHECK(values(tape.gradient(sum(x * x), x)) == Doubles{2, 4});
  add_(x, 1);
  CHECK(values(x) == Doubles{2, 3});
}

TEST_CASE("under NoRecord an overwrite is plain, and what the tape had of the tensor is refused") {
  Tensor a = vector({1, 2});
  Tape tape;
  tape.watch(a);
  Tensor x = a * 2;
  {
    NoRecord pause;
    add_(x, 1);
    CHECK(values(x) == Doubles{3, 5});
    zero_(x);
  }
  CHECK_THAT(error_of<TapeError>([&] { x* a; }), contains("was overwritten at"));
}

TEST_CASE("what another thread's tape computed, and another thread's tensor, are refused") {
  Tensor w = vector({1}).requires_grad(), plain = vector({1});
  Tape tape;
  Tensor h = w * 2, mine = vector({1});
  std::async(std::launch::async, [&] {
    Tensor own = vector({5}).requires_grad();
    Tape other;
    CHECK_THAT(error_of<TapeError>([&] { add_(h, 1); }), contains("belongs to the tape of another thread"));
    CHECK_THAT(error_of<TapeError>([&] { zero_(h); }), contains("belongs to the tape of another thread"));
    Tensor x = vector({1});
    CHECK_THAT(error_of<TapeError>([&] { add_(x, h); }), contains("belongs to the tape of another thread"));
    CHECK_THAT(error_of<TapeError>([&] { add_(plain, own); }), contains("cannot hold values that this thread's tape"));
    add_(plain, 1);
  }).get();
  CHECK(plain.item() == 2);
  CHECK(tape.gradient(h, w).item() == 2);
}

TEST_CASE("a guard that is alive when a tensor is overwritten makes it unusable when it ends") {
  Tensor w = vector({2}).requires_grad(), x = vector({1}), plain = vector({1});
  Tape tape;
  {
    Writer<double> writer = x.write<double>();
    add_(x, w);
    CHECK(writer[0] == 3);
    writer[0] = 100;
  }
  CHECK_THAT(error_of<TapeError>([&] { x* w; }), contains("was overwritten at"));
  {
    Writer<double> writer = plain.write<double>();
    add_(plain, 1);
    writer[0] *= 2;
  }
  CHECK(tape.gradient(sum(plain * w), w).item() == 4);
}

TEST_CASE("an in-place op that fails leaves values, versions and the tape as they were") {
  Tensor a = vector({1, 2});
  Tape tape;
  tape.watch(a);
  Tensor x = copy(a), stale = slice(a, 0, 0, 1) * 1, view = reshape(stale, {});
  add_(stale, 1);
  const std::function<void()> bad[] = {
      [&] { add_(x, zeros({3})); },
      [&] { mul_(x, view); },
      [&] { copy_(x, Tensor{}); },
      [&] { x(1) = view; },
      [&] { masked_fill_(x, x, 1); },
      [&] { masked_fill_(x, x > 1, view); },
      [&] { index_put_(x, {tensor({5})}, 1.0); },
      [&] {
        clamp_(x, zeros({2, 2}));
      },
      [&] { div_(x, Tensor{}); },
  };
  std::uint32_t before = version_of(x);
  for (const auto& call : bad) {
    std::size_t entries = tape.size();
    CHECK_THROWS_AS(call(), Error);
    CHECK(values(x) == Doubles{1, 2});
    CHECK(version_of(x) == before);
    CHECK(tape.size() <= entries + 1);  // x(1) itself is an entry
  }
  CHECK(values(tape.gradient(sum(x * x), a)) == Doubles{2, 4});
}

TEST_CASE("a listener sees in-place ops, and one that throws leaves no stale slot") {
  Tensor a = vector({1, 2});
  Tape tape;
  tape.watch(a);
  Tensor x = copy(a), plain = vector({1, 1});
  std::vector<std::string> names;
  {
    debug::Listen listen([&](const debug::OpEvent& event) { names.emplace_back(event.op); });
    add_(plain, 1);
    zero_(plain);
    mul_(x, 2);
    x(0) = 1.0;
  }
  CHECK(names ==
        std::vector<std::string>{"full", "add_", "zero_", "full", "mul", "copy_", "index", "full", "index_assign_"});
  {
    debug::Listen listen([&](const debug::OpEvent& event) {
      if (std::string(event.op) == "copy_") throw std::runtime_error("enough");
    });
    CHECK_THROWS_AS(add_(x, 1), std::runtime_error);
  }
  CHECK_THROWS_AS(x * 2, TapeError);
}

TEST_CASE("what reads a sharer's elements without a gradient sees the new values, and what has one is refused") {
  Tensor x = tensor({1.f, 2.f}), w = ones({2}).requires_grad();
  Tape tape;
  Tensor h = x * w, other = reshape(h, {2});
  mul_(h, 10);
  CHECK((other > 5).to_vector<bool>() == std::vector<bool>{true, true});
  CHECK(argmax(other).item<std::int64_t>() == 1);
  CHECK_THAT(to_string(other), contains("20"));
  CHECK(other.to_vector<float>() == std::vector<float>{10, 20});
  {
    NoRecord pause;
    CHECK(sum(other).item() == 30);
  }
  CHECK_THROWS_AS(other * 2, TapeError);
  CHECK(sum(reshape(h, {2}) * 2).item() == 60);
}
