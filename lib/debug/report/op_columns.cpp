#include "op_columns.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "../../logging/plot/html.h"
#include "../recording/zero_units.h"

namespace reel::debug {

namespace {

template <class... T>
void append(std::string& list, fmt::format_string<T...> form, T&&... values) {
  if (!list.empty()) list += ',';
  fmt::format_to(std::back_inserter(list), form, std::forward<T>(values)...);
}

// An item that may be empty, as a list in a list.
void append_list(std::string& all, const std::string& list) {
  if (!all.empty()) all += ',';
  all.append("[").append(list).append("]");
}

std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.6g}", value) : "null"; }

}  // namespace

std::size_t PageTexts::index(std::string_view text) {
  auto [found, is_new] = indices_.try_emplace(std::string(text), json_.size());
  if (is_new) {
    texts_.push_back(&found->first);
    json_.push_back(logging::script_string(text));
  }
  return found->second;
}

std::string PageTexts::json(std::size_t from) const {
  std::string list;
  for (std::size_t i = from; i < json_.size(); ++i) append(list, "{}", json_[i]);
  return list;
}

void OpColumns::add(const RecordedOp& op) {
  auto column = [&](const char* name, auto value) { append(columns_[name], "{}", value); };
  column("id", op.id);
  column("kind", static_cast<int>(op.kind));
  column("op", texts_.index(op.op));
  column("file", texts_.index(op.file));
  column("line", op.line);
  column("module", texts_.index(op.module));
  column("notes", texts_.index(op.notes));
  column("error", texts_.index(op.error));
  column("step", op.step);
  column("start", op.start);
  column("duration", op.duration);
  column("forward", op.forward);
  column("zero", op.outputs.empty() ? "0" : zero_units_json(op.outputs[0]));
  if (!op.file.empty()) files_.try_emplace(texts_.index(op.file), op.file);
  std::string inputs, outputs;
  for (const TensorId& input : op.inputs) append(inputs, "{},{}", input.op, input.output);
  for (const RecordedTensor& output : op.outputs) append(outputs, "[{}]", json_of(output));
  append_list(inputs_, inputs);
  append_list(outputs_, outputs);
}

// "UNITS:" and a hexadecimal digit for four units each, the lowest bit the first of them.
std::string OpColumns::zero_units_json(const RecordedTensor& tensor) {
  if (tensor.zero_units.empty()) return "0";
  std::int64_t units = tensor.shape[unit_axis(tensor.shape)];
  std::size_t count = static_cast<std::size_t>(units + 3) / 4;
  if (count > unit_bytes_) return "1";  // there are some, but the page has no room for them
  unit_bytes_ -= count;
  std::vector<int> digits(count);
  for (std::int32_t unit : tensor.zero_units) digits[static_cast<std::size_t>(unit) / 4] |= 1 << unit % 4;
  return fmt::format("\"{}:{:x}\"", units, fmt::join(digits, ""));
}

std::string OpColumns::json_of(const RecordedTensor& tensor) {
  std::string form = fmt::format("{} {}", to_string(tensor.shape), name_of(tensor.dtype));
  std::string json = fmt::format("{},{},{}", texts_.index(form), texts_.index(tensor.name), tensor.bytes());
  if (!tensor.has_statistics) return json;
  const RecordedStatistics& found = tensor.statistics;
  json += fmt::format(",{},{},{},{},{},{},{},{}", number(found.min), number(found.max), number(found.mean),
                      number(found.norm), found.nans, found.infinities, found.zeros, tensor.shape.numel());
  if (!tensor.values.defined() || value_bytes_ == 0) return json;
  std::string values = lines_json(to_string(tensor.values));
  value_bytes_ -= std::min(value_bytes_, values.size());
  return json.append(",").append(values);
}

std::string OpColumns::json() const {
  std::string json = fmt::format("\"inputs\":[{}],\"out\":[{}]", inputs_, outputs_);
  for (const auto& [column, numbers] : columns_) json += fmt::format(",\"{}\":[{}]", column, numbers);
  return json;
}

std::string updates_json(std::span<const RecordedUpdate> updates, PageTexts& texts) {
  std::string json;
  for (const RecordedUpdate& update : updates)
    append(json, "[{},{},{},{},{}]", update.step, texts.index(update.parameter), number(update.weight_norm),
           number(update.gradient_norm), number(update.update_norm));
  return json;
}

std::string source_json(std::string_view text) {
  if (text.empty()) return "null";
  std::istringstream lines{std::string(text)};
  std::string list;
  for (std::string line; std::getline(lines, line);) append(list, "{}", logging::script_string(line));
  return fmt::format("[{}]", list);
}

// script_string alone would show where the lines end.
std::string lines_json(std::string_view text) {
  std::string json = "\"";
  while (true) {
    std::size_t end = text.find('\n');
    std::string line = logging::script_string(text.substr(0, end));
    json.append(line, 1, line.size() - 2);
    if (end == std::string_view::npos) return json + "\"";
    json += "\\n";
    text.remove_prefix(end + 1);
  }
}

}  // namespace reel::debug
