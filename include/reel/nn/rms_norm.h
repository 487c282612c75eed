#pragma once

#include <reel/nn/module.h>

namespace reel::nn {

struct RMSNormOptions {
  /// At least 0.
  double epsilon = 1e-5;
  /// Whether there is a weight; without, it counts as 1.
  bool affine = true;
  DType dtype = DType::f32;
};

/// y = x / √(mean(x²) + ε) · weight over the last axes of x, whose sizes are `normalised`: `rms_norm` with a weight that
/// starts at 1. Source: PyTorch's RMSNorm, whose default ε is the dtype's machine epsilon.
struct RMSNorm : Module {
  Parameter weight;  ///< (normalised…)

  /// Throws: ShapeError unless there is an axis, and all are positive.
  explicit RMSNorm(const Shape& normalised, RMSNormOptions options = {}, Location where = Location::here());
  RMSNorm(Module& parent, std::string_view name, const Shape& normalised, RMSNormOptions options = {},
          Location where = Location::here())
      : RMSNorm(normalised, options, where) {
    join(parent, name, where);
  }

  /// Throws: ShapeError unless x ends in these axes.
  Tensor operator()(const Arg& x) const;

 private:
  Shape normalised_;
  double epsilon_;
};

}  // namespace reel::nn
