#include <reel/nn/convolution.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <reel/ops/create.h>
#include <reel/ops/index.h>
#include <reel/ops/shape.h>

#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "affine.h"
#include "recurrent/packed.h"

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
Convolution<axes>::Convolution(std::int64_t in, std::int64_t out, const AxisNumbers& window,
                               ConvolutionLayerOptions options, Location where)
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

namespace {

// The elements that the windows of a convolution over each sequence see.
struct SequenceWindows {
  std::vector<std::int64_t> elements;  // of each window, −1 for a zero
  std::vector<std::int64_t> lengths;   // the number of windows of each sequence
};

SequenceWindows windows_of(std::span<const std::int64_t> lengths, std::int64_t window,
                           const reel::ConvolutionOptions& options, Location where) {
  std::int64_t stride = options.stride.given()[0], dilation = options.dilation.given()[0],
               before = options.padding.numbers().given()[0], reach = (window - 1) * dilation + 1, first = 0;
  if (stride < 1 || dilation < 1 || before < 0)
    fail<ShapeError>(convolution_name<1>, where, "stride {}, dilation {} and padding {} are not at least 1, 1 and 0",
                     stride, dilation, before);
  SequenceWindows windows;
  for (std::int64_t length : lengths) {
    std::int64_t padded = length + 2 * before;
    if (!options.padding.by_number()) {
      bool same = options.padding.rule() == Padding::same && length > 0;
      std::int64_t results = (length + stride - 1) / stride;
      padded = same ? std::max((results - 1) * stride + reach, length) : length;
      before = same ? (padded - length) / 2 : 0;
    }
    std::int64_t count = length == 0 || padded < reach ? 0 : (padded - reach) / stride + 1;
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t k = 0; k < window; ++k) {
        std::int64_t at = i * stride + k * dilation - before;
        windows.elements.push_back(at < 0 || at >= length ? -1 : first + at);
      }
    windows.lengths.push_back(count);
    first += length;
  }
  return windows;
}

}  // namespace

Packed Conv1d::operator()(const Packed& x, Location where) const {
  return with_memory_error(convolution_name<1>, where, [&]() -> Packed {
    check_packed(convolution_name<1>, x, where);
    std::int64_t out = weight.size(0), groups = options().groups, in = weight.size(1) * groups, window = weight.size(2);
    if (x.elements.rank() != 2 || x.elements.size(1) != in)
      fail<ShapeError>(convolution_name<1>, where, "the elements {} are not (N, {}), as the weight {} needs",
                       to_string(x.elements.shape()), in, to_string(weight.shape()));
    if (x.elements.dtype() != weight.dtype())
      fail<DTypeError>(convolution_name<1>, where, "the elements {} do not have the dtype {} of the weight",
                       describe(x.elements), name_of(weight.dtype()));
    SequenceWindows windows = windows_of(x.lengths, window, options(), where);
    Tensor y = call(convolution_name<1>, Arg(x.elements, where), [&](const Tensor& elements) {
      DeviceGuard here(elements.device());
      std::int64_t count = std::ssize(windows.elements) / window;
      // The zero row is the last one, which −1 names.
      Tensor rows = concat({elements, zeros({1, in}, {.dtype = elements.dtype()})});
      Tensor seen = take(rows, tensor(windows.elements, {count, window}), 0);  // (N', k, in)
      if (groups > 1) {
        Tensor filtered = conv1d(permute(seen, {0, 2, 1}), weight, {.groups = groups});
        return bias.defined() ? reshape(filtered, {count, out}) + bias : reshape(filtered, {count, out});
      }
      Tensor columns = reshape(permute(weight, {2, 1, 0}), {window * in, out});
      return affine(reshape(seen, {count, window * in}), columns, bias);
    });
    return {y, std::move(windows.lengths)};
  });
}

template <int axes>
TransposedConvolution<axes>::TransposedConvolution(std::int64_t in, std::int64_t out, const AxisNumbers& window,
                                                   TransposedConvolutionLayerOptions options, Location where)
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
