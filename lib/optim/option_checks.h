#pragma once

#include "../core/op_error.h"

namespace reel::detail {

/// Throws: Error unless it is 0 or more.
inline void check_not_negative(const char* optimiser, const char* option, double value, Location where) {
  if (!(value >= 0)) fail<Error>(optimiser, where, "the {} {} is not 0 or more", option, value);
}

/// Throws: Error unless it is in [0, 1).
inline void check_fraction(const char* optimiser, const char* option, double value, Location where) {
  if (!(value >= 0 && value < 1)) fail<Error>(optimiser, where, "the {} {} lies outside [0, 1)", option, value);
}

}  // namespace reel::detail
