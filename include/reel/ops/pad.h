#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include <reel/tensor.h>

namespace reel {

/// What `pad` puts outside.
enum class PadMode : std::uint8_t {
  constant,  ///< a number
  reflect,   ///< x mirrored at its first and last element, which are not repeated: c b | a b c | b a
  edge,      ///< the first and last element: a a | a b c | c c
};

/// How many elements `pad` adds along an axis.
struct PadWidth {
  std::int64_t before = 0, after = 0;
};

struct PadOptions {
  PadMode mode = PadMode::constant;
  /// For PadMode::constant; converted to the dtype of x.
  double value = 0;
};

/// x with elements added before and after it along each axis: `pad(x, {{1, 1}, {0, 2}})` of a matrix; one width is that of
/// all axes. A reflection wider than x is mirrored again at the other end, and one of a single element repeats it.
/// Throws: ShapeError unless there is one width, not negative, for each axis, or for a reflection or edge of nothing.
/// Source: NumPy's pad.
Tensor pad(const Arg& x, std::span<const PadWidth> widths, PadOptions options = {});
inline Tensor pad(const Arg& x, std::initializer_list<PadWidth> widths, PadOptions options = {}) {
  return pad(x, std::span(widths.begin(), widths.size()), options);
}

}  // namespace reel
