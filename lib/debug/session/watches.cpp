#include "watches.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace reel::debug {

namespace {

double magnitude_of(const RecordedStatistics& statistics) {
  if (statistics.infinities > 0) return std::numeric_limits<double>::infinity();
  return std::max(std::abs(statistics.min), std::abs(statistics.max));
}

// `before`: the norm in the step before, 0 if there was none.
std::optional<std::string> seen(const Watch& watch, const RecordedOp& op, const RecordedTensor& output, double before) {
  const RecordedStatistics& statistics = output.statistics;
  std::int64_t numel = output.shape.numel();
  if (watch.anomalies && statistics.nans + statistics.infinities > 0) return "watch: NaN or infinity";
  // The program asks for the zeros of an op without inputs.
  bool is_computed = op.kind != OpKind::forward || !op.inputs.empty();
  if (watch.all_zero && is_computed && numel > 1 && statistics.zeros == numel) return "watch: all zero";
  if (magnitude_of(statistics) > watch.bound) return fmt::format("watch: a magnitude above {:g}", watch.bound);
  double norm = statistics.norm_of_all(), change = before > 0 ? norm / before : 1;
  // A comparison that NaN passes, too; without a bound the norm does not matter.
  if (op.kind == OpKind::gradient && std::isfinite(watch.gradient_norm) && !(norm <= watch.gradient_norm))
    return std::isnan(norm) ? "watch: a gradient's norm is NaN"
                            : fmt::format("watch: a gradient's norm above {:g}", watch.gradient_norm);
  if (std::isfinite(watch.scale_change) && !(std::max(change, 1 / change) <= watch.scale_change))
    return fmt::format("watch: the norm is {:.3g} times that of the step before", change);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> Watches::found_in(const RecordedOp& op) {
  double before = norm_before(op);
  for (const Watch& watch : watches_)
    for (const RecordedTensor& output : op.outputs)
      if (output.has_statistics)
        if (std::optional<std::string> reason = seen(watch, op, output, before)) return reason;
  return std::nullopt;
}

// The norm that the line's execution of the same index gave in the step before; 0 if there was none.
double Watches::norm_before(const RecordedOp& op) {
  bool asked = std::ranges::any_of(watches_, [](const Watch& watch) { return std::isfinite(watch.scale_change); });
  if (!asked || op.outputs.empty() || op.kind == OpKind::source) return 0;
  if (op.step != counted_step_) {
    norms_before_ = std::exchange(norms_, {});
    executions_.clear();
    counted_step_ = op.step;
  }
  Execution execution{op.file, op.op, op.module, op.line * 4 + static_cast<int>(op.kind), 0};
  execution.index = executions_[execution]++;
  norms_[execution] = op.outputs[0].statistics.norm_of_all();
  auto found = norms_before_.find(execution);
  return found != norms_before_.end() ? found->second : 0;
}

}  // namespace reel::debug
