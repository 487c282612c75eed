#pragma once

#include <reel/detail/fixed_name.h>
#include <reel/nn/module.h>
#include <reel/ops/activation.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/softmax.h>

/// \file
/// Activations as layers, to see them in a summary or choose among them: a Sequential takes the ops themselves, too.

namespace reel::detail {

inline Tensor softmax_along(const Arg& x, int axis) { return softmax(x, axis); }
inline Tensor log_softmax_along(const Arg& x, int axis) { return log_softmax(x, axis); }

}  // namespace reel::detail

namespace reel::nn {

/// A layer that applies an elementwise op without options.
template <FixedName layer_name, auto op>
struct Activation : Module {
  /// A layer by itself, not part of a module.
  Activation() = default;
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot.
  explicit Activation(Module& parent, std::string_view name, Location where = Location::here()) {
    join(parent, name, where);
  }

  /// The op of x, of any shape. Throws: what the op throws; Error if x is undefined.
  Tensor operator()(const Arg& x) const {
    return call(layer_name.text, x, [](const Tensor& x) { return op(x); });
  }
};

/// A layer that applies an op with options.
template <FixedName layer_name, auto op, class Options>
struct ActivationWith : Module {
  /// A layer by itself, not part of a module. `options` are those of the op.
  explicit ActivationWith(const Options& options = {}) : options_(options) {}
  /// A layer that is registered in `parent` under `name`. `options` are those of the op.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot.
  ActivationWith(Module& parent, std::string_view name, const Options& options = {}, Location where = Location::here())
      : options_(options) {
    join(parent, name, where);
  }

  /// The op of x with the options. Throws: what the op throws; Error if x is undefined.
  Tensor operator()(const Arg& x) const {
    return call(layer_name.text, x, [&](const Tensor& x) { return op(x, options_); });
  }

 private:
  Options options_;
};

/// Options of layers whose op works along an axis.
struct AxisOptions {
  int axis = -1;  ///< negative ones count from the end; default the last

