#include "ops/table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "catch.h"

// Every row of the table through every check.

namespace reel_test {

using namespace reel;

namespace {

constexpr std::uint64_t seed = 20250107;

Arrays arrays_of(std::span<const Tensor> tensors) {
  Arrays arrays;
  for (const Tensor& tensor : tensors) arrays.push_back(array_of(tensor));
  return arrays;
}

// The same values, laid out in another way.
struct Layout {
  std::string name;
  Tensor (*apply)(const Tensor& x);
};

Shape reversed_axes(const Tensor& x) {
  Shape axes;
  for (int i = x.rank(); i-- > 0;) axes.push_back(i);
  return axes;
}

// What must not be read.
Tensor poison(const Tensor& x) { return full(x.shape(), NAN, {.dtype = x.dtype()}); }

Tensor backwards(const Tensor& x) { return slice(x, 0, -1, std::numeric_limits<std::int64_t>::min(), -1); }

const Layout layouts[] = {
    {"transposed", [](const Tensor& x) { return permute(copy(permute(x, reversed_axes(x))), reversed_axes(x)); }},
    {"every other element",
     [](const Tensor& x) {
       return x.rank() == max_rank ? x : select(stack({x, poison(x)}, -1), -1, 0);
     }},
    {"every third element, from the second",
     [](const Tensor& x) {
       return x.rank() == max_rank ? x : select(stack({poison(x), x, poison(x)}, -1), -1, 1);
     }},
    {"inside a larger tensor",
     [](const Tensor& x) {
       if (x.rank() == 0) return x;
       Tensor larger = concat({poison(x), x, poison(x)}, -1);
       return slice(larger, -1, x.size(-1), 2 * x.size(-1));
     }},
    {"backwards", [](const Tensor& x) { return x.rank() == 0 ? x : backwards(copy(backwards(x))); }},
};

// The row as a function of those inputs through which gradients flow.
Function of_floating_inputs(const Row& row, const std::vector<Tensor>& inputs) {
  return [&](std::span<const Tensor> floating) {
    std::vector<Tensor> all = inputs;
    std::size_t next = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (row.inputs[i].takes_row_dtype()) all[i] = floating[next++];
    Tensor y = row.run(all);
    // What gives back its operand is no op, and its result no target for a tape that is younger than the
    // operand.
    for (const Tensor& input : all)
      if (y.is(input)) return reshape(y, y.shape());
    return y;
  };
}

std::vector<Tensor> floating_inputs(const Row& row, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> floating;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (row.inputs[i].takes_row_dtype()) floating.push_back(inputs[i]);
  return floating;
}

std::int64_t elements(std::span<const Tensor> tensors) {
  std::int64_t count = 0;
  for (const Tensor& tensor : tensors) count += tensor.numel();
  return count;
}

// A gradient for y without symmetry, in y's dtype.
Tensor seed_for(const Tensor& y) {
  Tensor wide = zeros(y.shape(), {.dtype = f64});
  auto values = wide.write<double>();
  for (std::int64_t i = 0; i < wide.numel(); ++i) values[i] = std::cos(1.3 * static_cast<double>(i) + 0.4);
  return to(wide, y.dtype());
}

std::vector<Tensor> gradients(const Function& f, const std::vector<Tensor>& x) {
  Tape tape;
  for (const Tensor& input : x) tape.watch(input);
  Tensor y = f(x);
  return tape.gradient(y, x, {.seed = seed_for(y), .unconnected = Unconnected::zeros});
}

// How far two gradients lie apart, in units of the larger one's largest element, or of 1.
double distance(const Tensor& a, const Tensor& b) {
  Array left = array_of(a), right = array_of(b);
  double apart = 0, largest = 1;
  for (std::size_t i = 0; i < left.values.size(); ++i) {
    apart = std::max(apart, std::abs(left.values[i] - right.values[i]));
    largest = std::max(largest, std::abs(right.values[i]));
  }
  return apart / largest;
}

}  // namespace

TEST_CASE("every op gives what plain loops give, in every dtype, and leaves its inputs alone") {
  CAPTURE(seed);
  for (const Row& row : table())
    for (DType dtype : row.dtypes) {
      CAPTURE(row.name, name_of(dtype));
      std::vector<Tensor> inputs = draw_inputs(row, dtype, seed);
      Arrays before = arrays_of(inputs);
      Tensor y = row.run(inputs);
      CHECK(mismatch(row, y, row.reference(before)) == "");
      for (std::size_t i = 0; i < inputs.size(); ++i) CHECK(array_of(inputs[i]).values == before[i].values);
    }
}

TEST_CASE("every op gives the same bits when it runs again") {
  CAPTURE(seed);
  for (const Row& row : table()) {
    CAPTURE(row.name);
    std::vector<Tensor> inputs = draw_inputs(row, row.dtypes[0], seed);
    CHECK(same_bits(row.run(inputs), row.run(inputs)));
  }
}

TEST_CASE("every op gives the same values whatever the layout of its inputs") {
  CAPTURE(seed);
  for (const Row& row : table())
    for (DType dtype : {row.dtypes[0], row.dtypes.back()})
      for (const Layout& layout : layouts) {
        CAPTURE(row.name, name_of(dtype), layout.name);
        std::vector<Tensor> inputs = draw_inputs(row, dtype, seed), other;
        for (const Tensor& input : inputs) other.push_back(layout.apply(input));
        for (std::size_t i = 0; i < inputs.size(); ++i) REQUIRE(same_bits(inputs[i], other[i]));
        Tensor y = row.run(other);
        CHECK(mismatch(row, y, row.reference(arrays_of(inputs))) == "");
        if (!row.reorders) CHECK(same_bits(y, row.run(inputs)));
      }
}

TEST_CASE("every op gives for repeated elements what it gives for copies of them") {
  CAPTURE(seed);
  for (const Row& row : table()) {
    CAPTURE(row.name);
    std::vector<Tensor> repeated, copies;
    for (const Tensor& input : draw_inputs(row, row.dtypes[0], seed)) {
      bool can = input.rank() > 0 && input.numel() > 0;
      repeated.push_back(can ? expand(slice(input, 0, 0, 1), input.shape()) : input);
      copies.push_back(copy(repeated.back()));
    }
    Tensor y = row.run(repeated);
    CHECK(mismatch(row, y, row.reference(arrays_of(copies))) == "");
    if (!row.reorders) CHECK(same_bits(y, row.run(copies)));
  }
}

TEST_CASE("every gradient agrees with differences") {
  CAPTURE(seed);
  for (const Row& row : table()) {
    if (!row.differentiable) continue;
    CAPTURE(row.name);
    std::vector<Tensor> inputs = draw_inputs(row, f64, seed), x = floating_inputs(row, inputs);
    if (elements(x) > 300) continue;
    debug::GradcheckReport report = debug::gradcheck(of_floating_inputs(row, inputs), x);
    INFO(report.text);
    CHECK(report.agrees);
  }
}

TEST_CASE("every gradient of a gradient agrees with differences") {
  CAPTURE(seed);
  for (const Row& row : table()) {
    if (!row.differentiable) continue;
    CAPTURE(row.name);
    std::vector<Tensor> inputs = draw_inputs(row, f64, seed), x = floating_inputs(row, inputs);
    if (elements(x) > 100) continue;
    debug::GradcheckReport report = debug::gradgradcheck(of_floating_inputs(row, inputs), x);
    INFO(report.text);
    CHECK(report.agrees);
  }
}

TEST_CASE("every gradient is the same whatever the layout of the inputs") {
  CAPTURE(seed);
  for (const Row& row : table()) {
    if (!row.differentiable) continue;
    std::vector<Tensor> inputs = draw_inputs(row, f64, seed), x = floating_inputs(row, inputs);
    Function f = of_floating_inputs(row, inputs);
    std::vector<Tensor> expected = gradients(f, x);
    for (const Layout& layout : layouts) {
      CAPTURE(row.name, layout.name);
      Function laid_out = [&](std::span<const Tensor> given) {
        std::vector<Tensor> other;
        for (const Tensor& input : given) other.push_back(layout.apply(input));
        return f(other);
      };
      std::vector<Tensor> found = gradients(laid_out, x);
      // Sums of up to some hundred f64 products, in another order.
      for (std::size_t i = 0; i < x.size(); ++i) CHECK(distance(found[i], expected[i]) < 1000 * last_place(f64));
    }
  }
}

TEST_CASE("every f32 gradient lies close to that in f64") {
  CAPTURE(seed);
  for (const Row& row : table()) {
    if (!row.differentiable) continue;
    CAPTURE(row.name);
    std::vector<Tensor> inputs = draw_inputs(row, f32, seed), x = floating_inputs(row, inputs), wide;
    for (const Tensor& input : x) wide.push_back(to(input, f64));
    Function f = of_floating_inputs(row, inputs);
    std::vector<Tensor> found = gradients(f, x), expected = gradients(f, wide);
    // Sums of at most 70 products, each rounded to half a unit, of numbers that may be 2 units off
    // themselves.
    for (std::size_t i = 0; i < x.size(); ++i) {
      CHECK(found[i].dtype() == f32);
      CHECK(distance(found[i], expected[i]) < 200 * last_place(f32));
    }
  }
}

TEST_CASE("every op and its gradient leave no tensor behind") {
  CAPTURE(seed);
  for (const Row& row : table()) {
    CAPTURE(row.name);
    std::vector<Tensor> inputs = draw_inputs(row, f64, seed), x = floating_inputs(row, inputs);
    MemoryStatistics before = memory_statistics();
    static_cast<void>(row.run(inputs));
    if (row.differentiable) static_cast<void>(gradients(of_floating_inputs(row, inputs), x));
    MemoryStatistics after = memory_statistics();
    CHECK(after.live_tensors == before.live_tensors);
    CHECK(after.live_storages == before.live_storages);
    CHECK(after.live_bytes == before.live_bytes);
  }
}

}  // namespace reel_test
