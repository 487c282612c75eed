#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include <reel/tensor.h>

namespace reel {

/// The values with which `pad` fills the added elements.
enum class PadMode : std::uint8_t {
  constant,  ///< a number
  reflect,   ///< x mirrored at its first and last element, which are not repeated: c b | a b c | b a
  edge,      ///< the first and last element: a a | a b c | c c
  circular,  ///< x repeated: b c | a b c | a b
};

/// How many elements `pad` adds along an axis; at least 0.
struct PadWidth {
  std::int64_t before = 0,  ///< before the first element; default 0
      after = 0;            ///< behind the last element; default 0
};

/// Options of `pad`.
struct PadOptions {
  PadMode mode = PadMode::constant;  ///< default: a constant
  /// The number that fills the elements, for PadMode::constant; converted to the dtype of x. Default 0.
  double value = 0;
};

/// x with elements added before and after it along each axis: `pad(x, {{1, 1}, {0, 2}})` of a matrix; a single width
/// holds for all axes. A reflection wider than x is mirrored again at the other end, and one of a single element
/// repeats it.
/// Throws: ShapeError unless there is one width for all axes or one for each, none negative, and for a reflection or
/// edge or repetition of no elements.
/// Source: NumPy's pad.
Tensor pad(const Arg& x, std::span<const PadWidth> widths, PadOptions options = {});
/// x with elements added before and after it along each axis: `pad(x, {{1, 1}, {0, 2}})` of a matrix; a single width
/// holds for all axes. A reflection wider than x is mirrored again at the other end, and one of a single element
/// repeats it.
/// Throws: ShapeError unless there is one width for all axes or one for each, none negative, and for a reflection or
/// edge or repetition of no elements.
/// Source: NumPy's pad.
inline Tensor pad(const Arg& x, std::initializer_list<PadWidth> widths, PadOptions options = {}) {
  return pad(x, std::span(widths.begin(), widths.size()), options);
}

}  // namespace reel
