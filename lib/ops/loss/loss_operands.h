#pragma once

#include <reel/ops/loss.h>

#include "../../core/op_error.h"
#include "../../kernels/loss.h"

namespace reel::detail {

/// Applies the reduction to losses of single elements and converts the result to a dtype.
Tensor reduced(const Tensor& losses, LossReduction reduction, DType dtype);

/// Throws: DTypeError unless `other` is floating and of x's dtype; DeviceError unless it is on x's device.
void check_like(const char* op, const Tensor& x, const Tensor& other, const char* role, Location where);

/// A factor that broadcasts to the input x, with halves converted to f32. Throws: ShapeError; DTypeError; DeviceError.
Tensor factor(const char* op, const Tensor& x, const Tensor& weight, const char* role, DType dtype, Location where);

/// An input and its target, of one shape and one floating dtype; names the caller while it lives.
struct Compared {
  Compared(const char* op, const Arg& input, const Arg& target);

  Location where;
  OpScope caller;
  DType dtype;
  Tensor input, target;
};

/// The losses of single elements, with halves converted to f32. `parameter`: δ or β.
Tensor element_losses(ElementLoss kind, const Compared& given, double parameter = 0);

}  // namespace reel::detail
