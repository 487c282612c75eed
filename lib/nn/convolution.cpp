#include <reel/nn/convolution.h>

#include <cmath>

#include "../core/op_error.h"

namespace reel::nn {

using namespace detail;

namespace {

template <int axes>
constexpr const char* convolution_name = axes == 1   ? "Conv1d"
                                         : axes == 2 ? "Conv2d"
                                                     : "Conv3d";
template <int axes>
constexpr const char* transposed_name = axes == 1   ? "ConvTransposed1d"
                                        : axes == 2 ? "ConvTransposed2d"
                                                    : "ConvTransposed3d";

// The shape of a weight: (first, second / groups, k…).
Shape weight_shape(const char* name, int axes, std::int64_t first, std::int64_t second, std::int64_t groups,
                   const AxisNumbers& window, Location where) {
  const Shape& given = window.given();
  if (given.rank() != 1 && given.rank() != axes)
    fail<ShapeError>(name, where, "a window has one size, or {}, not {}", axes, to_string(given));
  bool positive = first > 0 && second > 0;
  for (std::int64_t size : given) positive = positive && size > 0;
  if (!positive)
    fail<ShapeError>(name, where, "sizes must be positive, not those of {} and {} channels and a window {}", first,
                     second, to_string(given));
  if (groups < 1 || first % groups != 0 || second % groups != 0)
    fail<ShapeError>(name, where, "{} groups do not divide {} and {} channels", groups, first, second);
  Shape shape{first, second / groups};
  for (int axis = 0; axis < axes; ++axis) shape.push_back(given[given.rank() == 1 ? 0 : axis]);
  return shape;
}

// The initialiser of both the weight and the bias, unless one is given. Source: PyTorch, which uses He's rule with gain
// √(1/3).
Initialiser first_values(const Initialiser& given, const Shape& weight) {
  if (given) return given;
  double fan = 1;
  for (int axis = 1; axis < weight.rank(); ++axis) fan *= static_cast<double>(weight[axis]);
  double bound = 1 / std::sqrt(fan);
  return uniform(-bound, bound);
}

template <class Options>
void make(Module& module, Parameter& weight, Parameter& bias, const Shape& shape, std::int64_t out,
          const Options& options, Location where) {
  RandomOptions draw{.dtype = options.dtype, .generator = options.generator};
  weight = Parameter(module, "weight", shape, first_values(options.initialiser, shape), draw, where);
  if (options.bias) bias = Parameter(module, "bias", {out}, first_values(options.bias_initialiser, shape), draw, where);
}

}  // namespace

template <int axes>
Convolution<axes>::Convolution(std::int64_t in, std::int64_t out, const AxisNumbers& window, ConvolutionOptions options,
                               Location where)
    : options_{.stride = options.stride,
               .padding = options.padding,
               .dilation = options.dilation,
               .groups = options.groups,
               .layout = options.layout} {
  Shape shape = weight_shape(convolution_name<axes>, axes, out, in, options.groups, window, where);
  make(*this, weight, bias, shape, out, options, where);
}

template <int axes>
Tensor Convolution<axes>::operator()(const Arg& x) const {
  constexpr Tensor (*plain[])(const Arg&, const Arg&, const reel::ConvolutionOptions&) = {conv1d, conv2d, conv3d};
  constexpr Tensor (*with_bias[])(const Arg&, const Arg&, const Arg&, const reel::ConvolutionOptions&) = {
      conv1d, conv2d, conv3d};
  return call(convolution_name<axes>, x, [&](const Tensor& x) {
    return bias.defined() ? with_bias[axes - 1](x, weight, bias, options_) : plain[axes - 1](x, weight, options_);
  });
}

template <int axes>
TransposedConvolution<axes>::TransposedConvolution(std::int64_t in, std::int64_t out, const AxisNumbers& window,
                                                   TransposedConvolutionOptions options, Location where)
    : options_{.stride = options.stride,
               .padding = options.padding,
               .output_padding = options.output_padding,
               .dilation = options.dilation,
               .groups = options.groups,
               .layout = options.layout} {
  Shape shape = weight_shape(transposed_name<axes>, axes, in, out, options.groups, window, where);
  make(*this, weight, bias, shape, out, options, where);
}

template <int axes>
Tensor TransposedConvolution<axes>::operator()(const Arg& x) const {
  constexpr Tensor (*plain[])(const Arg&, const Arg&, const reel::TransposedConvolutionOptions&) = {
      conv_transposed1d, conv_transposed2d, conv_transposed3d};
  constexpr Tensor (*with_bias[])(const Arg&, const Arg&, const Arg&, const reel::TransposedConvolutionOptions&) = {
      conv_transposed1d, conv_transposed2d, conv_transposed3d};
  return call(transposed_name<axes>, x, [&](const Tensor& x) {
    return bias.defined() ? with_bias[axes - 1](x, weight, bias, options_) : plain[axes - 1](x, weight, options_);
  });
}

template struct Convolution<1>;
template struct Convolution<2>;
template struct Convolution<3>;
template struct TransposedConvolution<1>;
template struct TransposedConvolution<2>;
template struct TransposedConvolution<3>;

}  // namespace reel::nn
