#pragma once

#include <cstdint>
#include <limits>

namespace reel::detail {

/// Statistics of a tensor's elements that a recording keeps.
struct ElementSummary {
  double min = std::numeric_limits<double>::infinity();   ///< of the finite elements; infinity: there is none
  double max = -std::numeric_limits<double>::infinity();  ///< of the finite elements; −infinity: there is none
  double sum = 0;                                         ///< of the finite elements
  double squares = 0;                                     ///< the sum of their squares
  std::int64_t nans = 0, infinities = 0, zeros = 0;       ///< numbers of elements
  /// A hash of all bits and of the order of the elements, whatever the strides and the processor. If one element
  /// changes, so does the hash of 32 bits.
  std::uint32_t fingerprint = 0;
};

}  // namespace reel::detail
