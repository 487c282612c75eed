#pragma once

#include <cstdint>
#include <vector>

#include <reel/tensor.h>

namespace reel::debug {

/// The greatest number of units of a tensor that is searched for zero ones.
constexpr std::int64_t most_units = 4096;

/// The axis of a shape along which its units are: the last one, of images (N, C, …) with four axes or more that of the
/// channels. −1: a shape with fewer than two axes has no units.
int unit_axis(const Shape& shape);

/// The indices of the units of a contiguous floating tensor on the CPU whose elements are all zero, ascending.
std::vector<std::int32_t> zero_units_of(const Tensor& x);

}  // namespace reel::debug
