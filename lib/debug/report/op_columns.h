#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <reel/debug/recorded_run.h>

namespace reel::debug {

/// The texts of a page, each once, known by their indices; 0 is the empty text.
class PageTexts {
 public:
  PageTexts() { index(""); }
  std::size_t index(std::string_view text);
  std::size_t size() const { return json_.size(); }
  /// The text of an index, as it was given.
  const std::string& text(std::size_t index) const { return *texts_[index]; }
  /// The items of a JSON list: the texts from an index on.
  std::string json(std::size_t from = 0) const;

 private:
  std::unordered_map<std::string, std::size_t> indices_;
  std::vector<const std::string*> texts_;  // the keys of `indices_`
  std::vector<std::string> json_;
};

/// Ops for the scripts of a report: a list for each of their fields, as JSON.
class OpColumns {
 public:
  /// `value_bytes`: the most bytes of printed values; tensors behind them come without.
  OpColumns(PageTexts& texts, std::size_t value_bytes) : texts_(texts), value_bytes_(value_bytes) {}
  void add(const RecordedOp& op);
  /// The members of a JSON object: `"inputs":[…],"out":[…],"id":[…],…`.
  std::string json() const;
  /// The files of the ops, by the indices of their names.
  const std::map<std::size_t, std::string>& files() const { return files_; }

 private:
  std::string json_of(const RecordedTensor& tensor);
  std::string zero_units_json(const RecordedTensor& tensor);

  PageTexts& texts_;
  std::size_t value_bytes_;
  std::size_t unit_bytes_ = std::size_t{4} << 20;
  std::string inputs_, outputs_;
  std::map<std::string, std::string> columns_ = {
      {"id", ""},    {"kind", ""}, {"op", ""},    {"file", ""},     {"line", ""},    {"module", ""}, {"notes", ""},
      {"error", ""}, {"step", ""}, {"start", ""}, {"duration", ""}, {"forward", ""}, {"zero", ""}};
  std::map<std::size_t, std::string> files_;
};

/// The items of a JSON list of norms of parameters: `[step,name,weight,gradient,update]`.
std::string updates_json(std::span<const RecordedUpdate> updates, PageTexts& texts);
/// A JSON list of the lines of a text; "null" for none.
std::string source_json(std::string_view text);
/// A JSON string of a text of several lines.
std::string lines_json(std::string_view text);

}  // namespace reel::debug
