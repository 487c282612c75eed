#pragma once

#include <reel/nn/module.h>

namespace reel::nn {

struct LayerNormOptions {
  /// At least 0.
  double epsilon = 1e-5;
  /// Whether there are a weight and a bias; without, they count as 1 and 0.
  bool affine = true;
  DType dtype = DType::f32;
};

/// y = (x − mean) / √(variance + ε) · weight + bias over the last axes of x, whose sizes are `normalised`: `layer_norm` with
/// a weight that starts at 1 and a bias that starts at 0. Source: PyTorch's LayerNorm.
struct LayerNorm : Module {
  Parameter weight;  ///< (normalised…)
  Parameter bias;    ///< (normalised…)

  /// Throws: ShapeError unless there is an axis, and all are positive.
  explicit LayerNorm(const Shape& normalised, LayerNormOptions options = {}, Location where = Location::here());
  LayerNorm(Module& parent, std::string_view name, const Shape& normalised, LayerNormOptions options = {},
            Location where = Location::here())
      : LayerNorm(normalised, options, where) {
    join(parent, name, where);
  }

  /// Throws: ShapeError unless x ends in these axes.
  Tensor operator()(const Arg& x) const;

 private:
  Shape normalised_;
  double epsilon_;
};

}  // namespace reel::nn
