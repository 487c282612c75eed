#include "op_columns.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "../../core/printable.h"
#include "../recording/zero_units.h"

namespace reel::debug {

namespace {

constexpr std::array column_names{"duration", "error", "file", "forward", "id",   "kind", "line",
                                  "module",   "notes", "op",   "start",   "step", "zero"};

}  // namespace

std::size_t PageTexts::index(std::string_view text) {
  auto [found, is_new] = indices_.try_emplace(std::string(text), texts_.size());
  if (is_new) texts_.push_back(&found->first);
  return found->second;
}

Json PageTexts::json(std::size_t from) const {
  Json list = Json::array();
  for (std::size_t i = from; i < texts_.size(); ++i) list.push_back(detail::printable(*texts_[i]));
  return list;
}

void OpColumns::add(const RecordedOp& op) {
  auto column = [&](std::string_view name, auto&& value) { columns_[name].emplace_back(std::move(value)); };
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
  column("zero", op.outputs.empty() ? Json(0) : zero_units_json(op.outputs[0]));
  if (!op.file.empty()) files_.try_emplace(texts_.index(op.file), op.file);
  Json::array_t inputs, outputs;
  for (const TensorId& input : op.inputs) {
    inputs.emplace_back(input.op);
    inputs.emplace_back(input.output);
  }
  for (const RecordedTensor& output : op.outputs) outputs.push_back(json_of(output));
  inputs_.emplace_back(std::move(inputs));
  outputs_.emplace_back(std::move(outputs));
}

// "UNITS:" and a hexadecimal digit for four units each, the lowest bit the first of them.
Json OpColumns::zero_units_json(const RecordedTensor& tensor) {
  if (tensor.zero_units.empty()) return 0;
  std::int64_t units = tensor.shape[unit_axis(tensor.shape)];
  std::size_t count = static_cast<std::size_t>(units + 3) / 4;
  if (count > unit_bytes_) return 1;  // there are some, but the page has no room for them
  unit_bytes_ -= count;
  std::vector<int> digits(count);
  for (std::int32_t unit : tensor.zero_units) digits[static_cast<std::size_t>(unit) / 4] |= 1 << unit % 4;
  return fmt::format("{}:{:x}", units, fmt::join(digits, ""));
}

Json OpColumns::json_of(const RecordedTensor& tensor) {
  std::string form = fmt::format("{} {}", to_string(tensor.shape), name_of(tensor.dtype));
  Json::array_t fields = {texts_.index(form), texts_.index(tensor.name), tensor.bytes()};
  if (!tensor.has_statistics) return fields;
  const RecordedStatistics& found = tensor.statistics;
  for (double value : {found.min, found.max, found.mean, found.norm}) fields.push_back(rounded(value));
  for (std::int64_t count : {found.nans, found.infinities, found.zeros, tensor.shape.numel()})
    fields.emplace_back(count);
  if (!tensor.values.defined() || value_bytes_ == 0) return fields;
  std::string values = detail::printable_lines(to_string(tensor.values));
  value_bytes_ -= std::min(value_bytes_, values.size());
  fields.emplace_back(std::move(values));
  return fields;
}

void OpColumns::move_to(Json& object) {
  object["inputs"] = std::move(inputs_);
  object["out"] = std::move(outputs_);
  for (const char* name : column_names) object[name] = std::move(columns_[name]);
}

Json updates_json(std::span<const RecordedUpdate> updates, PageTexts& texts) {
  Json list = Json::array();
  for (const RecordedUpdate& update : updates)
    list.push_back({update.step, texts.index(update.parameter), rounded(update.weight_norm),
                    rounded(update.gradient_norm), rounded(update.update_norm)});
  return list;
}

Json source_json(std::string_view text) {
  if (text.empty()) return nullptr;
  std::istringstream lines{std::string(text)};
  Json list = Json::array();
  for (std::string line; std::getline(lines, line);) list.push_back(detail::printable(line));
  return list;
}

Json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  std::array<char, 32> text;
  auto end = std::to_chars(text.begin(), text.end(), value, std::chars_format::general, 6).ptr;
  std::from_chars(text.begin(), end, value);
  // JSON has no other integers, and they are shorter without ".0".
  constexpr double most = 1e15;
  if (std::abs(value) < most && value == std::floor(value)) return static_cast<std::int64_t>(value);
  return value;
}

}  // namespace reel::debug
