#pragma once

#include <reel/nn/fixed_name.h>
#include <reel/nn/module.h>
#include <reel/ops/activation.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/softmax.h>

// Activations as layers, for those who want to see them in a summary or choose among them: a Sequential takes the ops
// themselves, too.

namespace reel::detail {

inline Tensor softmax_along(const Arg& x, int axis) { return softmax(x, axis); }
inline Tensor log_softmax_along(const Arg& x, int axis) { return log_softmax(x, axis); }

}  // namespace reel::detail

namespace reel::nn {

/// The op of the same name. Throws, when called: as the op.
template <FixedName layer_name, auto op>
struct Activation : Module {
  Activation() = default;
  explicit Activation(Module& parent, std::string_view name, Location where = Location::here()) {
    join(parent, name, where);
  }

  Tensor operator()(const Arg& x) const {
    return call(layer_name.text, x, [](const Tensor& x) { return op(x); });
  }
};

/// The same of an op with options.
template <FixedName layer_name, auto op, class Options>
struct ActivationWith : Module {
  explicit ActivationWith(const Options& options = {}) : options_(options) {}
  ActivationWith(Module& parent, std::string_view name, const Options& options = {}, Location where = Location::here())
      : options_(options) {
    join(parent, name, where);
  }

  Tensor operator()(const Arg& x) const {
    return call(layer_name.text, x, [&](const Tensor& x) { return op(x, options_); });
  }

 private:
  Options options_;
};

struct AxisOptions {
  int axis = -1;

  operator int() const { return axis; }
};

struct ReLU : Activation<"ReLU", relu> {
  using Activation::Activation;
};
struct Sigmoid : Activation<"Sigmoid", sigmoid> {
  using Activation::Activation;
};
struct Tanh : Activation<"Tanh", tanh> {
  using Activation::Activation;
};
struct SiLU : Activation<"SiLU", silu> {
  using Activation::Activation;
};
struct SELU : Activation<"SELU", selu> {
  using Activation::Activation;
};
struct LeakyReLU : ActivationWith<"LeakyReLU", leaky_relu, LeakyReluOptions> {
  using ActivationWith::ActivationWith;
};
struct GELU : ActivationWith<"GELU", gelu, GeluOptions> {
  using ActivationWith::ActivationWith;
};
struct ELU : ActivationWith<"ELU", elu, EluOptions> {
  using ActivationWith::ActivationWith;
};
struct Softplus : ActivationWith<"Softplus", softplus, SoftplusOptions> {
  using ActivationWith::ActivationWith;
};
struct Hardtanh : ActivationWith<"Hardtanh", hardtanh, HardtanhOptions> {
  using ActivationWith::ActivationWith;
};
struct Softmax : ActivationWith<"Softmax", reel::detail::softmax_along, AxisOptions> {
  using ActivationWith::ActivationWith;
};
struct LogSoftmax : ActivationWith<"LogSoftmax", reel::detail::log_softmax_along, AxisOptions> {
  using ActivationWith::ActivationWith;
};
struct GLU : ActivationWith<"GLU", glu, AxisOptions> {
  using ActivationWith::ActivationWith;
};

struct PReLUOptions {
  double slope = 0.25;
  DType dtype = DType::f32;
};

/// x where x > 0, else slope x, with a slope that is learnt: one for all of x, or one for each of `channels`, which stand on
/// axis 1. The gradient at 0 is the slope. Source: PyTorch's PReLU; He et al., Delving deep into rectifiers (ICCV 2015).
struct PReLU : Module {
  Parameter weight;  ///< (channels)

  /// Throws: ShapeError unless there is a channel.
  explicit PReLU(std::int64_t channels = 1, PReLUOptions options = {}, Location where = Location::here());
  PReLU(Module& parent, std::string_view name, std::int64_t channels = 1, PReLUOptions options = {},
        Location where = Location::here())
      : PReLU(channels, options, where) {
    join(parent, name, where);
  }

  /// Throws: ShapeError unless x has the channels.
  Tensor operator()(const Arg& x) const;
};

}  // namespace reel::nn
