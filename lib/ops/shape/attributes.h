#pragma once

#include <cstdint>

#include "../../core/op.h"

// Attributes of calls, for what reads recorded calls.

namespace reel::detail {

/// The shape of `reshape` and `expand`, or the order of axes of `permute`.
struct ShapeAttributes {
  Shape shape;
};

/// The axes that `flip` reverses, as bits.
struct FlipAttributes {
  std::uint64_t axes;
};

/// How many elements `pad` adds before each axis, and their value.
struct PadAttributes {
  Shape before;
  FloatBits value;
};

/// The diagonals that `tril` and `triu` keep: low <= column − row <= high.
struct BandAttributes {
  std::int64_t low, high;
};

/// The diagonal that `diag` takes or fills.
struct DiagonalAttributes {
  std::int64_t diagonal;
  Shape shape;  // of the matrix
};

/// The value of `full`, as a number and as an integer.
struct FillAttributes {
  FloatBits number;
  std::int64_t integer;
};

/// The range of `arange`, as numbers and as integers.
struct ArangeAttributes {
  FloatBits start, step;
  std::int64_t integer_start, integer_step;
};

}  // namespace reel::detail
