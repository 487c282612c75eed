#pragma once

#include <cstdint>
#include <optional>

#include <reel/tensor.h>

#include "../../core/op.h"
#include "../../record/gradient.h"

// Products with weights that are rounded to halves, so that a step of few rows reads half as many bytes. `rounding` is
// bf16, f16, or f32 for weights that are multiplied as they are.

namespace reel::detail {

/// The attributes of an op that multiplies by weights.
struct WeightAttributes {
  std::int64_t rounding_index = static_cast<std::int64_t>(DType::f32);
  DType rounding() const { return static_cast<DType>(rounding_index); }
};

/// The rounding for weights of a dtype, from the caller's option; a `weight_dtype` that they have already rounds
/// nothing.
/// Throws: DTypeError if `weight_dtype` is neither bf16 nor f16, or the weights are not f32.
DType rounding_of(const char* op, std::optional<DType> weight_dtype, DType weights, Location where);

/// x round(W) for x (…, K), f32 unless an autocast scope casts it, and W (K, M), f32; x W if nothing is rounded. The
/// gradient of W is xᵀ dy, straight through the rounding.
Tensor weight_product(const Tensor& x, const Tensor& W, DType rounding, Location where);
/// a round(W)ᵀ, or a Wᵀ if nothing is rounded, for the gradient of a product.
Tensor times_transposed_weight(const Gradient& gradient, const Tensor& a, const Tensor& W, DType rounding);

/// out = x round(W), within an op.
void multiply_by_weight(const Call& call, const Body& out, const Body& x, const Body& W, DType rounding);

/// A weight for kernels of any device, within an op: where the device has no kernel that rounds, a rounded copy.
class WeightOperand {
 public:
  WeightOperand(const Call& call, const Body& W, DType rounding);
  const Body& body() const { return copy_.defined() ? copy_.body() : weight_; }
  /// The dtype to which the kernel rounds; f32: it does not round.
  DType rounding() const { return rounding_; }

 private:
  const Body& weight_;
  Tensor copy_;
  DType rounding_;
};

}  // namespace reel::detail
