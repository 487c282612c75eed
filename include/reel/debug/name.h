#pragma once

#include <string_view>

#include <reel/tensor.h>

namespace reel::debug {

/// Names a tensor for recordings and the debugger, and returns it: `h = debug::name(tanh(x), "h");`. Without a recording
/// or session on this thread it does nothing. Throws: Error if x is undefined.
Tensor name(const Tensor& x, std::string_view name, Location where = Location::here());

}  // namespace reel::debug
