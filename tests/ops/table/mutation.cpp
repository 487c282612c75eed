#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/storage.h"
#include "ops/registry.h"
#include "ops/table/interceptor_scope.h"
#include "ops/table/row_checks.h"
#include "record/gradient.h"
#include "record/tape_list.h"

// Tests that the op table detects wrong gradients. In each mutant one input of one op passes back its gradient
// with the wrong sign, or none: an identity op with a wrong gradient is inserted between the operand and the op.
// Every mutant must fail a check of a row. Some ops have another formula for gradients that an outer tape records, so the
// two are mutated separately.

namespace reel_test {

using namespace reel;
using detail::Call;
using detail::OpInfo;

namespace {

// An input of an op.
struct Place {
  const OpInfo* op;
  std::int64_t input;
  auto operator<=>(const Place&) const = default;
};

// A gradient that is passed back from such an input.
struct Flow {
  Place place;
  bool recorded;  // by an outer tape
  auto operator<=>(const Flow&) const = default;
};

enum class Change : std::uint8_t { none, flip, drop };

const char* name_of(Change change) { return change == Change::flip ? "sign flipped" : "dropped"; }

// The settings of inserted identity ops (mirrors), and the gradients that they have seen.
struct Experiment {
  Flow mutated{};
  Change change = Change::none;
  std::set<Flow> flows;  // of gradients that are not all zeros: a mutant of zeros cannot be detected
  std::set<Place> seen, tracked, passed;
};
Experiment experiment;

bool is_zero(const Tensor& gradient) {
  Array array = array_of(gradient);
  return std::all_of(array.values.begin(), array.values.end(), [](double value) { return value == 0; });
}

void pass_back(detail::Gradient& g) {
  Flow flow{g.attributes<Place>(), g.recording()};
  if (experiment.change == Change::none) {
    experiment.passed.insert(flow.place);
    if (!is_zero(g.output())) experiment.flows.insert(flow);
  }
  if (experiment.change == Change::none || flow != experiment.mutated)
    g.accumulate(0, g.output());
  else if (experiment.change == Change::flip)
    g.accumulate(0, neg(g.output()));
}

// y = x, sharing its elements
constexpr OpInfo mirror{
    .name = "mirror",
    .forward =
        [](Call& call) {
          const Tensor& x = *call.inputs[0];
          call.outputs[0] = detail::view_of(x, x.shape(), x.strides(), 0, call.where);
        },
    .gradient = pass_back,
};

// Puts mirrors before the inputs of recorded ops: of all ops, or of the mutated one.
class Mirrors : public detail::Interceptor {
 public:
  void run(Call& call) override {
    if (!wanted(call)) return run_and_record(call);
    std::vector<Tensor> mirrored(call.inputs.size());
    std::vector<const Tensor*> inputs(call.inputs.begin(), call.inputs.end());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Place place{&call.op, static_cast<std::int64_t>(i)};
      if (!is_floating(inputs[i]->dtype())) continue;
      if (experiment.change != Change::none && place != experiment.mutated.place) continue;
      mirrored[i] = detail::invoke_view(mirror, *inputs[i], call.where, detail::bytes_of(place));
      inputs[i] = &mirrored[i];
      if (experiment.change != Change::none) continue;
      experiment.seen.insert(place);
      if (detail::context().tapes->is_live(mirrored[i].body())) experiment.tracked.insert(place);
    }
    Call changed{call.op, inputs, call.attribute_bytes, call.specs, call.outputs, call.where};
    run_and_record(changed);
  }

