#pragma once

#include <cstdint>
#include <vector>

#include "../data/permutation.h"

namespace reel::detail {

/// The rows of a table that each rank has. A pseudorandom permutation gives each row a position, which does not depend on
/// the number of ranks; positions are dealt out to the ranks one by one.
class RowShares {
 public:
  RowShares(std::int64_t count, std::int64_t ranks, std::uint64_t seed)
      : count_(count), ranks_(ranks), seed_(seed), permutation_(count, seed, 0x726f7773) {}

  std::int64_t count() const { return count_; }
  std::int64_t ranks() const { return ranks_; }
  std::uint64_t seed() const { return seed_; }
  /// The rank that has a row.
  std::int64_t owner(std::int64_t row) const { return permutation_[row] % ranks_; }
  /// The index of a row among those of its rank.
  std::int64_t place(std::int64_t row) const { return permutation_[row] / ranks_; }
  /// The number of rows of a rank.
  std::int64_t size_of(std::int64_t rank) const { return (count_ - rank + ranks_ - 1) / ranks_; }
  /// The rows of a rank, by their places.
  std::vector<std::int64_t> rows_of(std::int64_t rank) const {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(size_of(rank)));
    for (std::int64_t row = 0; row < count_; ++row)
      if (std::int64_t position = permutation_[row]; position % ranks_ == rank)
        rows[static_cast<std::size_t>(position / ranks_)] = row;
    return rows;
  }

 private:
  std::int64_t count_, ranks_;
  std::uint64_t seed_;
  Permutation permutation_;
};

}  // namespace reel::detail