  /// The axis.
  operator int() const { return axis; }
};

/// The op `relu` as a layer: max(x, 0), elementwise. Source: PyTorch's ReLU.
struct ReLU : Activation<"ReLU", relu> {
  /// The constructors of the base class.
  using Activation::Activation;
};
/// The op `sigmoid` as a layer: 1 / (1 + e^−x), elementwise. Source: PyTorch's Sigmoid.
struct Sigmoid : Activation<"Sigmoid", sigmoid> {
  /// The constructors of the base class.
  using Activation::Activation;
};
/// The op `tanh` as a layer: tanh(x), elementwise. Source: PyTorch's Tanh.
struct Tanh : Activation<"Tanh", tanh> {
  /// The constructors of the base class.
  using Activation::Activation;
};
/// The op `silu` as a layer: x sigmoid(x), elementwise. Source: PyTorch's SiLU.
struct SiLU : Activation<"SiLU", silu> {
  /// The constructors of the base class.
  using Activation::Activation;
};
/// The op `selu` as a layer: λ x where x > 0, else λ α (e^x − 1), with λ = 1.0507009873554805 and α =
/// 1.6732632423543772, elementwise.
/// Source: PyTorch's SELU.
struct SELU : Activation<"SELU", selu> {
  /// The constructors of the base class.
  using Activation::Activation;
};
/// The op `mish` as a layer: x tanh(log(1 + e^x)), elementwise. Source: PyTorch's Mish.
struct Mish : Activation<"Mish", mish> {
  /// The constructors of the base class.
  using Activation::Activation;
};
/// The op `hardswish` as a layer: x min(max(x + 3, 0), 6) / 6, elementwise. Source: PyTorch's Hardswish.
struct Hardswish : Activation<"Hardswish", hardswish> {
  /// The constructors of the base class.
  using Activation::Activation;
};
/// The op `hardsigmoid` as a layer: min(max(x + 3, 0), 6) / 6, elementwise. Source: PyTorch's Hardsigmoid.
struct Hardsigmoid : Activation<"Hardsigmoid", hardsigmoid> {
  /// The constructors of the base class.
  using Activation::Activation;
};
/// The op `logsigmoid` as a layer: −log(1 + e^−x), elementwise. Source: PyTorch's LogSigmoid.
struct LogSigmoid : Activation<"LogSigmoid", logsigmoid> {
  /// The constructors of the base class.
  using Activation::Activation;
};
/// The op `softsign` as a layer: x / (1 + |x|), elementwise. Source: PyTorch's Softsign.
struct Softsign : Activation<"Softsign", softsign> {
  /// The constructors of the base class.
  using Activation::Activation;
};
/// The op `leaky_relu` as a layer: x where x > 0, else slope · x, elementwise. Source: PyTorch's LeakyReLU.
struct LeakyReLU : ActivationWith<"LeakyReLU", leaky_relu, LeakyReluOptions> {
  /// The constructors of the base class.
  using ActivationWith::ActivationWith;
};
/// The op `gelu` as a layer: x Φ(x), or its tanh approximation, elementwise. Source: PyTorch's GELU.
struct GELU : ActivationWith<"GELU", gelu, GeluOptions> {
  /// The constructors of the base class.
  using ActivationWith::ActivationWith;
};
/// The op `elu` as a layer: x where x > 0, else α (e^x − 1), elementwise. Source: PyTorch's ELU.
struct ELU : ActivationWith<"ELU", elu, EluOptions> {
  /// The constructors of the base class.
  using ActivationWith::ActivationWith;
};
/// The op `softplus` as a layer: log(1 + e^(β x)) / β, elementwise. Source: PyTorch's Softplus.
struct Softplus : ActivationWith<"Softplus", softplus, SoftplusOptions> {
  /// The constructors of the base class.
  using ActivationWith::ActivationWith;
};
/// The op `hardtanh` as a layer: min(max(x, low), high), elementwise. Source: PyTorch's Hardtanh.
struct Hardtanh : ActivationWith<"Hardtanh", hardtanh, HardtanhOptions> {
  /// The constructors of the base class.
  using ActivationWith::ActivationWith;
};
/// The op `celu` as a layer: x where x > 0, else α (e^(x / α) − 1), elementwise. Source: PyTorch's CELU.
struct CELU : ActivationWith<"CELU", celu, CeluOptions> {
  /// The constructors of the base class.
  using ActivationWith::ActivationWith;
};
/// The op `softshrink` as a layer: x moved towards 0 by λ, 0 where |x| ≤ λ, elementwise. Source: PyTorch's Softshrink.
struct Softshrink : ActivationWith<"Softshrink", softshrink, ShrinkOptions> {
  /// The constructors of the base class.
  using ActivationWith::ActivationWith;
};
/// The op `hardshrink` as a layer: x where |x| > λ, else 0, elementwise. Source: PyTorch's Hardshrink.
struct Hardshrink : ActivationWith<"Hardshrink", hardshrink, ShrinkOptions> {
  /// The constructors of the base class.
  using ActivationWith::ActivationWith;
};
/// The op `softmax` as a layer, along an axis. Source: PyTorch's Softmax.
struct Softmax : ActivationWith<"Softmax", reel::detail::softmax_along, AxisOptions> {
  /// The constructors of the base class.
  using ActivationWith::ActivationWith;
};
/// The op `log_softmax` as a layer, along an axis. Source: PyTorch's LogSoftmax.
struct LogSoftmax : ActivationWith<"LogSoftmax", reel::detail::log_softmax_along, AxisOptions> {
  /// The constructors of the base class.
  using ActivationWith::ActivationWith;
};
/// The op `glu` as a layer: a sigmoid(b) of the halves a, b of x along an axis. Source: PyTorch's GLU.
struct GLU : ActivationWith<"GLU", glu, AxisOptions> {
  /// The constructors of the base class.
  using ActivationWith::ActivationWith;
};

/// Options of PReLU.
struct PReLUOptions {
  double slope = 0.25;       ///< the initial slope, any number; default 0.25
  DType dtype = DType::f32;  ///< the parameters' dtype, floating; default f32
};

/// x where x > 0, else slope · x, elementwise, with learnt slopes: one for all of x, or one for each of `channels` on
/// axis 1. The gradient at 0 is the slope.
/// Source: PyTorch's PReLU; He et al., Delving deep into rectifiers (ICCV 2015).
struct PReLU : Module {
  Parameter weight;  ///< (channels): the slopes

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless `channels` is positive.
  explicit PReLU(std::int64_t channels = 1, PReLUOptions options = {}, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless `channels` is
  /// positive.
  PReLU(Module& parent, std::string_view name, std::int64_t channels = 1, PReLUOptions options = {},
        Location where = Location::here())
      : PReLU(channels, options, where) {
    join(parent, name, where);
  }

  /// x where x > 0, else slope · x, elementwise.
  /// Throws: ShapeError unless axis 1 of x has the channels, if there are several; Error if x is undefined.
  Tensor operator()(const Arg& x) const;
};

}  // namespace reel::nn
