#include <cmath>
#include <set>
#include <string>
#include <string_view>

#include "catch.h"
#include "ops/table/row_checks.h"

// Every row of the table through every check.

namespace reel_test {

using namespace reel;

namespace {

constexpr std::uint64_t seed = table_seed;

}  // namespace

TEST_CASE("every op gives what plain loops give, in every dtype, and leaves its inputs alone") {
  CAPTURE(seed);
  for (const Row& row : table())
    for (DType dtype : row.dtypes) {
      CAPTURE(row.name, name_of(dtype));
      CHECK(forward_fault(row, dtype) == "");
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
    for (DType dtype : {row.dtypes[0], row.dtypes.back()}) {
      std::vector<Tensor> inputs = draw_inputs(row, dtype, seed);
      auto expected = row.reference(arrays_of(inputs));
      Tensor plain = row.run(inputs);
      for (const InputLayout& layout : input_layouts) {
        CAPTURE(row.name, name_of(dtype), layout.name);
        std::vector<Tensor> other;
        for (const Tensor& input : inputs) other.push_back(layout.apply(input));
        for (std::size_t i = 0; i < inputs.size(); ++i) REQUIRE(same_bits(inputs[i], other[i]));
        Tensor y = row.run(other);
        CHECK(mismatch(row, y, expected) == "");
        if (!row.reorders) CHECK(same_bits(y, plain));
      }
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

TEST_CASE("no op returns its operand, nor anything that is tracked under NoRecord") {
  CAPTURE(seed);
  for (const Row& row : table()) {
    CAPTURE(row.name);
    std::vector<Tensor> inputs = draw_inputs(row, row.dtypes[0], seed);
    for (const Tensor& input : inputs)
      if (is_floating(input.dtype())) input.requires_grad();
    Tensor y;
    {
      NoRecord pause;
      y = row.run(inputs);
    }
    for (const Tensor& input : inputs) CHECK_FALSE(y.is(input));
    Tape tape;
    static_cast<void>(reshape(y, y.shape()));
    CHECK(tape.size() == 0);
  }
}

TEST_CASE("every elementwise op names an undefined operand and shapes that do not broadcast") {
  // Rows of losses compute operands from their inputs; tests/ops/loss_test.cpp has their bad input.
  std::set<std::string_view> elementwise;
  for (const debug::OpDescription& op : debug::ops())
    if (op.batching == "elementwise" && op.family != "create" && op.family != "loss" && !op.internal)
      elementwise.insert(op.name);
  std::set<std::string> seen;
  for (const Row& row : table()) {
    if (!elementwise.contains(row.op) || !seen.insert(row.op).second) continue;
    std::vector<Tensor> inputs = draw_inputs(row, row.dtypes[0], seed);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      CAPTURE(row.name, i);
      std::vector<Tensor> bad = inputs;
      bad[i] = Tensor();
      std::string text = error_of<Error>([&] { row.run(bad); });
      CHECK(text.starts_with(row.op + ": "));
      CHECK_THAT(text, contains("undefined"));
    }
    if (inputs.size() < 2) continue;
    CAPTURE(row.name);
    std::vector<Tensor> bad;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      bad.push_back(zeros({static_cast<std::int64_t>(i) + 2}, {.dtype = inputs[i].dtype()}));
    CHECK_THAT(error_of<ShapeError>([&] { row.run(bad); }), contains(row.op + ": "));
  }
  CHECK(seen.size() == elementwise.size());
}

TEST_CASE("every gradient agrees with differences") {
  CAPTURE(seed);
  for (const Row& row : table()) {
    CAPTURE(row.name);
    if (checks_gradient(row)) CHECK(gradient_fault(row) == "");
  }
}

TEST_CASE("every gradient of a gradient agrees with differences") {
  CAPTURE(seed);
  for (const Row& row : table()) {
    CAPTURE(row.name);
    if (checks_second_order(row)) CHECK(second_order_fault(row) == "");
  }
}

TEST_CASE("every gradient is the same whatever the layout of the inputs") {
  CAPTURE(seed);
  for (const Row& row : table()) {
    if (!row.differentiable) continue;
    std::vector<Tensor> inputs = draw_inputs(row, f64, seed), x = floating_inputs(row, inputs);
    Function f = of_floating_inputs(row, inputs);
    std::vector<Tensor> expected = gradients(f, x);
    for (const InputLayout& layout : input_layouts) {
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
    CAPTURE(row.name);
    if (row.differentiable) CHECK(narrow_gradient_fault(row) == "");
  }
}

TEST_CASE("every op and its gradient leave no tensor behind") {
  CAPTURE(seed);
  for (const Row& row : table()) {
    CAPTURE(row.name);
    std::vector<Tensor> inputs = draw_inputs(row, row.differentiable ? f64 : row.dtypes[0], seed),
                        x = floating_inputs(row, inputs);
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
