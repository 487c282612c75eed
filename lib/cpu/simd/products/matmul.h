#pragma once

#include "../../../core/parameter_version.h"
#include "../../../core/target.h"
#include "../../../kernels/kernel_table.h"

namespace reel::detail::inline REEL_TARGET {

/// c = a b, as KernelTable::matmul.
void matmul(const View& out, const View& a, const View& b, ParameterVersion version_of_b);
/// c = a b, where columns of b, which is row-major, are of different examples: an element's bits do not depend on their number.
void matmul_columns(const View& out, const View& a, const View& b);

}  // namespace reel::detail::inline REEL_TARGET
