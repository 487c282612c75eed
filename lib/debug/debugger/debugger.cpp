#include <reel/debug/debugger.h>

#include <algorithm>
#include <set>

#include "../../core/op_error.h"
#include "../../core/printable.h"
#include "state.h"

namespace reel::debug {

namespace {

Words words_of(std::string_view line) {
  Words words;
  std::string word;
  bool quoted = false, started = false;
  for (char c : line) {
    if (c == '"') {
      quoted = !quoted;
      started = true;
    } else if (!quoted && (c == ' ' || c == '\t' || c == '\r')) {
      if (started) words.push_back(std::move(word));
      word.clear();
      started = false;
    } else {
      word += c;
      started = true;
    }
  }
  if (quoted) refuse_command("a quotation mark is missing");
  if (started) words.push_back(std::move(word));
  return words;
}

void show_filters(Debugger::State& state, const Words&) {
  for (const auto& [name, filter] : state.filters) state.print("{}\n", name);
}

void quit(Debugger::State& state, const Words&) { state.next = Debugger::Next::quit; }

void help(Debugger::State& state, const Words& words) {
  std::vector<std::vector<std::string>> rows;
  for (const Command& command : debugger_commands())
    if (words.empty() || words[0] == command.name)
      rows.push_back({fmt::format("{} {}", command.name, command.usage), command.help});
  if (rows.empty()) refuse_command("there is no command {}; `help` lists them", detail::shown(words[0]));
  if (!words.empty())
    state.print("{}\n  {}\n", rows[0][0], rows[0][1]);
  else
    state.print("{}", table_of(rows, 1000));
}

std::map<std::string, TensorFilter, std::less<>> usual_filters() {
  return {
      {"has_inf_or_nan",
       [](const RecordedOp&, const RecordedTensor& tensor) {
         return tensor.statistics.nans + tensor.statistics.infinities > 0;
       }},
      {"has_nan", [](const RecordedOp&, const RecordedTensor& tensor) { return tensor.statistics.nans > 0; }},
      {"has_inf", [](const RecordedOp&, const RecordedTensor& tensor) { return tensor.statistics.infinities > 0; }},
      {"all_zero",
       [](const RecordedOp&, const RecordedTensor& tensor) {
         return tensor.has_statistics && tensor.shape.numel() > 0 && tensor.statistics.zeros == tensor.shape.numel();
       }},
      {"zero_units", [](const RecordedOp&, const RecordedTensor& tensor) { return !tensor.zero_units.empty(); }},
      {"error", [](const RecordedOp& op, const RecordedTensor&) { return !op.error.empty(); }},
      {"gradient", [](const RecordedOp& op, const RecordedTensor&) { return op.kind == OpKind::gradient; }},
  };
}

}  // namespace

const std::vector<Command>& debugger_commands() {
  static const std::vector<Command> commands = {
      {"lt", "[-f FILTER] [-n NAME] [-o OP] [-l [FILE:]LINE] [-m MODULE] [-s id|time|size] [-r] [-a] [-c COUNT]",
       "list tensors; NAME is a regular expression, -a shows those of backward passes, too", list_tensors},
      {"ni", "[%ID]", "node info: an op with its inputs, outputs, consumers and gradient", show_op},
      {"pt", "[%ID[:OUTPUT]|NAME][[SLICE]] [-s] [-h]",
       "print a tensor or a slice of it, as [0:3, 1]; -s statistics only, -h a histogram", print_tensor},
      {"li", "[%ID] [-d DEPTH]", "list inputs, recursively", show_inputs},
      {"lo", "[%ID] [-d DEPTH]", "list the ops that use the outputs, recursively", show_outputs},
      {"src", "[FILE[:LINE]|LINE]", "source lines with the tensors that they made last", show_source},
      {"grad", "[%ID]", "the gradient of an op's outputs, and of all executions of its line", show_gradient},
      {"diff", "%ID %ID", "compare two tensors", compare_tensors},
      {"where", "", "where the run is stopped", show_cursor},
      {"step", "[COUNT]", "go to the next op", step_forward},
      {"back", "[COUNT]", "go to the op before", step_back},
      {"cont", "[until CONDITION]",
       "go on until a condition: a filter, an op, FILE:LINE, step N, or id N; without one to the end", continue_run},
      {"run", "[until CONDITION]", "go on from the beginning", run_from_start},
      {"filters", "", "list filters", show_filters},
      {"help", "[COMMAND]", "list commands", help},
      {"quit", "", "end the session", quit},
  };
  return commands;
}

Debugger::Debugger(const RecordedRun& run, DebuggerOptions options, Location where) {
  if (!options.output) detail::fail<Error>("debug::Debugger", where, "there is no .output to print to");
  options.width = std::max(options.width, 40);
  state_ = std::make_unique<State>(State{run, std::move(options)});
  state_->filters = usual_filters();
}

Debugger::~Debugger() = default;

void Debugger::State::print_text(const std::string& unchecked) { options.output(detail::printable_lines(unchecked)); }

int Debugger::failures() const { return state_->failures; }

void Debugger::add_filter(std::string_view name, TensorFilter filter, Location where) {
  if (name.empty() || !filter) detail::fail<Error>("Debugger::add_filter", where, "the name or the filter is empty");
  state_->filters.insert_or_assign(std::string(name), std::move(filter));
}

Debugger::Next Debugger::execute(std::string_view line) {
  state_->next = Next::command;
  try {
    Words words = words_of(line);
    if (words.empty() || words[0].starts_with('#')) return Next::command;
    const std::vector<Command>& commands = debugger_commands();
    auto found =
        std::find_if(commands.begin(), commands.end(), [&](const Command& one) { return one.name == words[0]; });
    if (found == commands.end()) refuse_command("there is no command {}; `help` lists them", detail::shown(words[0]));
    words.erase(words.begin());
    found->run(*state_, words);
  } catch (const CommandError& error) {
    ++state_->failures;
    state_->print("error: {}\n", error.what());
  } catch (const Error& error) {
    ++state_->failures;
    state_->print("error: {}\n", error.what());
  }
  return state_->next;
}

std::vector<std::string> Debugger::completions(std::string_view line) const {
  std::size_t space = line.rfind(' ');
  std::string_view start = space == std::string_view::npos ? line : line.substr(space + 1);
  std::set<std::string> found;
  auto offer = [&](std::string_view text) {
    if (!text.empty() && text.starts_with(start)) found.emplace(text);
  };
  if (space == std::string_view::npos) {
    for (const Command& command : debugger_commands()) offer(command.name);
    return {found.begin(), found.end()};
  }
  std::string_view before = line.substr(0, space);
  std::string_view last = before.substr(before.rfind(' ') + 1);
  bool wants_op = last == "-o" || last == "until" || last == "op";
  if (last == "-f" || last == "until")
    for (const auto& [name, filter] : state_->filters) offer(name);
  if (line.starts_with("help "))
    for (const Command& command : debugger_commands()) offer(command.name);
  if (last == "cont" || last == "run") offer("until");
  if (last == "-s")
    for (std::string_view order : {"id", "time", "size"}) offer(order);
  for (const RecordedOp& op : state_->run.ops()) {
    if (wants_op) offer(op.op);
    if (last == "-m") offer(op.module);
    if (!last.starts_with('-') && !wants_op)
      for (const RecordedTensor& output : op.outputs) offer(output.name);
  }
  return {found.begin(), found.end()};
}

}  // namespace reel::debug
