#include <reel/data/dataset.h>

#include <cmath>

#include "../core/op_error.h"
#include "permutation.h"

namespace reel::detail {

void check_subset(const std::vector<std::int64_t>& indices, std::int64_t size, Location where) {
  for (std::int64_t index : indices)
    if (index < 0 || index >= size)
      fail<IndexError>("data::subset", where, "there is no item {} in a dataset of {}", index, size);
}

std::vector<std::vector<std::int64_t>> split_indices(std::int64_t size, const std::vector<double>& shares,
                                                     std::uint64_t seed, Location where) {
  double sum = 0;
  for (double share : shares) {
    if (!(share > 0 && share <= 1))
      fail<Error>("data::split", where, "a share is {}, but must be above 0 and at most 1", share);
    sum += share;
  }
  if (std::abs(sum - 1) > 1e-9) fail<Error>("data::split", where, "the shares sum up to {}, not to 1", sum);
  Permutation shuffled(size, seed, ~std::uint64_t{0});
  std::vector<std::vector<std::int64_t>> parts;
  double before = 0;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    before += shares[i];
    bool is_last = i + 1 == shares.size();
    std::int64_t end = is_last ? size : std::llround(before * static_cast<double>(size));
    std::vector<std::int64_t>& part = parts.emplace_back();
    for (; begin < end; ++begin) part.push_back(shuffled[begin]);
  }
  return parts;
}

}  // namespace reel::detail
