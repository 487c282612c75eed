#pragma once

#include <reel/nn/module.h>

namespace reel::nn {

/// Options of LayerNorm.
struct LayerNormOptions {
  /// ε, added to the variance; at least 0. Default 10⁻⁵.
  double epsilon = 1e-5;
  /// Whether there are a weight and a bias; without, they are 1 and 0. Default true.
  bool affine = true;
  DType dtype = DType::f32;  ///< the parameters' dtype, floating; default f32
};

/// y = (x − mean) / √(variance + ε) · weight + bias over the last axes of x, whose sizes are `normalised`: `layer_norm`
/// with a weight initialised with 1 and a bias initialised with 0.
/// Source: PyTorch's LayerNorm.
struct LayerNorm : Module {
  Parameter weight;  ///< (normalised…); undefined unless affine
  Parameter bias;    ///< (normalised…); undefined unless affine

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless `normalised` has at least one size, all positive.
  explicit LayerNorm(const Shape& normalised, LayerNormOptions options = {}, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless `normalised` has
  /// at least one size, all positive.
  LayerNorm(Module& parent, std::string_view name, const Shape& normalised, LayerNormOptions options = {},
            Location where = Location::here())
      : LayerNorm(normalised, options, where) {
    join(parent, name, where);
  }

  /// The normalised x. Throws: ShapeError unless x ends in these axes; DTypeError unless x is floating.
  Tensor operator()(const Arg& x) const;

 private:
  Shape normalised_;
  double epsilon_;
};

}  // namespace reel::nn
