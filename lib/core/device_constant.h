#pragma once

#include <cstdint>

#include <reel/tensor.h>

namespace reel::detail {

/// A number, as `KernelTable::fill` takes it, as a tensor without axes that costs no kernel from its second use on: its
/// element lies on the device for good. For operands alone: nobody may overwrite it. Undefined where the device does not
/// have it and has no room for more, or a graph is being recorded.
Tensor device_constant(Device device, DType dtype, double number, std::int64_t integer, Location where);

}  // namespace reel::detail
