
#include "state.h"

namespace reel::debug {

namespace {

bool is_step(const RecordedOp& op) { return op.kind != OpKind::source; }

void move_to(Debugger::State& state, const RecordedOp& op, std::string_view reason) {
  state.cursor = op.id;
  state.print("{}{}{}\n", reason, reason.empty() ? "" : ": ", sentence_of(op));
  if (!op.error.empty()) state.print("  error: {}\n", op.error);
  for (std::size_t i = 0; i < op.outputs.size(); ++i)
    state.print("  output {}: {}: {}\n", i, form_of(op.outputs[i]), statistics_text(op.outputs[i]));
}

// The first op behind the cursor that a condition matches; null: none.
const RecordedOp* next_match(const Debugger::State& state, const std::function<bool(const RecordedOp&)>& matches) {
  for (const RecordedOp& op : state.run.ops())
    if (op.id > state.cursor && matches(op)) return &op;
  return nullptr;
}

void run_until(Debugger::State& state, const Condition& condition) {
  if (condition.is_position && state.cursor != 0 && condition.matches(state.op(state.cursor)))
    refuse_command("the run cannot come to {} any more: it is at {}", condition.text,
                   short_sentence_of(state.op(state.cursor)));
  if (state.options.resume) {
    state.options.resume(condition.matches);
    state.next = Debugger::Next::resume;
    return;
  }
  if (const RecordedOp* found = next_match(state, condition.matches))
    return move_to(state, *found, "stopped, " + condition.text);
  refuse_command("the recording ends without {}", condition.text);
}

Words behind_until(const Words& words) {
  if (words[0] != "until") refuse_command("write until CONDITION");
  return {words.begin() + 1, words.end()};
}

}  // namespace

void Debugger::stop_at(const RecordedOp& op, std::string_view reason) { move_to(*state_, op, reason); }

void show_cursor(Debugger::State& state, const Words&) {
  if (state.run.ops().empty()) {
    state.print("The run has no ops.\n");
    return;
  }
  const std::deque<RecordedOp>& ops = state.run.ops();
  state.print("{} ops, %{} to %{}, steps {} to {}{}{}\n", ops.size(), ops.front().id, ops.back().id, ops.front().step,
              ops.back().step,
              state.run.dropped() > 0 ? fmt::format("; {} older ones were dropped", state.run.dropped()) : "",
              state.run.is_complete() || state.options.resume ? "" : "; the program has not closed the recording");
  if (state.cursor == 0)
    state.print("at the beginning\n");
  else
    move_to(state, state.op(state.cursor), "at");
}

void step_forward(Debugger::State& state, const Words& words) {
  std::int64_t count = words.empty() ? 1 : integer_of(words[0], "the number of ops", 1);
  if (state.options.resume) {
    state.options.resume([count](const RecordedOp& op) mutable { return is_step(op) && --count <= 0; });
    state.next = Debugger::Next::resume;
    return;
  }
  const RecordedOp* found = next_match(state, [&](const RecordedOp& op) { return is_step(op) && --count == 0; });
  if (!found) refuse_command("the recording has no such op behind %{}", state.cursor);
  move_to(state, *found, "");
}

void step_back(Debugger::State& state, const Words& words) {
  std::int64_t count = words.empty() ? 1 : integer_of(words[0], "the number of ops", 1);
  const std::deque<RecordedOp>& ops = state.run.ops();
  for (std::size_t i = ops.size(); i-- > 0;)
    if (ops[i].id < state.cursor && is_step(ops[i]) && --count == 0) return move_to(state, ops[i], "");
  refuse_command("the recording has no such op before %{}", state.cursor);
}

void continue_run(Debugger::State& state, const Words& words) {
  if (!words.empty()) return run_until(state, state.condition(behind_until(words)));
  if (state.options.resume) {
    state.options.resume({});
    state.next = Debugger::Next::resume;
    return;
  }
  if (state.run.ops().empty()) refuse_command("the run has no ops");
  move_to(state, state.run.ops().back(), "the recording ends");
}

void run_from_start(Debugger::State& state, const Words& words) {
  if (!state.options.resume) state.cursor = 0;
  continue_run(state, words);
}

}  // namespace reel::debug
