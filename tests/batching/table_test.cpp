#include <reel/batching.h>
#include <reel/threads.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "catch.h"
#include "core/op.h"
#include "ops/joining.h"
#include "ops/registry.h"
#include "ops/table/row_checks.h"

// Every row of the op table in several examples at once: equal to examples that run one after the other.

namespace reel_test {

using namespace reel;

namespace {

/// The inputs that the examples have in common; `computed`: none, and each is the result of an op within the example.
enum class Common : std::uint8_t { none, all_but_first, last_two, computed };

struct Case {
  std::vector<const Row*> rows;             // of each example
  std::vector<std::vector<Tensor>> inputs;  // of each example
  std::vector<Tensor> sources;              // through which gradients flow, each once
  bool computed = false;                    // floating inputs pass an op within the example
};

bool is_source(const Row& row, const Input& input, DType dtype) {
  return input.takes_row_dtype() && is_floating(dtype) && checks_gradient(row);
}

// Three examples of one row.
Case make_case(const Row& row, DType dtype, Common common) {
  constexpr std::size_t examples = 3;
  Case made;
  made.computed = common == Common::computed;
  for (std::size_t k = 0; k < examples; ++k) {
    std::vector<Tensor> inputs = draw_inputs(row, dtype, table_seed + k);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      bool shared =
          (common == Common::all_but_first && k > 0 && i > 0) || (common == Common::last_two && k == examples - 1);
      if (shared)
        inputs[i] = made.inputs[common == Common::all_but_first ? 0 : k - 1][i];
      else if (is_source(row, row.inputs[i], dtype))
        made.sources.push_back(inputs[i]);
    }
    made.rows.push_back(&row);
    made.inputs.push_back(std::move(inputs));
  }
  return made;
}

// Two examples of each row. With `shares`, inputs but the first are one tensor where they have one shape.
Case make_mixed_case(const std::vector<const Row*>& rows, DType dtype, bool shares) {
  Case made;
  std::map<std::string, Tensor> known;
  for (std::uint64_t draw : {0, 1})
    for (const Row* row : rows) {
      std::vector<Tensor> inputs = draw_inputs(*row, dtype, table_seed + draw);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Input& input = row->inputs[i];
        bool is_new = true;
        if (shares && i > 0 && input.takes_row_dtype()) {
          auto form = fmt::format("{} {} {} {}", i, to_string(input.shape), static_cast<int>(input.fill),
                                  is_source(*row, input, dtype));
          auto [found, inserted] = known.try_emplace(form, inputs[i]);
          inputs[i] = found->second;
          is_new = inserted;
        }
        if (is_new && is_source(*row, input, dtype)) made.sources.push_back(inputs[i]);
      }
      made.rows.push_back(row);
      made.inputs.push_back(std::move(inputs));
    }
  return made;
}

std::vector<Tensor> values_of(const Case& given, const BatchOptions& options) {
  std::vector<std::size_t> examples(given.rows.size());
  for (std::size_t k = 0; k < examples.size(); ++k) examples[k] = k;
  manual_seed(7);
  return batch_map(
      examples,
      [&](std::size_t k) {
        if (!given.computed) return given.rows[k]->run(given.inputs[k]);
        std::vector<Tensor> inputs = given.inputs[k];
        for (Tensor& input : inputs)
          if (is_floating(input.dtype())) input = -input;
        for (Tensor& input : inputs)
          if (is_floating(input.dtype())) input = -input;
        return given.rows[k]->run(inputs);
      },
      options);
}

struct Results {
  std::vector<Tensor> values, gradients, second;
};

// The sum of y with weights without symmetry.
Tensor weighted(const Tensor& y) {
  Tensor weights = cos(1.3 * to(arange(y.numel(), {.dtype = i64}), y.dtype()) + 0.4);
  return sum(reshape(y, {y.numel()}) * weights);
}

