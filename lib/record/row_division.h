#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace reel::detail {

/// How the rows of a tensor, along its axis 0, are divided into adjacent parts: kept as the attributes of the ops `batch`
/// and `unbatch`.
class RowDivision {
 public:
  /// Reads attributes.
  explicit RowDivision(std::span<const std::byte> attributes)
      : words_(reinterpret_cast<const std::int64_t*>(attributes.data())) {}
  /// Attributes for parts that begin at `starts`, of which there is one more than parts. `stacked`: the parts have no
  /// axis 0 of their own, and each is one row.
  static std::vector<std::int64_t> attributes(std::span<const std::int64_t> starts, bool stacked) {
    std::int64_t rows = starts[1] - starts[0];
    for (std::size_t i = 1; i < starts.size(); ++i)
      if (starts[i] - starts[i - 1] != rows) rows = 0;
    std::vector<std::int64_t> words{stacked, rows};
    if (rows == 0) words.insert(words.end(), starts.begin(), starts.end());
    return words;
  }

  bool stacked() const { return words_[0] != 0; }
  /// Returns true if the division is even: each part has as many rows as any other.
  bool even() const { return words_[1] != 0; }
  std::int64_t start(std::size_t part) const {
    return even() ? static_cast<std::int64_t>(part) * words_[1] : words_[2 + part];
  }
  std::int64_t rows(std::size_t part) const { return start(part + 1) - start(part); }

 private:
  const std::int64_t* words_;
};

}  // namespace reel::detail
