#pragma once

#include <reel/ops/loss.h>

#include "../core/op_error.h"

namespace reel::detail {

/// x, or f32 in place of halves, so that a loss rounds once.
Tensor in_full(const Tensor& x);

/// Losses of single elements brought together, in a dtype.
Tensor reduced(const Tensor& losses, LossReduction reduction, DType dtype);

/// Throws: DTypeError unless floating and of x's dtype; DeviceError.
void check_like(const char* op, const Tensor& x, const Tensor& other, const char* role, Location where);

/// An input and its target, of one shape and one floating dtype; names the caller while it lives.
struct Compared {
  Compared(const char* op, const Arg& input, const Arg& target);

  Location where;
  CallerScope caller;
  DType dtype;
  /// In full.
  Tensor input, target;
};

}  // namespace reel::detail
