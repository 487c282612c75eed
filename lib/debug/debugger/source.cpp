#include <algorithm>
#include <fstream>
#include <map>

#include "../../core/printable.h"
#include "state.h"

namespace reel::debug {

namespace {

std::optional<std::vector<std::string>> lines_of(const Debugger::State& state, const std::string& file) {
  std::vector<std::string> paths{file};
  for (const std::string& folder : state.options.source_folders) {
    paths.push_back(fmt::format("{}/{}", folder, file));
    paths.push_back(fmt::format("{}/{}", folder, file.substr(file.rfind('/') + 1)));
  }
  for (const std::string& path : paths) {
    std::ifstream source(path);
    if (!source) continue;
    std::vector<std::string> lines;
    for (std::string line; std::getline(source, line);) lines.push_back(detail::printable(line));
    return lines;
  }
  return std::nullopt;
}

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
  std::optional<std::vector<std::string>> lines = lines_of(state, file);
  std::map<int, LineOps> ops = ops_by_line(state, file);
  if (!lines)
    state.print("{} was not found, neither here nor with --source FOLDER; its lines without their text:\n", file);
  int last = lines ? static_cast<int>(lines->size()) : ops.empty() ? 0 : ops.rbegin()->first;
  int from = middle == 0 ? 1 : std::max(1, middle - 10), to = middle == 0 ? last : std::min(last, middle + 10);
  for (int number = from; number <= to; ++number) {
    auto found = ops.find(number);
    if (!lines && found == ops.end()) continue;
    state.print("{} {:4}  {}\n", number == middle ? "→" : " ", number,
                lines ? (*lines)[static_cast<std::size_t>(number - 1)] : "");
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
