#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <reel/tensor.h>

namespace reel::logging {

/// The distribution of the finite elements of a tensor, in buckets that adjoin: bucket i ends at limits[i] and begins at
/// limits[i − 1], the first at or below `min`.
struct Histogram {
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double sum = 0;
  double sum_of_squares = 0;
  std::int64_t count = 0;         ///< of finite elements
  std::int64_t nans = 0;          ///< the number of NaNs
  std::int64_t infinities = 0;    ///< the number of infinite elements
  std::vector<double> limits;     ///< ascending; never empty
  std::vector<double> in_bucket;  ///< the number of elements in each bucket
};

/// The histogram of a tensor of any dtype. A power of two is divided into eight buckets, so that no limit depends on the
/// values and one pass over them is enough; powers below 2^-8 of the largest magnitude have one bucket each.
/// Throws: Error if the tensor is undefined.
Histogram histogram_of(const Tensor& x, Location where);

}  // namespace reel::logging
