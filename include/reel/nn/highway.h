#pragma once

#include <reel/nn/linear.h>
#include <reel/ops/elementwise.h>

namespace reel::nn {

/// Options of Highway.
struct HighwayOptions {
  Tensor (*activation)(const Arg& x) = relu;  ///< f, of the transformed x; default relu
  /// The initial bias of the gate; below 0 the layer begins near y = x. Default −2.
  double gate_bias = -2;
  DType dtype = DType::f32;  ///< the parameters' dtype, floating; default f32
  /// The generator of the initial values; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// y = g ⊙ f(x W + b) + (1 − g) ⊙ x with the gate g = sigmoid(x V + c), over the last axis: x (…, size) → y (…, size).
/// Source: Srivastava et al., Highway networks (2015), equations 2 and 3.
struct Highway : Module {
  Linear transform;  ///< W and b
  Linear gate;       ///< V and c

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless the size is positive; Error for an activation that is null.
  explicit Highway(std::int64_t size, HighwayOptions options = {}, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot, and for an activation that is null;
  /// ShapeError unless the size is positive.
  Highway(Module& parent, std::string_view name, std::int64_t size, HighwayOptions options = {},
          Location where = Location::here())
      : Highway(size, options, where) {
    join(parent, name, where);
  }

  /// y of x (…, size). Throws: ShapeError unless x ends in an axis of size `size`; Error if x is undefined.
  Tensor operator()(const Arg& x) const;

 private:
  Tensor (*activation_)(const Arg& x);
};

}  // namespace reel::nn
