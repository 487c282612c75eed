#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <reel/nn/module.h>
#include <reel/nn/module_list.h>
#include <reel/no_record.h>
#include <reel/ops/elementwise.h>

/// \file
/// Layers whose weight is computed from other parameters at each call: weight normalisation, spectral normalisation,
/// and any other function of a program. A layer is moved into its wrapper:
///
///     struct Critic : nn::Module {
///       nn::SpectralNorm<nn::Linear> hidden{*this, "hidden", nn::Linear(2, 64)};
///       nn::WeightNorm<nn::Linear> output{*this, "output", nn::Linear(64, 1, {.bias = false})};
///
///       Tensor operator()(const Arg& x) const { return output(relu(hidden(x))); }
///     };

namespace reel::detail {

/// The axes of x but one.
Shape axes_but(const Tensor& x, std::int64_t axis);
/// The axis of a weight that counts outputs: the last of a matrix, else the first, unless one is given.
/// Throws: ShapeError if the given one does not exist.
std::int64_t output_axis(const char* name, const Tensor& weight, std::optional<std::int64_t> given, Location where);
/// ‖v‖ over all axes but one, with these of size 1.
Tensor norm_but(const Tensor& v, std::int64_t axis);
/// w / σ, where σ = uᵀ W v. In training, u and v are first brought closer to the singular vectors of the largest singular
/// value, in place.
Tensor divided_by_spectral_norm(const Tensor& weight, std::int64_t axis, const Tensor& u, const Tensor& v,
                                int iterations, double epsilon);
/// A vector of length 1 of the dtype and device of x, drawn from the normal distribution.
Tensor unit_vector(std::int64_t size, const Tensor& x, Generator* generator);
/// Throws: Error unless there is an iteration; ShapeError unless the weight has two axes at least, and elements.
void check_spectral_norm(const Tensor& weight, int iterations, Location where);
/// Throws: Error unless the weight is defined, and the layer by itself.
void check_parametrisable(const nn::Module& layer, const Tensor& weight, Location where);
/// Throws: ShapeError unless the computed weight has the shape of the one before.
void check_computed(const nn::Module& layer, const Tensor& computed, const Shape& shape);

}  // namespace reel::detail

namespace reel::nn {

/// Base class of layers whose weight is computed from other parameters at each call. `member` is the weight's member in
/// the layer. A derived class declares parameters, makes them of `initial_weight()`, and overrides `effective_weight`:
///
///     struct Symmetric : nn::Parametrised<nn::Linear> {
///       nn::Parameter free{*this, "free", initial_weight()};
///
///       using Parametrised::Parametrised;
///       Tensor effective_weight() const override { return triu(free) + transpose(triu(free, 1), 0, 1); }
///     };
///
/// The weight of the layer itself is undefined and not among the parameters: a call computes the weight and runs a copy
/// of the layer that has it and shares all else, so that threads may call one layer concurrently. C++ must be able to
/// copy the layer.
/// Source: PyTorch's torch.nn.utils.parametrize.
template <std::derived_from<Module> Layer, auto member = &Layer::weight>
struct Parametrised : Module {
  Layer layer;  ///< the layer, with its other parameters

  /// A layer by itself, not part of a module.
  /// Throws: Error if the wrapped layer is part of a module already, or has no weight yet.
  explicit Parametrised(Layer wrapped, Location where = Location::here()) : layer(std::move(wrapped)) {
    detail::check_parametrisable(layer, layer.*member, where);
    initial_ = layer.*member;
    shape_ = initial_.shape();
    layer.*member = Tensor();
    layer.join(*this, "layer", where);
  }
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot, and if the wrapped layer is part of
  /// a module already, or has no weight yet.
  Parametrised(Module& parent, std::string_view name, Layer wrapped, Location where = Location::here())
      : Parametrised(std::move(wrapped), where) {
    join(parent, name, where);
  }

  /// The result of the layer with the computed weight.
  /// Throws: ShapeError unless the computed weight has the shape of the layer's own; what the layer throws.
  Tensor operator()(const Arg& x) const {
    return call("Parametrised", x, [&](const Tensor& x) {
      Tensor weight = effective_weight();
      detail::check_computed(layer, weight, shape_);
      std::shared_ptr<Layer> used = copy_for_call(layer);
      static_cast<Tensor&>((*used).*member) = std::move(weight);
      return std::as_const(*used)(x);
    });
  }
  /// The weight that the next call uses.
  virtual Tensor effective_weight() const = 0;

 protected:
  /// The weight that the layer had, once: for the constructor of a derived class.
  Tensor initial_weight() { return std::exchange(initial_, {}); }

