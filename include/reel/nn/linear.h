#pragma once

#include <reel/nn/module.h>
#include <reel/sparse.h>

namespace reel::nn {

/// Options of Linear.
struct LinearOptions {
  bool bias = true;              ///< whether there is a bias; default true
  Initialiser initialiser = {},  ///< of the weight; null (default): uniform on ±1/√in
      bias_initialiser = {};     ///< of the bias; null (default): uniform on ±1/√in
  DType dtype = DType::f32;      ///< the parameters' dtype, floating; default f32
  /// The generator of the initial values; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
  /// Whether the weight gets its gradient by rows where x is sparse: see CSRMatmulOptions. Default false.
  bool row_gradient = false;
};

/// y = x W + b, over the last axis: x (…, in) → y (…, out). The weight is stored as (in, out), so that a product needs
/// no transpose. Weight and bias are initialised uniformly on ±1/√in.
/// Source: PyTorch's Linear, whose weight is the transpose of this one.
struct Linear : Module {
  Parameter weight;  ///< (in, out)
  Parameter bias;    ///< (out); undefined without bias

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless both sizes are positive.
  Linear(std::int64_t in, std::int64_t out, LinearOptions options = {}, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless both sizes are
  /// positive.
  Linear(Module& parent, std::string_view name, std::int64_t in, std::int64_t out, LinearOptions options = {},
         Location where = Location::here())
      : Linear(in, out, options, where) {
    join(parent, name, where);
  }

  /// y = x W + b, over the last axis: x (…, in) → (…, out).
  /// Throws: ShapeError unless x ends in an axis of size `in`; Error if x is undefined.
  Tensor operator()(const Arg& x) const;
  /// y = x W + b for rows of a sparse matrix: x (N, in) → (N, out), dense. Hooks see the values of its entries.
  /// Throws: ShapeError unless x has `in` columns; Error if x is undefined.
  Tensor operator()(const CSRMatrix& x, Location where = Location::here()) const;

 private:
  bool row_gradient_;
};

}  // namespace reel::nn
