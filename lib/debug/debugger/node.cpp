#include <set>

#include "state.h"

namespace reel::debug {

namespace {

// Each level takes a call, and two columns of a line.
constexpr std::int64_t most_depth = 1000;

std::string line_of_tensor(const Debugger::State& state, TensorId id) {
  const RecordedOp* op = state.run.find(id.op);
  if (!op) return fmt::format("%{} is not in the recording", id.op);
  std::string text = short_sentence_of(*op);
  if (id.output < op->outputs.size()) text += fmt::format(": {}", form_of(op->outputs[id.output]));
  return text;
}

// Depth-first over inputs or consumers, each op once.
class Tree {
 public:
  Tree(Debugger::State& state, bool inputs, std::int64_t depth) : state_(state), inputs_(inputs), depth_(depth) {}

  void print(const RecordedOp& op, std::int64_t level = 0) {
    bool repeated = !seen_.insert(op.id).second;
    std::string form = op.outputs.empty() ? std::string() : ": " + form_of(op.outputs[0]);
    state_.print("{:{}}{}{}{}\n", "", 2 * level, short_sentence_of(op), form, repeated ? " (shown above)" : "");
    if (repeated) return;
    std::vector<std::uint64_t> next = neighbours(op);
    if (level == depth_) {
      if (!next.empty()) state_.print("{:{}}… {} more; -d DEPTH goes deeper\n", "", 2 * (level + 1), next.size());
      return;
    }
    for (std::uint64_t id : next)
      if (const RecordedOp* found = state_.run.find(id))
        print(*found, level + 1);
      else
        state_.print("{:{}}%{} is not in the recording\n", "", 2 * (level + 1), id);
  }

 private:
  std::vector<std::uint64_t> neighbours(const RecordedOp& op) const {
    std::vector<std::uint64_t> ids;
    auto add = [&](std::uint64_t id) {
      if (id != 0 && std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
    };
    if (inputs_)
      for (const TensorId& input : op.inputs) add(input.op);
    else
      for (std::size_t i = 0; i < op.outputs.size(); ++i)
        for (std::uint64_t id : state_.run.consumers({op.id, static_cast<std::uint32_t>(i)})) add(id);
    return ids;
  }

  Debugger::State& state_;
  bool inputs_;
  std::int64_t depth_;
  std::set<std::uint64_t> seen_;
};

void show_tree(Debugger::State& state, Words words, bool inputs) {
  std::int64_t depth = 3;
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == "-d") {
      depth = integer_of(words[i + 1], "the depth");
      if (depth > most_depth) refuse_command("the depth is {}, but must be at most {}", depth, most_depth);
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i), words.begin() + static_cast<std::ptrdiff_t>(i) + 2);
      break;
    }
  Tree(state, inputs, depth).print(state.op_of(words));
}

}  // namespace

void show_op(Debugger::State& state, const Words& words) {
  const RecordedOp& op = state.op_of(words);
  state.print("{}\n", sentence_of(op));
  state.print("  {}, thread {}, {} after {}\n", name_of(op.kind), op.thread,
              op.duration > 0 ? text_of_time(op.duration) : "no time", text_of_time(op.start));
  if (!op.error.empty()) state.print("  error: {}\n", op.error);
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    state.print("  input {}: {}\n", i, line_of_tensor(state, op.inputs[i]));
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const RecordedTensor& output = op.outputs[i];
    std::string name = output.name.empty() ? "" : fmt::format(" '{}'", output.name);
    state.print("  output {}{}: {} on {}, {}: {}\n", i, name, form_of(output), to_string(output.device),
                text_of_bytes(output.bytes()), statistics_text(output));
    const std::vector<std::uint64_t>& consumers = state.run.consumers({op.id, static_cast<std::uint32_t>(i)});
    for (std::size_t k = 0; k < std::min<std::size_t>(consumers.size(), 8); ++k)
      if (const RecordedOp* consumer = state.run.find(consumers[k]))
        state.print("    used by {}\n", short_sentence_of(*consumer));
    if (consumers.size() > 8) state.print("    and by {} more\n", consumers.size() - 8);
  }
  if (const RecordedOp* gradient = state.run.gradient_of(op.id))
    state.print("  gradient: {}: {}\n", short_sentence_of(*gradient),
                gradient->outputs.empty() ? "" : statistics_text(gradient->outputs[0]));
  if (const RecordedOp* forward = op.forward != 0 ? state.run.find(op.forward) : nullptr)
    state.print("  of {}\n", short_sentence_of(*forward));
}

void show_inputs(Debugger::State& state, const Words& words) { show_tree(state, words, true); }
void show_outputs(Debugger::State& state, const Words& words) { show_tree(state, words, false); }

}  // namespace reel::debug
