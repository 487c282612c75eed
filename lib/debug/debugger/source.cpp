#include <map>
#include <sstream>

#include "../../core/printable.h"
#include "../recorded_run/source_of.h"
#include "state.h"

namespace reel::debug {

namespace {

// The file of the run whose path ends as asked. Throws: CommandError.
std::string file_of(const Debugger::State& state, const std::string& asked) {
  std::map<std::string_view, int> files;
  for (const RecordedOp& op : state.run.ops())
    if (!op.file.empty() && op.file.ends_with(asked)) ++files[op.file];
  if (files.empty()) refuse_command("no op of the run was called in a file {}", detail::shown(asked));
  if (files.size() > 1) refuse_command("several files end in {}; write more of the path", detail::shown(asked));
  return std::string(files.begin()->first);
}

// The latest ops of each line, and how often the line has run.
struct LineOps {
  std::vector<const RecordedOp*> last;
  std::size_t count = 0;
};

std::map<int, LineOps> ops_by_line(const Debugger::State& state, std::string_view file) {
  std::map<int, LineOps> lines;
  for (const RecordedOp& op : state.run.ops()) {
    if (state.cursor != 0 && op.id > state.cursor) break;
    if (op.file != file || op.kind == OpKind::gradient || op.kind == OpKind::backward) continue;
    LineOps& line = lines[op.line];
    // A line of several ops: each is shown with its latest execution.
    std::erase_if(line.last, [&](const RecordedOp* other) { return other->op == op.op; });
    line.last.push_back(&op);
    ++line.count;
  }
  return lines;
}

}  // namespace

void show_source(Debugger::State& state, const Words& words) {
  std::string file;
  int middle = 0;
  if (words.empty()) {
    const RecordedOp& op = state.op_of({});
    file = op.file;
    middle = op.line;
  } else {
    std::size_t colon = words[0].rfind(':');
    bool only_line = words[0].find_first_not_of("0123456789") == std::string::npos;
    if (only_line) {
      file = state.op_of({}).file;
      middle = static_cast<int>(integer_of(words[0], "the line", 1));
    } else {
      file = file_of(state, words[0].substr(0, colon));
      middle = colon == std::string::npos ? 0 : static_cast<int>(integer_of(words[0].substr(colon + 1), "the line", 1));
    }
  }
  if (file.empty()) refuse_command("the op's file is not known");
  bool is_own = bool(state.options.resume);
  std::istringstream source(source_of(state.run, file, state.options.source_folders, is_own));
  std::vector<std::string> lines;
  for (std::string line; std::getline(source, line);) lines.push_back(line);
  std::map<int, LineOps> ops = ops_by_line(state, file);
  if (lines.empty())
    state.print("{} was not found, neither here nor with --source FOLDER; its lines without their text:\n", file);
  std::vector<int> numbers;
  for (const auto& [number, line] : ops)
    if (lines.empty()) numbers.push_back(number);
  for (int number = 1; number <= static_cast<int>(lines.size()); ++number) numbers.push_back(number);
  for (int number : numbers) {
    if (middle != 0 && std::abs(std::int64_t{number} - middle) > 10) continue;
    auto found = ops.find(number);
    state.print("{} {:4}  {}\n", number == middle ? "→" : " ", number,
                lines.empty() ? "" : lines[static_cast<std::size_t>(number - 1)]);
    if (found == ops.end()) continue;
    for (const RecordedOp* op : found->second.last) {
      if (op->outputs.empty()) continue;
      state.print(
          "          %{} {}: {}: {}{}\n", op->id, op->op, form_of(op->outputs[0]), statistics_text(op->outputs[0]),
          found->second.count > found->second.last.size() ? fmt::format("; {} ops of this line", found->second.count)
                                                          : "");
    }
  }
}

}  // namespace reel::debug
