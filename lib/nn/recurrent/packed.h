#pragma once

#include <reel/nn/packed.h>

namespace reel::nn {

/// Throws: Error for undefined elements; ShapeError unless the lengths match the elements.
void check_packed(const char* name, const Packed& packed, Location where);

}  // namespace reel::nn
