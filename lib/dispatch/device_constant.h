#pragma once

#include <cstdint>

#include <reel/tensor.h>

namespace reel::detail {

/// A number, in the form that `KernelTable::fill` takes, as a tensor of rank 0 that needs no kernel from its second use
/// on: its element stays on the device permanently. For operands only: it must not be overwritten. Undefined if the
/// device does not hold the number and has no room for more, or while a graph is being recorded.
Tensor device_constant(Device device, DType dtype, double number, std::int64_t integer, Location where);

}  // namespace reel::detail
