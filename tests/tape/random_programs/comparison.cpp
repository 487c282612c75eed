#include "comparison.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/context.h"
#include "core/storage.h"
#include "record/tape_list.h"
#include "runner.h"
#include "sizes.h"

namespace reel_test::programs {

namespace {

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::done: return "success";
    case Outcome::tape_error: return "TapeError";
    case Outcome::shape_error: return "ShapeError";
    case Outcome::user_error: return "the hook's error";
    case Outcome::may_tape_error: return "success or TapeError";
    case Outcome::unknown: return "anything";
  }
  return "";
}

std::vector<double> elements(const reel::Tensor& x) {
  reel::Shape shape = x.shape(), strides = x.strides();
  std::vector<double> values;
  std::int64_t count = shape.numel();
  const double* first = x.strided_data<double>();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t place = 0, rest = i;
    for (int axis = shape.rank(); axis-- > 0;) {
      place += rest % shape[axis] * strides[axis];
      rest /= shape[axis];
    }
    values.push_back(first[place]);
  }
  return values;
}

class Comparison {
 public:
  explicit Comparison(std::uint64_t seed) : model_(seed), runner_(seed), tensors_before_(live_tensors()) {}

  std::string run(const Program& program) {
    std::string found;
    for (const Instruction& instruction : program) {
      if (!model_.can_run(instruction)) continue;
      found = step(instruction);
      if (!found.empty()) found = "at " + to_string(instruction) + "  " + found;
      if (!found.empty() || is_over_) break;
    }
    std::vector<Interpreter::Scope> scopes = model_.scopes();
    std::reverse(scopes.begin(), scopes.end());
    runner_.end(scopes);
    return found.empty() ? leak() : found;
  }

 private:
  std::string step(const Instruction& instruction) {
    std::map<int, std::pair<int, std::uint32_t>> before;
    for (auto [variable, tensor] : model_.variables())
      before[variable] = {model_.memory(model_.tensor(variable)).version, version(variable)};
    Outcome expected = model_.run(instruction);
    if (expected == Outcome::unknown) {
      is_over_ = true;
      return {};
    }
    Outcome found = runner_.run(instruction);
    if (expected == Outcome::may_tape_error) {
      is_over_ = found == Outcome::tape_error;
      if (is_over_) return {};
      expected = Outcome::done;
    }
    if (found != expected)
      return fmt::format("gave {}{}, not {}", name_of(found),
                         found == Outcome::done || found == Outcome::user_error ? "" : " (" + runner_.error() + ")",
                         name_of(expected));
    // The library may run any hooks before it refuses a differentiation.
    bool all_ran = found != Outcome::tape_error;
    if (std::string text = all_ran ? compare_hooks() : ""; !text.empty()) return text;
    if (reel::is_recording() != model_.is_recording()) return fmt::format("is_recording() is {}", reel::is_recording());
    for (auto [variable, tensor] : model_.variables()) {
      auto old = before.find(variable);
      bool is_new = old == before.end();
      std::string text = is_new ? "" : compare_version(variable, old->second.first, old->second.second);
      if (text.empty()) text = compare_form(variable, tensor);
      // Large ones are compared when they are new, and where they should have changed.
      bool changed = is_new || model_.memory(model_.tensor(variable)).version != old->second.first;
      if (text.empty() && (changed || runner_.tensor(variable).numel() < 100)) text = compare_values(variable);
      if (!text.empty()) return fmt::format("v{}: {}", variable, text);
    }
    return {};
  }

  std::uint32_t version(int variable) const { return runner_.tensor(variable).body().storage->version; }

  std::string compare_version(int variable, int model_before, std::uint32_t before) const {
    bool expected = model_.memory(model_.tensor(variable)).version != model_before;
    bool found = version(variable) != before;
    if (found == expected) return {};
    return found ? "its version was raised" : "its version was not raised";
  }

