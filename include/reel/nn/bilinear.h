#pragma once

#include <reel/nn/module.h>

namespace reel::nn {

struct BilinearOptions {
  bool bias = true;
  /// Of the weight and of the bias; null: uniform on ±1/√in_1.
  Initialiser initialiser = {}, bias_initialiser = {};
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// y_o = aᵀ W_o b + bias_o, over the last axes: a (…, in_1), b (…, in_2) → (…, out). Source: PyTorch's Bilinear.
struct Bilinear : Module {
  Parameter weight;  ///< (out, in_1, in_2)
  Parameter bias;    ///< (out); undefined without bias

  /// Throws: ShapeError unless all sizes are positive.
  Bilinear(std::int64_t in_1, std::int64_t in_2, std::int64_t out, BilinearOptions options = {},
           Location where = Location::here());
  Bilinear(Module& parent, std::string_view name, std::int64_t in_1, std::int64_t in_2, std::int64_t out,
           BilinearOptions options = {}, Location where = Location::here())
      : Bilinear(in_1, in_2, out, options, where) {
    join(parent, name, where);
  }

  /// Throws: ShapeError unless a and b end in axes of these sizes, behind the same others.
  Tensor operator()(const Arg& a, const Tensor& b) const;
};

}  // namespace reel::nn
