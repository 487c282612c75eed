#pragma once

#include <reel/nn/module.h>

namespace reel::nn {

struct LinearOptions {
  bool bias = true;
  /// Of the weight and of the bias; null: uniform on ±1/√in.
  Initialiser initialiser = {}, bias_initialiser = {};
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// y = x W + b, over the last axis: x (…, in) → y (…, out).
/// The weight is stored as (in, out), so that a product needs no transpose. Weight and bias start uniform on ±1/√in.
/// Source: PyTorch's Linear, whose weight is the transpose of this one.
struct Linear : Module {
  Parameter weight;  ///< (in, out)
  Parameter bias;    ///< (out); undefined without bias

  /// Throws: ShapeError unless both sizes are positive.
  Linear(std::int64_t in, std::int64_t out, LinearOptions options = {}, Location where = Location::here());
  Linear(Module& parent, std::string_view name, std::int64_t in, std::int64_t out, LinearOptions options = {},
         Location where = Location::here())
      : Linear(in, out, options, where) {
    join(parent, name, where);
  }

  /// Throws: ShapeError unless x ends in an axis of size `in`.
  Tensor operator()(const Arg& x) const;
};

}  // namespace reel::nn