 private:
  static bool wanted(const Call& call) {
    if (&call.op == &mirror || !call.op.gradient || !is_recording()) return false;
    // A check that is itself built from mutated ops would fail for any row.
    if (call.where.file && std::string_view(call.where.file).ends_with("gradcheck.cpp")) return false;
    return experiment.change == Change::none || &call.op == experiment.mutated.place.op;
  }
};

// One check of one row.
struct Check {
  const Row* row;
  std::string (*fault)(const Row& row);
  std::int64_t cost;
};

std::int64_t elements_of(const Row& row) {
  std::int64_t count = 1;
  for (const Input& input : row.inputs) count += input.shape.numel();
  return count;
}

// Cheap ones first.
std::vector<Check> all_checks() {
  std::vector<Check> checks;
  for (const Row& row : table()) {
    std::int64_t cost = elements_of(row);
    if (checks_gradient(row)) checks.push_back({&row, gradient_fault, cost});
    if (checks_second_order(row)) checks.push_back({&row, second_order_fault, 10 * cost});
    if (row.differentiable) checks.push_back({&row, narrow_gradient_fault, 5 * cost});
  }
  std::stable_sort(checks.begin(), checks.end(), [](const Check& a, const Check& b) { return a.cost < b.cost; });
  return checks;
}

std::string fault_of(const Check& check) {
  try {
    return check.fault(*check.row);
  } catch (const std::exception& error) {
    return error.what();
  }
}

// The checks in which a gradient flows back, by input.
using Reached = std::map<Flow, std::vector<Check>>;

Reached find_flows(const std::vector<Check>& checks, std::vector<std::string>& failures) {
  Reached reached;
  experiment.change = Change::none;
  for (const Check& check : checks) {
    experiment.flows.clear();
    if (std::string fault = fault_of(check); !fault.empty())
      failures.push_back(fmt::format("{} fails without any mutation: {}", check.row->name, fault));
    for (const Flow& flow : experiment.flows) reached[flow].push_back(check);
  }
  return reached;
}

bool is_killed(const Flow& flow, Change change, const std::vector<Check>& checks) {
  experiment.mutated = flow;
  experiment.change = change;
  return std::any_of(checks.begin(), checks.end(), [](const Check& check) { return !fault_of(check).empty(); });
}

// Within batch_map no other interceptor runs; tests/batching tests the ops that only it uses, with their gradients.
bool is_of_batch_map(std::string_view op) { return op == "batch" || op == "unbatch"; }

// These ops are given their own result, computed from copies without a tape, so that no gradient flows back to it.
bool is_given_result(const Place& place) {
  std::string_view op = place.op->name;
  return ((op == "lu" || op == "pinv") && place.input == 1) || (op == "scatter_reduce" && place.input == 3);
}

// Differentiable ops and inputs that no row tests.
std::vector<std::string> unreached() {
  std::vector<std::string> lines;
  std::set<const OpInfo*> with_flow;
  for (const Place& place : experiment.passed) with_flow.insert(place.op);
  for (const detail::OpFamily& family : detail::registered_ops())
    for (const OpInfo* op : family.ops)
      if (op->gradient && !op->needs_device && !is_of_batch_map(op->name) && !with_flow.contains(op))
        lines.push_back(fmt::format("{}: no check of a row asks for its gradient", op->name));
  for (const Place& place : experiment.seen)
    if (!experiment.tracked.contains(place) && !is_given_result(place))
      lines.push_back(fmt::format("{}, input {}: no row asks for its gradient", place.op->name, place.input));
  return lines;
}

int run() {
  Mirrors mirrors;
  InterceptorScope interceptor(mirrors);
  std::vector<std::string> survivors;
  Reached reached = find_flows(all_checks(), survivors);
  for (std::string& line : unreached()) survivors.push_back(std::move(line));
  int mutants = 0, killed = 0;
  for (const auto& [flow, checks] : reached)
    for (Change change : {Change::flip, Change::drop}) {
      ++mutants;
      if (is_killed(flow, change, checks))
        ++killed;
      else
        survivors.push_back(fmt::format("{}, input {}: gradient {}{} ({} checks pass)", flow.place.op->name,
                                        flow.place.input, name_of(change),
                                        flow.recorded ? ", where an outer tape records it" : "", checks.size()));
    }
  std::sort(survivors.begin(), survivors.end());
  for (const Place& place : experiment.passed)
    if (!reached.contains({place, false}) && !reached.contains({place, true}))
      fmt::print("no mutant {}, input {}: its gradient is zero in every row\n", place.op->name, place.input);
  for (const std::string& line : survivors) fmt::print("survives  {}\n", line);
  fmt::print("{} mutants, {} killed; {}\n", mutants, killed,
             survivors.empty() ? std::string("no survivors") : fmt::format("{} survivors", survivors.size()));
  return survivors.empty() ? 0 : 1;
}

}  // namespace

}  // namespace reel_test

int main() { return reel_test::run(); }
