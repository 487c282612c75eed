#pragma once

#include <reel/nn/module.h>

namespace reel::nn {

/// Options of Bilinear.
struct BilinearOptions {
  bool bias = true;              ///< whether there is a bias; default true
  Initialiser initialiser = {},  ///< of the weight; null (default): uniform on ±1/√in_1
      bias_initialiser = {};     ///< of the bias; null (default): uniform on ±1/√in_1
  DType dtype = DType::f32;      ///< the parameters' dtype, floating; default f32
  /// The generator of the initial values; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// y_o = aᵀ W_o b + bias_o, over the last axes: a (…, in_1), b (…, in_2) → (…, out). Source: PyTorch's Bilinear.
struct Bilinear : Module {
  Parameter weight;  ///< (out, in_1, in_2)
  Parameter bias;    ///< (out); undefined without bias

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless all sizes are positive.
  Bilinear(std::int64_t in_1, std::int64_t in_2, std::int64_t out, BilinearOptions options = {},
           Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless all sizes are
  /// positive.
  Bilinear(Module& parent, std::string_view name, std::int64_t in_1, std::int64_t in_2, std::int64_t out,
           BilinearOptions options = {}, Location where = Location::here())
      : Bilinear(in_1, in_2, out, options, where) {
    join(parent, name, where);
  }

  /// y_o = aᵀ W_o b + bias_o, over the last axes: a (…, in_1), b (…, in_2) → (…, out).
  /// Throws: ShapeError unless a and b end in axes of these sizes, with equal axes before; DTypeError; Error for an
  /// undefined one.
  Tensor operator()(const Arg& a, const Tensor& b) const;
};

}  // namespace reel::nn
