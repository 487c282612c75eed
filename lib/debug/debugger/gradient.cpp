#include <algorithm>
#include <cmath>

#include "state.h"

namespace reel::debug {

namespace {

constexpr std::size_t most_rows = 16;

// The executions of an op's line within its step, the op's own among them, in order.
std::vector<const RecordedOp*> executions_of(const RecordedRun& run, const RecordedOp& op) {
  std::vector<const RecordedOp*> found;
  for (const RecordedOp& other : run.ops())
    if (other.kind == op.kind && other.op == op.op && other.line == op.line && other.file == op.file &&
        other.module == op.module && other.step == op.step)
      found.push_back(&other);
  return found;
}

// −1: it was not recorded.
double norm_of_gradient(const RecordedRun& run, const RecordedOp& op) {
  const RecordedOp* gradient = run.gradient_of(op.id);
  bool known = gradient && !gradient->outputs.empty() && gradient->outputs[0].has_statistics;
  return known ? gradient->outputs[0].statistics.norm_of_all() : -1;
}

}  // namespace

void show_gradient(Debugger::State& state, const Words& words) {
  const RecordedOp& op = state.op_of(words);
  const RecordedOp* gradient = op.kind == OpKind::gradient ? &op : state.run.gradient_of(op.id);
  if (!gradient)
    refuse_command("no gradient of {} was recorded: no backward pass of the recording has reached it", sentence_of(op));
  state.print("{}\n", sentence_of(*gradient));
  for (std::size_t i = 0; i < gradient->outputs.size(); ++i)
    state.print("  gradient of output {}: {}: {}\n", i, form_of(gradient->outputs[i]),
                statistics_text(gradient->outputs[i]));
  if (op.kind == OpKind::gradient) return;
  std::vector<const RecordedOp*> executions = executions_of(state.run, op);
  if (executions.size() < 2) return;
  state.print("  norms of the gradients at the {} executions of this line in step {}:\n", executions.size(), op.step);
  double largest = 0;
  for (const RecordedOp* one : executions)
    if (double norm = norm_of_gradient(state.run, *one); std::isfinite(norm)) largest = std::max(largest, norm);
  std::vector<std::vector<std::string>> rows;
  const std::size_t every = (executions.size() + most_rows - 1) / most_rows;
  // On a scale of ten powers of ten, since gradients vanish by factors.
  for (std::size_t i = 0; i < executions.size(); ++i) {
    const RecordedOp& one = *executions[i];
    if (i % every != 0 && &one != &op) continue;
    double norm = norm_of_gradient(state.run, one);
    double share = !std::isfinite(norm) ? 1 : norm > 0 ? 1 + std::log10(norm / largest) / 10 : 0;
    rows.push_back({fmt::format("  {}{}", &one == &op ? "→ " : "  ", i), fmt::format("%{}", one.id),
                    norm < 0 ? "none" : fmt::format("{:.3e}", norm), bar_of(share, 40), std::string(one.notes)});
  }
  state.print("{}", table_of(rows, state.options.width));
}

}  // namespace reel::debug
