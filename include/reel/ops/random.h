#pragma once

#include <reel/ops/create.h>
#include <reel/random.h>
#include <reel/tensor.h>

namespace reel {

struct RandomOptions {
  DType dtype = DType::f32;
  Device device = cpu;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// Uniform on [0, 1). f32 has 24 random bits, f64 53, f16 11, bf16 8.
Tensor rand(const Shape& shape, RandomOptions options = {}, Location where = Location::here());
/// Normal with mean 0 and variance 1. Source: Box and Muller, A note on the generation of random normal deviates (1958).
Tensor randn(const Shape& shape, RandomOptions options = {}, Location where = Location::here());

struct DropoutOptions {
  /// Probability, in [0, 1], with which an element becomes 0.
  double probability = 0.5;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// x / (1 − p) with each element set to 0 with probability p; the mask is drawn again, not stored, for the gradient.
/// Throws: Error for a probability outside [0, 1]; DTypeError unless floating.
/// Source: Srivastava et al., Dropout (JMLR 2014), in its inverted form.
Tensor dropout(const Arg& x, DropoutOptions options = {});

}  // namespace reel