Results run(const Case& given, const BatchOptions& options, bool second) {
  Results results;
  if (given.sources.empty()) {
    results.values = values_of(given, options);
    return results;
  }
  Tape outer({.persistent = true});
  for (const Tensor& source : given.sources) outer.watch(source);
  auto total_of = [&](const std::vector<Tensor>& all) {
    Tensor total = zeros({}, {.dtype = given.sources[0].dtype()});
    // Gradients that are constants depend on no source.
    for (const Tensor& source : given.sources) total = total + 0 * sum(source);
    for (const Tensor& one : all)
      if (one.defined() && is_floating(one.dtype())) total = total + weighted(one);
    return total;
  };
  if (!second) {
    results.values = values_of(given, options);
    results.gradients = outer.gradient(total_of(results.values), given.sources, {.unconnected = Unconnected::zeros});
    return results;
  }
  {
    Tape inner;
    for (const Tensor& source : given.sources) inner.watch(source);
    results.values = values_of(given, options);
    results.gradients = inner.gradient(total_of(results.values), given.sources, {.unconnected = Unconnected::zeros});
  }
  results.second = outer.gradient(total_of(results.gradients), given.sources, {.unconnected = Unconnected::zeros});
  return results;
}

// Returns an empty text if each example's value is within its row's bound, and of the form that it has alone.
std::string wrong_values(const Case& given, const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  std::string text;
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const Row& row = *given.rows[k];
    std::string fault = mismatch(row, found[k], array_of(expected[k]));
    // The bound may be relative to more than the result, which the reference knows.
    if (!fault.empty()) fault = mismatch(row, found[k], row.reference(arrays_of(given.inputs[k])));
    if (found[k].dtype() != expected[k].dtype()) fault += "another dtype";
    if (!is_floating(expected[k].dtype()) && !same_bits(found[k], expected[k])) fault += "other elements than alone";
    if (!fault.empty()) text += fmt::format("value {} of {}: {}; ", k, row.name, fault);
  }
  return text;
}

// Returns an empty text if the gradients agree in form and, but for rounding, in their elements. Units: sums of at most
// 70 products, each rounded to half a unit, may differ by the order of their terms.
std::string difference(const char* what, const std::vector<Tensor>& found, const std::vector<Tensor>& expected,
                       double units) {
  std::string text;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Tensor &a = found[i], &b = expected[i];
    if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) {
      text += fmt::format("{} {} has another form; ", what, i);
      continue;
    }
    Array x = array_of(a), y = array_of(b);
    for (std::size_t k = 0; k < x.values.size(); ++k)
      if (std::isnan(x.values[k]) != std::isnan(y.values[k])) text += fmt::format("{} {} is NaN; ", what, i);
    double apart = distance(a, b) / last_place(a.dtype());
    if (apart > units) text += fmt::format("{} {} lies {} units apart; ", what, i, apart);
  }
  return text;
}

// Returns an empty text, or what is wrong with the examples in a batch.
std::string fault(const Case& given, bool second, const BatchOptions& options = {}) {
  Results batched = run(given, options, second), expected = run(given, {.immediate = true}, second);
  bool half = !given.sources.empty() && given.sources[0].dtype() == bf16;
  return wrong_values(given, batched.values, expected.values) +
         difference("gradient", batched.gradients, expected.gradients, half ? 4 : 200) +
         difference("second gradient", batched.second, expected.second, 4000);
}

// The row of zero_ overwrites the result of an op, which batch_map refuses.
bool runs_in(const Row& row, DType dtype) {
  return row.op != "zero_" && std::find(row.dtypes.begin(), row.dtypes.end(), dtype) != row.dtypes.end();
}

bool overwrites(const Row& row) { return row.op.ends_with('_') || row.op == "write"; }

}  // namespace

TEST_CASE("every op gives in a batch of examples what it gives in each, with both orders of gradients") {
  CAPTURE(table_seed);
  for (const Row& row : table())
    for (DType dtype : {f32, f64, bf16}) {
      if (!runs_in(row, dtype)) continue;
      CAPTURE(row.name, name_of(dtype));
      bool second = dtype == f64 && checks_second_order(row);
      CHECK(fault(make_case(row, dtype, Common::none), second, {.verify = dtype == f64}) == "");
      CHECK(fault(make_case(row, dtype, Common::all_but_first), second) == "");
      if (dtype == f32) CHECK(fault(make_case(row, dtype, Common::last_two), false) == "");
      if (dtype != bf16 && !overwrites(row)) CHECK(fault(make_case(row, dtype, Common::computed), second) == "");
    }
}