  std::string compare_form(int variable, int tensor) const {
    const ModelTensor& expected = model_.tensor(variable);
    const reel::Tensor& found = runner_.tensor(variable);
    reel::Shape shape = found.shape(), strides = found.strides();
    if (Sizes(shape.begin(), shape.end()) != expected.shape)
      return fmt::format("shape {}, not {}", to_string(shape), expected.shape);
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (shape[axis] != 1 && strides[axis] != expected.strides[static_cast<std::size_t>(axis)])
        return fmt::format("strides {}, not {}", to_string(strides), expected.strides);
    bool is_tracked = reel::detail::context().tapes->is_live(found.body());
    if (is_tracked != model_.is_tracked(expected)) return is_tracked ? "it is tracked" : "it is not tracked";
    return compare_aliases(variable, tensor);
  }

  std::string compare_values(int variable) const {
    std::vector<double> found = elements(runner_.tensor(variable)), expected, errors;
    for (const Scalar& value : model_.values(model_.tensor(variable))) {
      expected.push_back(value.value);
      errors.push_back(value.error);
    }
    return are_near(found, expected, errors) ? "" : fmt::format("values {}, not {}", found, expected);
  }

  // Both are within the error that the interpreter knows of the exact value; see error_of in scalars.cpp.
  static bool are_near(const std::vector<double>& found, const std::vector<double>& expected,
                       const std::vector<double>& errors) {
    for (std::size_t i = 0; i < found.size(); ++i)
      if (!(std::abs(found[i] - expected[i]) <= 2 * errors[i])) return false;
    return found.size() == expected.size();
  }

  std::string compare_aliases(int variable, int tensor) const {
    const reel::Tensor& x = runner_.tensor(variable);
    for (auto [other, other_tensor] : model_.variables()) {
      if (other >= variable) break;
      const reel::Tensor& y = runner_.tensor(other);
      if (x.is(y) != (tensor == other_tensor))
        return fmt::format("it is {}the tensor v{}", x.is(y) ? "" : "not ", other);
      bool shares = x.body().storage == y.body().storage;
      if (shares != (model_.tensor(variable).memory == model_.tensor(other).memory))
        return fmt::format("it shares {}elements with v{}", shares ? "" : "no ", other);
    }
    return {};
  }

  std::string compare_hooks() const {
    auto sorted = [](std::vector<HookCall> calls) {
      std::ranges::stable_sort(calls, {}, &HookCall::hook);
      return calls;
    };
    std::vector<HookCall> expected = sorted(model_.hook_calls()), found = sorted(runner_.hook_calls());
    // A hook that throws ends the pass; which others ran before is the library's choice.
    if (expected.size() != found.size()) return fmt::format("{} hooks ran, not {}", found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i].hook != expected[i].hook || !are_near(found[i].gradient, expected[i].gradient, expected[i].errors))
        return fmt::format("hook {} saw {}, not hook {} {}", found[i].hook, found[i].gradient, expected[i].hook,
                           expected[i].gradient);
    return {};
  }

  static std::int64_t live_tensors() {
    std::int64_t count = 0;
    for (const reel::debug::LiveTensors& line : reel::debug::live_tensors()) count += line.count;
    return count;
  }

  std::string leak() const {
    if (reel::is_recording()) return "after the end: is_recording() is true";
    const reel::detail::TapeList& list = *reel::detail::context().tapes;
    if (list.depth != 0 || list.entry_count() != 0 || list.slot_count() != 1)
      return fmt::format("after the end: {} tapes are open, {} entries and {} slots are left", list.depth,
                         list.entry_count(), list.slot_count() - 1);
    std::int64_t left = live_tensors() - tensors_before_;
    return left == 0 ? "" : fmt::format("after the end: {} tensors are left", left);
  }

  Interpreter model_;
  Runner runner_;
  std::int64_t tensors_before_;
  bool is_over_ = false;
};

}  // namespace

std::string difference(const Program& program, std::uint64_t seed) {
  Comparison comparison(seed);
  try {
    return comparison.run(program);
  } catch (const std::exception& error) {
    return fmt::format("threw {}", error.what());
  }
}

}  // namespace reel_test::programs
