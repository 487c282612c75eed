#pragma once

#include "../core/op_error.h"
#include "../dispatch/autocast.h"

namespace reel::nn {

/// Throws: DTypeError unless x has the dtype of a layer's weight, or an autocast scope converts both. An undefined
/// weight is that of a layer without one.
inline void check_weight_dtype(const char* layer, const Tensor& x, const Tensor& weight, Location where = {}) {
  if (!weight.defined() || x.dtype() == weight.dtype() || detail::is_autocasting()) return;
  detail::fail<DTypeError>(layer, where, "x {} has not the dtype of the weight {}; convert x with to(x, {}){}",
                           detail::describe(x), detail::describe(weight), name_of(weight.dtype()),
                           is_floating(x.dtype()) ? fmt::format(", or the layer with to({})", name_of(x.dtype())) : "");
}

}  // namespace reel::nn
