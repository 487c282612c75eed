#include "state.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <reel/debug/ops.h>

#include "../../core/printable.h"

namespace reel::debug {

namespace {

// The latest tensor of a name, at or before the cursor if there is one there.
std::optional<TensorId> named_tensor(const Debugger::State& state, std::string_view name) {
  std::optional<TensorId> found;
  for (const RecordedOp& op : state.run.ops()) {
    if (found && state.cursor != 0 && op.id > state.cursor) break;
    for (std::size_t i = 0; i < op.outputs.size(); ++i)
      if (op.outputs[i].name == name && op.kind != OpKind::gradient)
        found = TensorId{op.id, static_cast<std::uint32_t>(i)};
  }
  return found;
}

std::optional<std::uint64_t> id_in(std::string_view text) {
  if (text.starts_with('%')) text.remove_prefix(1);
  std::uint64_t id = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return id;
}

// The number of characters of UTF-8.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

}  // namespace

const RecordedOp& Debugger::State::op(std::uint64_t id) const {
  if (const RecordedOp* found = run.find(id)) return *found;
  if (run.ops().empty()) refuse_command("the run has no ops");
  refuse_command("there is no op %{}; the run has %{} to %{}{}", id, run.ops().front().id, run.ops().back().id,
                 run.dropped() > 0 ? ", and the bound on bytes has dropped some" : "");
}

const RecordedTensor& Debugger::State::tensor(TensorId id) const {
  const RecordedOp& found = op(id.op);
  if (id.output >= found.outputs.size())
    refuse_command("op %{} has {} output{}; there is no {}", id.op, found.outputs.size(),
                   found.outputs.size() == 1 ? "" : "s", id.output);
  return found.outputs[id.output];
}

const RecordedOp& Debugger::State::op_of(const Words& words) const {
  if (!words.empty()) return op(reference(words[0]).id.op);
  if (cursor == 0) refuse_command("the run is at its beginning; name an op, such as %1");
  return op(cursor);
}

TensorReference Debugger::State::reference(std::string_view word) const {
  TensorReference found;
  if (std::size_t bracket = word.find('['); bracket != std::string_view::npos) {
    if (!word.ends_with(']')) refuse_command("{} has no closing bracket", detail::shown(word));
    found.part = word.substr(bracket + 1, word.size() - bracket - 2);
    word = word.substr(0, bracket);
  }
  std::size_t colon = word.find(':');
  if (std::optional<std::uint64_t> id = id_in(word.substr(0, colon))) {
    found.id.op = *id;
    if (colon != std::string_view::npos)
      found.id.output = static_cast<std::uint32_t>(integer_of(word.substr(colon + 1), "the index of an output"));
    op(found.id.op);
    return found;
  }
  std::optional<TensorId> named = named_tensor(*this, word);
  if (!named)
    refuse_command("there is no tensor {}; name one as %12, %12:1, or by the name that the program gave it",
                   detail::shown(word));
  found.id = *named;
  return found;
}

const TensorFilter& Debugger::State::filter(std::string_view name) const {
  if (auto found = filters.find(name); found != filters.end()) return found->second;
  std::string known;
  for (const auto& [one, filter] : filters) known += (known.empty() ? "" : ", ") + one;
  refuse_command("there is no filter {}; there are: {}", detail::shown(name), known);
}

bool Debugger::State::matches(const TensorFilter& filter, const RecordedOp& op) const {
  return std::any_of(op.outputs.begin(), op.outputs.end(),
                     [&](const RecordedTensor& output) { return filter(op, output); });
}

// True if the run has an op of this name, or a running program may come to one; a composed op runs as others.
bool Debugger::State::may_run(std::string_view name) const {
  auto has_name = [&](const auto& op) { return op.op == name && op.kind != OpKind::source; };
  auto is_name = [&](const auto& op) { return op.name == name && op.batching != "composed"; };
  return std::ranges::any_of(run.ops(), has_name) || (options.resume && std::ranges::any_of(ops(), is_name));
}

Condition Debugger::State::condition(const Words& words) const {
  if (words.empty()) refuse_command("name a condition: a filter, an op, FILE:LINE, step N, or id N");
  const std::string& first = words[0];
  if (words.size() == 2 && first == "step") {
    std::int64_t step = integer_of(words[1], "the step");
    return {fmt::format("step {}", step), [step](const RecordedOp& op) { return op.step >= step; }, true};
  }
  if (words.size() == 2 && first == "id") {
    auto id =
        static_cast<std::uint64_t>(integer_of(words[1].starts_with('%') ? words[1].substr(1) : words[1], "the id"));
    return {fmt::format("op %{}", id), [id](const RecordedOp& op) { return op.id >= id; }, true};
  }
  if (words.size() == 2 && first == "op") {
    if (!may_run(words[1])) refuse_command("there is no op {}", detail::shown(words[1]));
    return {"op " + words[1],
            [name = words[1]](const RecordedOp& op) { return op.op == name && op.kind != OpKind::source; }};
  }
  if (words.size() > 1) refuse_command("'{}' is more than a condition", fmt::join(words, " "));
  if (filters.contains(first))
    return {first, [this, chosen = filter(first)](const RecordedOp& op) {
              return op.error.empty() ? matches(chosen, op) : chosen(op, {});
            }};
  std::size_t colon = first.rfind(':');
  if (colon != std::string::npos) {
    std::string file = first.substr(0, colon);
    if (file.empty()) refuse_command("{} names no file; write FILE:LINE", detail::shown(first));
    int line = static_cast<int>(integer_of(first.substr(colon + 1), "the line", 1));
    return {first, [file, line](const RecordedOp& op) {
              return op.line == line && op.file.ends_with(file) && op.kind != OpKind::source;
            }};
  }
  if (may_run(first)) return condition({"op", first});
  static_cast<void>(filter(first));  // throws, with the names of all filters
  return {};
}

std::string form_of(const RecordedTensor& tensor) {
  return fmt::format("{} {}", to_string(tensor.shape), name_of(tensor.dtype));
}

std::string text_of_bytes(std::size_t bytes) {
  constexpr const char* units[] = {"B", "KB", "MB", "GB", "TB"};
  auto number = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; number >= 1000 && unit + 1 < std::size(units); ++unit) number /= 1000;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", number, units[unit]);
}