TEST_CASE("values are equal to the bit alone and in any batch, in every layout") {
  CAPTURE(table_seed);
  // Without the setting, products by columns that are contiguous may add terms in another order: these transpose operands …
  const std::set<std::string, std::less<>> by_columns{"einsum", "lstsq", "pinv", "eigh"};
  // … and these multiply by operands as they are given.
  const std::set<std::string, std::less<>> products{
      "matmul", "bmm", "addmm", "tensordot", "gru_cell", "rnn_cell", "lstm_cell", "tree_lstm_cell", "qr", "matrix_exp"};
  auto fault_of = [](const Case& given) {
    std::vector<Tensor> batched = values_of(given, {}), alone = values_of(given, {.immediate = true});
    for (std::size_t k = 0; k < alone.size(); ++k)
      if (alone[k].defined() && !same_bits(batched[k], alone[k])) return fmt::format("value {} differs", k);
    return std::string();
  };
  for (bool invariant : {false, true}) {
    set_batch_invariant(invariant);
    for (const Row& row : table())
      for (DType dtype : {f32, f64, bf16, f16}) {
        bool is_half = dtype == bf16 || dtype == f16;
        bool is_product = products.contains(row.op),
             may_vary =
                 is_half || by_columns.contains(row.op) || (is_product && row.name.find("transposed") != row.name.npos);
        if (!runs_in(row, dtype) || overwrites(row) || (!invariant && may_vary)) continue;
        for (Common common : {Common::none, Common::all_but_first}) {
          Case given = make_case(row, dtype, common);
          CAPTURE(row.name, name_of(dtype), invariant, static_cast<int>(common));
          CHECK(fault_of(given) == "");
          for (const InputLayout& layout : input_layouts) {
            if (!invariant && is_product && layout.name == "transposed") continue;
            CAPTURE(layout.name);
            Case other = given;
            std::map<const void*, Tensor> laid;  // one tensor for those that are one
            for (std::vector<Tensor>& inputs : other.inputs)
              for (Tensor& input : inputs) {
                auto [found, is_new] = laid.try_emplace(&input.body());
                if (is_new) found->second = layout.apply(input);
                input = found->second;
              }
            CHECK(fault_of(other) == "");
          }
        }
      }
  }
  set_batch_invariant(false);
}

TEST_CASE("calls of one op with other shapes and attributes in one batch give what they give alone") {
  CAPTURE(table_seed);
  std::map<std::string, std::vector<const Row*>> by_op;
  for (const Row& row : table()) by_op[row.op].push_back(&row);
  for (const auto& [op, rows] : by_op)
    for (DType dtype : {f32, f64, bf16})
      for (bool shares : {false, true}) {
        std::vector<const Row*> chosen, twice;
        for (const Row* row : rows) {
          if (!runs_in(*row, dtype)) continue;
          chosen.push_back(row);
          if (dtype == f64 && checks_second_order(*row)) twice.push_back(row);
        }
        CAPTURE(op, name_of(dtype), shares);
        CHECK(fault(make_mixed_case(chosen, dtype, shares), false, {.in_flight = 512}) == "");
        CHECK(fault(make_mixed_case(twice, dtype, shares), true, {.in_flight = 512}) == "");
      }
}

TEST_CASE("an op runs for several examples at once if and only if it has a rule of joining") {
  std::set<std::string, std::less<>> joined;
  for (const Row& row : table())
    for (Common common : {Common::none, Common::all_but_first, Common::last_two, Common::computed}) {
      if (row.op == "zero_" || (common == Common::computed && overwrites(row))) continue;
      BatchReport report;
      values_of(make_case(row, row.dtypes[0], common), {.report = &report});
      for (const BatchedLine& line : report.lines)
        if (line.groups > 0) joined.insert(line.op);
    }
  for (const detail::OpFamily& family : detail::registered_ops())
    for (const detail::OpInfo* op : family.ops)
      if (!op->internal) {
        CAPTURE(op->name);
        CHECK(joined.contains(std::string_view(op->name)) == (op->joining && op->joining != detail::runs_alone));
      }
}

}  // namespace reel_test
