#include "verify.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <reel/ops.h>
#include <reel/tape.h>

#include "../dispatch/invoke.h"
#include "../ops/if_needed.h"
#include "../record/tape_list.h"

namespace reel::detail {
namespace {

// The calls with operands of their own, one for each operand of theirs, and with empty results.
class Copies {
 public:
  Copies(const TapeList& tapes, std::span<QueuedCall* const> calls) : tapes_(tapes) {
    for (const QueuedCall* one : calls) {
      std::vector<const Tensor*>& inputs = inputs_.emplace_back();
      for (const Tensor* input : one->call.inputs) inputs.push_back(copy_of(*input));
      outputs_.emplace_back(one->call.outputs.size());
      const Call& call = one->call;
      calls_.push_back({call.op, inputs, call.attribute_bytes, call.specs, outputs_.back(), call.where});
      pointers_.push_back(&queued_.emplace_back(QueuedCall{calls_.back(), one->context, one->task}));
    }
  }

  std::span<QueuedCall* const> queued() const { return pointers_; }
  std::deque<Call>& calls() { return calls_; }
  const std::vector<Tensor>& sources() const { return sources_; }
  // Weighted without symmetry, so that exchanged elements show.
  Tensor total() const {
    Tensor total = zeros({}, {.dtype = f64});
    for (const std::vector<Tensor>& outputs : outputs_)
      for (const Tensor& output : outputs)
        if (output.defined() && is_floating(output.dtype()) && output.numel() > 0) {
          Tensor weights = cos(to(arange(output.numel(), {.dtype = i64, .device = output.device()}), f64) * 1.3);
          total = total + to_if_needed(sum(to_if_needed(reshape(output, {-1}), f64) * weights), cpu);
        }
    return total;
  }

 private:
  // An operand that calls of the group share is copied once.
  const Tensor* copy_of(const Tensor& x) {
    auto found = std::ranges::find_if(made_, [&](const auto& one) { return is_same(tapes_, *one.first, x); });
    if (found != made_.end()) return &found->second;
    const Tensor& made = made_.emplace_back(&x, copy(x)).second;
    if (is_floating(x.dtype())) sources_.push_back(made);
    return &made;
  }

  const TapeList& tapes_;
  std::deque<std::pair<const Tensor*, Tensor>> made_;
  std::vector<Tensor> sources_;
  std::deque<std::vector<const Tensor*>> inputs_;
  std::deque<std::vector<Tensor>> outputs_;
  std::deque<Call> calls_;
  std::deque<QueuedCall> queued_;
  std::vector<QueuedCall*> pointers_;
};

double unit_of(DType dtype) {
  if (dtype == f64) return std::numeric_limits<double>::epsilon();
  if (dtype == f32) return std::numeric_limits<float>::epsilon();
  return dtype == bf16 ? 0x1p-7 : 0x1p-10;
}

// Sums of many products in another order may differ by this much.
constexpr double units = 1000;

bool differs(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() != b.defined();
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) return true;
  if (a.numel() == 0) return false;
  std::vector<double> x = to(to_if_needed(contiguous_if_needed(a), cpu), f64).to_vector<double>(),
                      y = to(to_if_needed(contiguous_if_needed(b), cpu), f64).to_vector<double>();
  double largest = 1;
  for (double value : y)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  double bound = is_floating(a.dtype()) ? std::min(units * unit_of(a.dtype()), 0.1) * largest : 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    if (x[i] != y[i] && !(std::abs(x[i] - y[i]) <= bound)) return true;
  }
  return false;
}

std::vector<Tensor> gradients(Tape& tape, const Copies& copies) {
  // A sum that depends on every source, also where the op does not.
  Tensor total = copies.total();
  for (const Tensor& source : copies.sources()) total = total + 0 * to_if_needed(to_if_needed(sum(source), f64), cpu);
  return tape.gradient(total, copies.sources(), {.unconnected = Unconnected::zeros});
}

}  // namespace

std::string verify_group(Context& context, std::span<QueuedCall* const> calls, const Joining& joining,
                         std::size_t& differing) {
  // A view is no computation.
  if (calls[0]->call.specs.empty()) return {};
  Copies joined(*context.tapes, calls), single(*context.tapes, calls);
  // Under NoRecord no tape may be opened, and there are no gradients.
  bool records = context.has(Context::recording) || context.tapes->depth == 0;
  bool differentiates = records && calls[0]->call.op.gradient && !joined.sources().empty();
  auto gradients_of = [&](const Copies& copies, auto run) {
    if (!differentiates) {
      run();
      return std::vector<Tensor>();
    }
    Tape tape;
    for (const Tensor& source : copies.sources()) tape.watch(source);
    run();
    return gradients(tape, copies);
  };
  JoinedParts before;
  std::vector<Tensor> found = gradients_of(joined, [&] { Group(context, joined.queued(), joining, before).run(); });
  std::vector<Tensor> expected = gradients_of(single, [&] {
    for (Call& call : single.calls()) {
      invoke(call);
      for (std::size_t j = 0; j < call.outputs.size(); ++j)
        // A listener sees those of the group, too.
        if (joining.dropped_outputs >> j & 1 && !calls[0]->call.outputs[j].defined()) call.outputs[j].reset();
    }
  });
  for (std::size_t k = 0; k < calls.size(); ++k)
    for (std::size_t j = 0; j < calls[k]->call.outputs.size(); ++j)
      if (differs(joined.calls()[k].outputs[j], single.calls()[k].outputs[j]) ||
          differs(calls[k]->call.outputs[j], single.calls()[k].outputs[j])) {
        differing = k;
        return "gives another result";
      }
  for (std::size_t i = 0; i < found.size(); ++i)
    if (differs(found[i], expected[i])) {
      differing = 0;
      return fmt::format("gives another gradient of {}", describe(found[i]));
    }
  return {};
}

}  // namespace reel::detail
