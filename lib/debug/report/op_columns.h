#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <reel/debug/recorded_run.h>
#include <nlohmann/json.hpp>

namespace reel::debug {

/// Objects keep the order of their members.
using Json = nlohmann::ordered_json;

/// The texts of a page, each once, known by their indices; 0 is the empty text.
class PageTexts {
 public:
  PageTexts() { index(""); }
  std::size_t index(std::string_view text);
  std::size_t size() const { return texts_.size(); }
  /// The text of an index, as it was given.
  const std::string& text(std::size_t index) const { return *texts_[index]; }
  /// The list of texts from an index on, made printable.
  Json json(std::size_t from = 0) const;

 private:
  std::unordered_map<std::string, std::size_t> indices_;
  std::vector<const std::string*> texts_;  // the keys of `indices_`
};

/// Ops for the scripts of a report: a list for each of their fields.
class OpColumns {
 public:
  /// `value_bytes`: the most bytes of printed values; tensors behind them come without.
  OpColumns(PageTexts& texts, std::size_t value_bytes) : texts_(texts), value_bytes_(value_bytes) {}
  void add(const RecordedOp& op);
  /// Adds the lists to an object: `"inputs":[…],"out":[…],"id":[…],…`.
  void move_to(Json& object);
  /// The files of the ops, by the indices of their names.
  const std::map<std::size_t, std::string>& files() const { return files_; }

 private:
  Json json_of(const RecordedTensor& tensor);
  Json zero_units_json(const RecordedTensor& tensor);

  PageTexts& texts_;
  std::size_t value_bytes_;
  std::size_t unit_bytes_ = std::size_t{4} << 20;
  std::map<std::string_view, Json::array_t> columns_;
  Json::array_t inputs_, outputs_;
  std::map<std::size_t, std::string> files_;
};

/// Norms of parameters: a list of `[step,name,weight,gradient,update]`.
Json updates_json(std::span<const RecordedUpdate> updates, PageTexts& texts);
/// The list of lines of a text; null for none.
Json source_json(std::string_view text);
/// A number of six digits; null for NaN and ±∞.
Json rounded(double value);

}  // namespace reel::debug