std::string text_of_time(std::int64_t nanoseconds) {
  constexpr const char* units[] = {"ns", "µs", "ms", "s"};
  auto number = static_cast<double>(nanoseconds);
  std::size_t unit = 0;
  for (; number >= 1000 && unit + 1 < std::size(units); ++unit) number /= 1000;
  return unit == 0 ? fmt::format("{} ns", nanoseconds) : fmt::format("{:.1f} {}", number, units[unit]);
}

std::string statistics_text(const RecordedTensor& tensor) {
  if (!tensor.has_statistics) return "no statistics";
  const RecordedStatistics& found = tensor.statistics;
  std::string text;
  if (!std::isnan(found.min))
    text =
        fmt::format("min {:.6g}, max {:.6g}, mean {:.6g}, norm {:.6g}, ", found.min, found.max, found.mean, found.norm);
  return text + fmt::format("{} NaN, {} Inf, {} zero{}", found.nans, found.infinities, found.zeros,
                            found.zeros == 1 ? "" : "s");
}

std::string short_sentence_of(const RecordedOp& op) {
  std::string text = fmt::format("%{} {}", op.id, op.op);
  if (op.kind == OpKind::gradient) text = fmt::format("%{} gradient of {}", op.id, op.op);
  if (op.kind == OpKind::backward) text += " within a gradient";
  if (!op.outputs.empty() && !op.outputs[0].name.empty()) text += fmt::format(" '{}'", op.outputs[0].name);
  text += " at " + op.location();
  if (!op.module.empty()) text += fmt::format(" in {}", op.module);
  return text + fmt::format(", step {}", op.step);
}

std::string sentence_of(const RecordedOp& op) {
  std::string text = short_sentence_of(op);
  if (!op.notes.empty()) text.append(", with ").append(op.notes);
  return text;
}

std::string table_of(const std::vector<std::vector<std::string>>& rows, int width,
                     const std::vector<std::size_t>& right) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::size_t padding = widths[i] - width_of(row[i]);
      if (std::ranges::find(right, i) != right.end()) line.append(std::exchange(padding, 0), ' ');
      line += row[i];
      if (i + 1 < row.size()) line.append(padding + 2, ' ');
    }
    // Cut between characters.
    std::size_t columns = 0, end = 0;
    for (; end < line.size(); ++end)
      if ((line[end] & 0xC0) != 0x80 && columns++ == static_cast<std::size_t>(width)) break;
    text.append(line, 0, end).append("\n");
  }
  return text;
}

std::string bar_of(double share, int columns) {
  std::string bar;
  int count = std::isfinite(share) ? static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * columns)) : 0;
  for (int i = 0; i < count; ++i) bar += "█";
  return bar;
}

std::int64_t integer_of(std::string_view word, const char* what, std::int64_t least) {
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (word.empty() || error != std::errc() || end != word.data() + word.size())
    refuse_command("{} is {}, which is no integer", what, detail::shown(word));
  if (number < least) refuse_command("{} is {}, but must be at least {}", what, number, least);
  return number;
}

}  // namespace reel::debug
