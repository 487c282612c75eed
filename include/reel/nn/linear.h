#pragma once

#include <cstdint>
#include <memory>

#include <reel/nn/module.h>
#include <reel/sparse.h>

namespace reel::nn {

/// The input size of a Linear that learns it at its first call.
inline constexpr std::int64_t infer_size = -1;

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
///
/// With `in` = `infer_size`, the parameters are made at the first call, for x's last axis and on x's device. Until then
/// they are undefined, and what lists, converts, saves or loads the parameters of the model throws Error: call the model
/// once before its optimiser is made. One thread must make that call, outside of `batch_map`, `checkpoint` and
/// `functional_call`.
///
///     nn::Sequential net(nn::Conv2d(1, 8, 5), relu, nn::Flatten(), nn::Linear(nn::infer_size, 10));
///     net(zeros({1, 1, 28, 28}));
///
/// Source: PyTorch's Linear, whose weight is the transpose of this one, and LazyLinear.
struct Linear : Module {
  Parameter weight;  ///< (in, out)
  Parameter bias;    ///< (out); undefined without bias

  /// A layer by itself, not part of a module; `in` may be `infer_size`. `options.generator` must then live until the
  /// first call.
  /// Throws: ShapeError unless both sizes are positive.
  Linear(std::int64_t in, std::int64_t out, LinearOptions options = {}, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`; `in` may be `infer_size`. `options.generator` must then live
  /// until the first call.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless both sizes are
  /// positive.
  Linear(Module& parent, std::string_view name, std::int64_t in, std::int64_t out, LinearOptions options = {},
         Location where = Location::here())
      : Linear(in, out, options, where) {
    join(parent, name, where);
  }

  /// y = x W + b, over the last axis: x (…, in) → (…, out).
  /// Throws: ShapeError unless x ends in an axis of size `in`; Error if x is undefined, and at the first call of a layer
  /// that learns its input size, within `batch_map`, `checkpoint` or `functional_call`.
  Tensor operator()(const Arg& x) const;
  /// y = x W + b for rows of a sparse matrix: x (N, in) → (N, out), dense. Hooks see the values of its entries.
  /// Throws: ShapeError unless x has `in` columns; Error if x is undefined.
  Tensor operator()(const CSRMatrix& x, Location where = Location::here()) const;

 protected:
  // Inline: a virtual function that only the library defines would leave programs without debug information of Linear.
  void check_initialised() const override {
    if (deferred_) refuse_uninitialised();
  }

 private:
  // Arguments with which the first call makes the parameters.
  struct Deferred {
    std::int64_t out;
    LinearOptions options;
    Location where;
  };
  [[noreturn]] void refuse_uninitialised() const;
  // Makes the parameters if there was no call yet.
  void initialise(std::int64_t in, Device device, Location where) const;

  mutable std::shared_ptr<const Deferred> deferred_;  // null once there are parameters
  bool row_gradient_;
};

}  // namespace reel::nn
