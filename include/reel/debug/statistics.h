#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include <reel/tensor.h>

namespace reel::debug {

/// Statistics of the elements of a tensor.
struct TensorStatistics {
  Shape shape;               ///< its sizes
  DType dtype = DType::f32;  ///< its dtype
  /// The smallest finite element; NaN if there is none.
  double min = std::numeric_limits<double>::quiet_NaN();
  /// The largest finite element; NaN if there is none.
  double max = std::numeric_limits<double>::quiet_NaN();
  std::int64_t zeros = 0;       ///< the number of elements that are 0
  std::int64_t nans = 0;        ///< the number of NaNs
  std::int64_t infinities = 0;  ///< the number of infinite elements
  /// The index of the first NaN, in row-major order; −1 if there is none.
  std::int64_t first_nan = -1;
  /// The index of the first infinite element, in row-major order; −1 if there is none.
  std::int64_t first_infinity = -1;
  /// The number of finite elements by magnitude: |x| in (0, 1e-30), in each [10^(3 i − 33), 10^(3 i − 30)) for i from 1
  /// to 20, and in [1e30, ∞).
  std::array<std::int64_t, 22> magnitudes{};
};

/// Computes the statistics of any tensor; numbers of 64 bits are rounded to f64. Throws: Error if it is undefined.
TensorStatistics statistics(const Tensor& x, Location where = Location::here());

/// The statistics as one line: `(2, 3) f32, min -1, max 2.5, 1 NaN, 0 Inf, |x|: 0: 1, 1e-3…1e0: 2, 1e0…1e3: 2`.
std::string to_string(const TensorStatistics& statistics);

}  // namespace reel::debug
