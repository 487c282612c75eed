#pragma once

#include <reel/nn/module.h>

namespace reel::nn {

/// Options of RMSNorm.
struct RMSNormOptions {
  /// ε, added to the mean square; at least 0. Default 10⁻⁵.
  double epsilon = 1e-5;
  /// Whether there is a weight; without, it is 1. Default true.
  bool affine = true;
  DType dtype = DType::f32;  ///< the parameters' dtype, floating; default f32
};

/// y = x / √(mean(x²) + ε) · weight over the last axes of x, whose sizes are `normalised`: `rms_norm` with a weight
/// initialised with 1.
/// Source: PyTorch's RMSNorm, whose default ε is the dtype's machine epsilon.
struct RMSNorm : Module {
  Parameter weight;  ///< (normalised…); undefined unless affine

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless `normalised` has at least one size, all positive.
  explicit RMSNorm(const Shape& normalised, RMSNormOptions options = {}, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless `normalised` has
  /// at least one size, all positive.
  RMSNorm(Module& parent, std::string_view name, const Shape& normalised, RMSNormOptions options = {},
          Location where = Location::here())
      : RMSNorm(normalised, options, where) {
    join(parent, name, where);
  }

  /// The normalised x. Throws: ShapeError unless x ends in these axes; DTypeError unless x is floating.
  Tensor operator()(const Arg& x) const;

 private:
  Shape normalised_;
  double epsilon_;
};

}  // namespace reel::nn