 private:
  Tensor initial_;
  Shape shape_;
};

/// Options of WeightNorm.
struct WeightNormOptions {
  /// The axis of the weight that counts outputs, each of which has a magnitude of its own. Null (default): the last of
  /// a matrix, else the first; a transposed convolution wants 1.
  std::optional<std::int64_t> axis = {};
};

/// A layer whose weight is a magnitude times a direction, w = g v / ‖v‖, with one magnitude g for each output. The
/// parameters are `magnitude` and `direction`; at first w is the layer's own weight.
/// Source: Salimans and Kingma, Weight normalization (2016), equation 2; PyTorch's weight_norm.
template <std::derived_from<Module> Layer, auto member = &Layer::weight>
struct WeightNorm : Parametrised<Layer, member> {
  Parameter direction;  ///< v, of the shape of the layer's weight
  Parameter magnitude;  ///< g, of the shape of the weight with size 1 on all axes but that of the outputs

  /// A layer by itself, not part of a module.
  /// Throws: Error if the wrapped layer is part of a module already, or has no weight yet; ShapeError if the axis does
  /// not exist.
  explicit WeightNorm(Layer wrapped, WeightNormOptions options = {}, Location where = Location::here())
      : Parametrised<Layer, member>(std::move(wrapped), where),
        direction(*this, "direction", this->initial_weight(), where),
        magnitude(*this, "magnitude", Tensor(), where),
        axis_(detail::output_axis("WeightNorm", direction, options.axis, where)) {
    NoRecord pause;
    magnitude = detail::norm_but(direction, axis_);
  }
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot, and if the wrapped layer is part of
  /// a module already, or has no weight yet; ShapeError if the axis does not exist.
  WeightNorm(Module& parent, std::string_view name, Layer wrapped, WeightNormOptions options = {},
             Location where = Location::here())
      : WeightNorm(std::move(wrapped), options, where) {
    this->join(parent, name, where);
  }

  /// g v / ‖v‖.
  Tensor effective_weight() const override { return magnitude * (direction / detail::norm_but(direction, axis_)); }

 private:
  std::int64_t axis_;
};

/// Options of SpectralNorm.
struct SpectralNormOptions {
  int power_iterations = 1;  ///< of each call in training, at least 1; default 1
  double epsilon = 1e-12;    ///< the least length by which a vector is divided; default 1e-12
  /// The axis of the weight that counts outputs; the others are those of inputs. Null (default): the last of a matrix,
  /// else the first; a transposed convolution wants 1.
  std::optional<std::int64_t> axis = {};
  Generator* generator = nullptr;  ///< of the first vectors; null (default): this thread's `default_generator()`
};

/// A layer whose weight is divided by its largest singular value σ, so that the layer is Lipschitz with constant 1. The
/// weight W, as a matrix of outputs and inputs, is the parameter `original`; σ = uᵀ W v, where the buffers `u` and `v`
/// follow the singular vectors by power iteration at each call in training, when one thread at a time may call it.
/// Gradients flow through σ, not through u and v.
/// Source: Miyato et al., Spectral normalization for generative adversarial networks (2018), section 2.1; PyTorch's
/// spectral_norm, whose 15 iterations at the start this does, too.
template <std::derived_from<Module> Layer, auto member = &Layer::weight>
struct SpectralNorm : Parametrised<Layer, member> {
  Parameter original;  ///< W, of the shape of the layer's weight
  Buffer u;            ///< (outputs)
  Buffer v;            ///< (inputs)

  /// A layer by itself, not part of a module.
  /// Throws: Error if the wrapped layer is part of a module already, or has no weight yet, and unless there is an
  /// iteration; ShapeError if the weight has less than two axes, or the axis does not exist.
  explicit SpectralNorm(Layer wrapped, SpectralNormOptions options = {}, Location where = Location::here())
      : Parametrised<Layer, member>(std::move(wrapped), where),
        original(*this, "original", this->initial_weight(), where),
        options_(options) {
    NoRecord pause;
    options_.axis = detail::output_axis("SpectralNorm", original, options.axis, where);
    detail::check_spectral_norm(original, options.power_iterations, where);
    std::int64_t outputs = original.size(*options_.axis);
    u = Buffer(*this, "u", detail::unit_vector(outputs, original, options.generator), where);
    v = Buffer(*this, "v", detail::unit_vector(original.numel() / outputs, original, options.generator), where);
    static_cast<void>(divided(15));
  }
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot, if the wrapped layer is part of a
  /// module already, or has no weight yet, and unless there is an iteration; ShapeError if the weight has less than two
  /// axes, or the axis does not exist.
  SpectralNorm(Module& parent, std::string_view name, Layer wrapped, SpectralNormOptions options = {},
               Location where = Location::here())
      : SpectralNorm(std::move(wrapped), options, where) {
    this->join(parent, name, where);
  }

  /// W / σ; in training, after the power iteration.
  Tensor effective_weight() const override { return divided(this->is_training() ? options_.power_iterations : 0); }

 private:
  Tensor divided(int iterations) const {
    return detail::divided_by_spectral_norm(original, *options_.axis, u, v, iterations, options_.epsilon);
  }

  SpectralNormOptions options_;
};

}  // namespace reel::nn
