#pragma once

#include "../lib/core/kernel_table.h"
#include "../lib/core/target.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// Copies elements of one dtype; x broadcasts.
void move_elements(const View& out, const View& x);
/// Copies elements of another dtype.
void convert_elements(const View& out, const View& x);

}  // namespace REEL_TARGET
}  // namespace reel::detail
