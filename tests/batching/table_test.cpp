#include <reel/batching.h>

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "catch.h"
#include "ops/table/row_checks.h"

// Every row of the op table in several examples at once: equal to examples that run one after the other.

namespace reel_test {

using namespace reel;

namespace {

constexpr std::size_t examples = 3;

/// Which inputs the examples have in common.
enum class Common : std::uint8_t { none, all_but_first, last_two };

struct Case {
  std::vector<std::vector<Tensor>> inputs;  // of each example
  std::vector<Tensor> sources;              // through which gradients flow, each once
};

Case make_case(const Row& row, DType dtype, Common common) {
  Case made;
  for (std::size_t k = 0; k < examples; ++k) {
    std::vector<Tensor> inputs = draw_inputs(row, dtype, table_seed + k);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      bool shared =
          (common == Common::all_but_first && k > 0 && i > 0) || (common == Common::last_two && k == examples - 1);
      if (shared)
        inputs[i] = made.inputs[common == Common::all_but_first ? 0 : k - 1][i];
      else if (row.inputs[i].takes_row_dtype() && is_floating(dtype))
        made.sources.push_back(inputs[i]);
    }
    made.inputs.push_back(std::move(inputs));
  }
  return made;
}

struct Results {
  std::vector<Tensor> values, gradients, second;
};

// The sum of y with weights without symmetry.
Tensor weighted(const Tensor& y) {
  Tensor weights = cos(1.3 * to(arange(y.numel(), {.dtype = i64}), y.dtype()) + 0.4);
  return sum(reshape(y, {y.numel()}) * weights);
}

Results run(const Row& row, const Case& given, const BatchOptions& options, bool first, bool second) {
  Results results;
  manual_seed(7);
  auto values = [&] {
    return batch_map(
        given.inputs, [&](const std::vector<Tensor>& inputs) { return row.run(inputs); }, options);
  };
  if (!first || given.sources.empty()) {
    results.values = values();
    return results;
  }
  Tape outer({.persistent = true});
  for (const Tensor& source : given.sources) outer.watch(source);
  auto total_of = [&](const std::vector<Tensor>& all) {
    Tensor total = zeros({}, {.dtype = all[0].dtype()});
    // Gradients that are constants depend on no source.
    for (const Tensor& source : given.sources) total = total + 0 * to(sum(source), total.dtype());
    for (const Tensor& one : all)
      if (one.defined() && is_floating(one.dtype())) total = total + weighted(one);
    return total;
  };
  if (!second) {
    results.values = values();
    Tensor total = total_of(results.values);
    results.gradients = outer.gradient(total, given.sources, {.unconnected = Unconnected::zeros});
    return results;
  }
  {
    Tape inner;
    for (const Tensor& source : given.sources) inner.watch(source);
    results.values = values();
    results.gradients = inner.gradient(total_of(results.values), given.sources, {.unconnected = Unconnected::zeros});
  }
  results.second = outer.gradient(total_of(results.gradients), given.sources, {.unconnected = Unconnected::zeros});
  return results;
}

// Returns an empty text if the tensors agree in form and, but for rounding, in their elements. Units: sums of at most 70
// products, each rounded to half a unit, may differ by the order of their terms.
std::string difference(const char* what, const std::vector<Tensor>& found, const std::vector<Tensor>& expected,
                       double units) {
  std::string text;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Tensor &a = found[i], &b = expected[i];
    if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) {
      text += fmt::format("{} {} has another form; ", what, i);
    } else if (!is_floating(a.dtype())) {
      if (!same_bits(a, b)) text += fmt::format("{} {} differs; ", what, i);
    } else {
      Array x = array_of(a), y = array_of(b);
      for (std::size_t k = 0; k < x.values.size(); ++k)
        if (std::isnan(x.values[k]) != std::isnan(y.values[k])) text += fmt::format("{} {} is NaN; ", what, i);
      double apart = distance(a, b) / last_place(a.dtype());
      if (apart > units) text += fmt::format("{} {} lies {} units apart; ", what, i, apart);
    }
  }
  return text;
}

// Returns an empty text, or what is wrong with the row in a batch.
std::string fault(const Row& row, DType dtype, Common common, bool second) {
  Case given = make_case(row, dtype, common);
  bool first = checks_gradient(row);
  second = second && checks_second_order(row);
  Results batched = run(row, given, {.verify = common == Common::none && dtype == f64}, first, second),
          expected = run(row, given, {.immediate = true}, first, second);
  return difference("value", batched.values, expected.values, 40) +
         difference("gradient", batched.gradients, expected.gradients, 200) +
         difference("second gradient", batched.second, expected.second, 4000);
}

}  // namespace

TEST_CASE("every op gives in a batch of examples what it gives in each, with both orders of gradients") {
  CAPTURE(table_seed);
  for (const Row& row : table())
    for (DType dtype : row.dtypes) {
      // The row of zero_ overwrites the result of an op, which batch_map refuses.
      if ((dtype != f32 && dtype != f64 && dtype != bf16) || row.op == "zero_") continue;
      CAPTURE(row.name, name_of(dtype));
      CHECK(fault(row, dtype, Common::none, dtype == f64) == "");
      if (dtype != f32) continue;
      CHECK(fault(row, dtype, Common::all_but_first, false) == "");
      CHECK(fault(row, dtype, Common::last_two, false) == "");
    }
}

}  // namespace reel_test
