#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>

#include <reel/ops/layout.h>
#include <reel/tensor.h>

/// \file
/// Convolution, as networks call it: correlation with a window. Results are equal to the bit for every number of
/// threads.

namespace reel {

/// A number for each spatial axis: `2` for all of them, or `{2, 1}`.
class AxisNumbers {
 public:
  /// One number for all axes.
  template <std::integral Number>
  AxisNumbers(Number number) : numbers_{static_cast<std::int64_t>(number)} {}
  /// A number for each axis. Throws: Error if there are more than 8.
  AxisNumbers(std::initializer_list<std::int64_t> numbers, Location where = Location::here())
      : numbers_(numbers, where) {}

  /// The numbers as given: one, or one per axis.
  const Shape& given() const { return numbers_; }

 private:
  Shape numbers_;
};

/// How much is put around x, by a rule. Source: TensorFlow.
enum class Padding : std::uint8_t {
  valid,  ///< nothing: ceil((in − filter + 1) / stride) results, for a filter with its gaps
  same,   ///< as many zeros as give ceil(in / stride) results, half of them in front, an odd one at the end
};

/// The padding of a convolution or a pooling: a Padding rule, or how many zeros are put before and behind each spatial
/// axis.
class ConvolutionPadding {
 public:
  /// Padding by a rule.
  ConvolutionPadding(Padding rule) : rule_(rule) {}
  /// A number of zeros at both ends of each axis.
  template <std::integral Number>
  ConvolutionPadding(Number number) : numbers_(number), by_number_(true) {}
  /// Numbers of zeros at both ends of the axes.
  ConvolutionPadding(const AxisNumbers& numbers) : numbers_(numbers), by_number_(true) {}
  /// A number of zeros for each axis, at both of its ends. Throws: Error if there are more than 8.
  ConvolutionPadding(std::initializer_list<std::int64_t> numbers, Location where = Location::here())
      : numbers_(numbers, where), by_number_(true) {}

  /// True if numbers are given, false for a rule.
  bool by_number() const { return by_number_; }
  /// The rule; Padding::valid if numbers are given.
  Padding rule() const { return rule_; }
  /// The numbers of zeros; 0 for a rule.
  const AxisNumbers& numbers() const { return numbers_; }

 private:
  AxisNumbers numbers_ = 0;
  Padding rule_ = Padding::valid;
  bool by_number_ = false;
};

/// Options of `conv1d`, `conv2d` and `conv3d`.
struct ConvolutionOptions {
  /// Elements of x from one window to the next; at least 1. Default 1.
  AxisNumbers stride = 1;
  /// Zeros around x: numbers of at least 0, or a Padding rule. Default 0.
  ConvolutionPadding padding = 0;
  /// Elements of x from one element of the window to the next; at least 1. Default 1.
  AxisNumbers dilation = 1;
  /// Into how many groups the channels are divided, which do not mix; divides both numbers of channels. Default 1.
  std::int64_t groups = 1;
  /// The layout of x and the result; weights have one layout in either case. Default Layout::nchw.
  Layout layout = Layout::nchw;
};

/// Convolution over one spatial axis: x: (N, C_in, L), w: (C_out, C_in / groups, K), without bias. The result is (N,
/// C_out, o…) with o = floor((d + 2 padding − (k − 1) dilation − 1) / stride) + 1 for each spatial axis of size d; with
/// Layout::nhwc, x and the result are (N, L, C):
///
///     y_n,f,o = Σ_c,k w_f,c,k x_n,c,(o · stride + k · dilation − padding)          zeros around x
///
/// An x without the axis N is a single example and gives a result without it. bf16 and f16 are accumulated in f32 and
/// rounded once.
/// Throws: ShapeError unless all shapes fit, and for options out of range; DTypeError unless all operands have one
/// floating dtype; DeviceError for operands on different devices.
/// Source: PyTorch's conv1d; TensorFlow for Padding::same and Padding::valid.
Tensor conv1d(const Arg& x, const Arg& w, const ConvolutionOptions& options = {});
/// Convolution over one spatial axis: x: (N, C_in, L), w: (C_out, C_in / groups, K), bias: (C_out). The result is (N,
/// C_out, o…) with o = floor((d + 2 padding − (k − 1) dilation − 1) / stride) + 1 for each spatial axis of size d; with
/// Layout::nhwc, x and the result are (N, L, C):
///
///     y_n,f,o = b_f + Σ_c,k w_f,c,k x_n,c,(o · stride + k · dilation − padding)          zeros around x
///
/// An x without the axis N is a single example and gives a result without it. bf16 and f16 are accumulated in f32 and
/// rounded once.
/// Throws: ShapeError unless all shapes fit, and for options out of range; DTypeError unless all operands have one
/// floating dtype; DeviceError for operands on different devices.
/// Source: PyTorch's conv1d; TensorFlow for Padding::same and Padding::valid.
Tensor conv1d(const Arg& x, const Arg& w, const Arg& bias, const ConvolutionOptions& options = {});
/// Convolution over two spatial axes: x: (N, C_in, H, W), w: (C_out, C_in / groups, K_h, K_w), without bias. The result
/// is (N, C_out, o…) with o = floor((d + 2 padding − (k − 1) dilation − 1) / stride) + 1 for each spatial axis of size
/// d; with Layout::nhwc, x and the result are (N, H, W, C):
///
///     y_n,f,o = Σ_c,k w_f,c,k x_n,c,(o · stride + k · dilation − padding)          zeros around x
///
/// An x without the axis N is a single example and gives a result without it. bf16 and f16 are accumulated in f32 and
/// rounded once.
/// Throws: ShapeError unless all shapes fit, and for options out of range; DTypeError unless all operands have one
/// floating dtype; DeviceError for operands on different devices.
/// Source: PyTorch's conv2d; TensorFlow for Padding::same and Padding::valid.
Tensor conv2d(const Arg& x, const Arg& w, const ConvolutionOptions& options = {});
/// Convolution over two spatial axes: x: (N, C_in, H, W), w: (C_out, C_in / groups, K_h, K_w), bias: (C_out). The
/// result is (N, C_out, o…) with o = floor((d + 2 padding − (k − 1) dilation − 1) / stride) + 1 for each spatial axis
/// of size d; with Layout::nhwc, x and the result are (N, H, W, C):
///
///     y_n,f,o = b_f + Σ_c,k w_f,c,k x_n,c,(o · stride + k · dilation − padding)          zeros around x
///
/// An x without the axis N is a single example and gives a result without it. bf16 and f16 are accumulated in f32 and
/// rounded once.
/// Throws: ShapeError unless all shapes fit, and for options out of range; DTypeError unless all operands have one
/// floating dtype; DeviceError for operands on different devices.
/// Source: PyTorch's conv2d; TensorFlow for Padding::same and Padding::valid.
Tensor conv2d(const Arg& x, const Arg& w, const Arg& bias, const ConvolutionOptions& options = {});
/// Convolution over three spatial axes: x: (N, C_in, D, H, W), w: (C_out, C_in / groups, K_d, K_h, K_w), without bias.
/// The result is (N, C_out, o…) with o = floor((d + 2 padding − (k − 1) dilation − 1) / stride) + 1 for each spatial
/// axis of size d; with Layout::nhwc, x and the result are (N, D, H, W, C):
///
///     y_n,f,o = Σ_c,k w_f,c,k x_n,c,(o · stride + k · dilation − padding)          zeros around x
///
/// An x without the axis N is a single example and gives a result without it. bf16 and f16 are accumulated in f32 and
/// rounded once.
/// Throws: ShapeError unless all shapes fit, and for options out of range; DTypeError unless all operands have one
/// floating dtype; DeviceError for operands on different devices.
/// Source: PyTorch's conv3d; TensorFlow for Padding::same and Padding::valid.
Tensor conv3d(const Arg& x, const Arg& w, const ConvolutionOptions& options = {});
/// Convolution over three spatial axes: x: (N, C_in, D, H, W), w: (C_out, C_in / groups, K_d, K_h, K_w), bias: (C_out).
/// The result is (N, C_out, o…) with o = floor((d + 2 padding − (k − 1) dilation − 1) / stride) + 1 for each spatial
/// axis of size d; with Layout::nhwc, x and the result are (N, D, H, W, C):
///
///     y_n,f,o = b_f + Σ_c,k w_f,c,k x_n,c,(o · stride + k · dilation − padding)          zeros around x
///
/// An x without the axis N is a single example and gives a result without it. bf16 and f16 are accumulated in f32 and
/// rounded once.
/// Throws: ShapeError unless all shapes fit, and for options out of range; DTypeError unless all operands have one
/// floating dtype; DeviceError for operands on different devices.
/// Source: PyTorch's conv3d; TensorFlow for Padding::same and Padding::valid.
Tensor conv3d(const Arg& x, const Arg& w, const Arg& bias, const ConvolutionOptions& options = {});

/// Options of `conv_transposed1d`, `conv_transposed2d` and `conv_transposed3d`.
struct TransposedConvolutionOptions {
  /// Elements of the result from one window to the next; at least 1. Default 1.
  AxisNumbers stride = 1;
  /// Elements that are cut from each end of the result's axes: numbers of at least 0, or a Padding rule, by which a
  /// convolution of the result would give the size of x. Default 0.
  ConvolutionPadding padding = 0;
  /// Further elements at the end of the result's axes; less than the stride or the dilation. Default 0.
  AxisNumbers output_padding = 0;
  /// The sizes of the result's spatial axes, each less than `stride` above that without output padding; in place of
  /// output_padding. Empty (default): computed.
  Shape output_size = {};
  /// Elements of the result from one element of the window to the next; at least 1. Default 1.
  AxisNumbers dilation = 1;
  /// Into how many groups the channels are divided, which do not mix; divides both numbers of channels. Default 1.
  std::int64_t groups = 1;
  /// The layout of x and the result; weights have one layout in either case. Default Layout::nchw.
  Layout layout = Layout::nchw;
};

/// Transposed convolution, the gradient of a convolution with respect to its input, over one spatial axis: x: (N, C_in,
/// L), w: (C_in, C_out / groups, K), without bias. The result is (N, C_out, d…) with d = (o − 1) stride − 2 padding +
/// (k − 1) dilation + 1 + output_padding for each spatial axis of x of size o; with Layout::nhwc, x and the result are
/// (N, L, C):
///
///     y_n,f,(o · stride + k · dilation − padding) += w_c,f,k x_n,c,o
///
/// An x without the axis N is a single example and gives a result without it. With Padding::same, d = o · stride; an
/// output_size sets d. bf16 and f16 are accumulated in f32 and rounded once.
/// Throws: ShapeError unless all shapes fit, and for options out of range; DTypeError unless all operands have one
/// floating dtype; DeviceError for operands on different devices.
/// Source: PyTorch's conv_transpose1d; TensorFlow for Padding::same.
Tensor conv_transposed1d(const Arg& x, const Arg& w, const TransposedConvolutionOptions& options = {});
/// Transposed convolution, the gradient of a convolution with respect to its input, over one spatial axis: x: (N, C_in,
/// L), w: (C_in, C_out / groups, K), bias: (C_out). The result is (N, C_out, d…) with d = (o − 1) stride − 2 padding +
/// (k − 1) dilation + 1 + output_padding for each spatial axis of x of size o; with Layout::nhwc, x and the result are
/// (N, L, C):
///
///     y_n,f,(o · stride + k · dilation − padding) += w_c,f,k x_n,c,o          then + b_f
///
/// An x without the axis N is a single example and gives a result without it. With Padding::same, d = o · stride; an
/// output_size sets d. bf16 and f16 are accumulated in f32 and rounded once.
/// Throws: ShapeError unless all shapes fit, and for options out of range; DTypeError unless all operands have one
/// floating dtype; DeviceError for operands on different devices.
/// Source: PyTorch's conv_transpose1d; TensorFlow for Padding::same.
Tensor conv_transposed1d(const Arg& x, const Arg& w, const Arg& bias, const TransposedConvolutionOptions& options = {});
/// Transposed convolution, the gradient of a convolution with respect to its input, over two spatial axes: x: (N, C_in,
/// H, W), w: (C_in, C_out / groups, K_h, K_w), without bias. The result is (N, C_out, d…) with d = (o − 1) stride − 2
/// padding + (k − 1) dilation + 1 + output_padding for each spatial axis of x of size o; with Layout::nhwc, x and the
/// result are (N, H, W, C):
///
///     y_n,f,(o · stride + k · dilation − padding) += w_c,f,k x_n,c,o
///
/// An x without the axis N is a single example and gives a result without it. With Padding::same, d = o · stride; an
/// output_size sets d. bf16 and f16 are accumulated in f32 and rounded once.
/// Throws: ShapeError unless all shapes fit, and for options out of range; DTypeError unless all operands have one
/// floating dtype; DeviceError for operands on different devices.
/// Source: PyTorch's conv_transpose2d; TensorFlow for Padding::same.
Tensor conv_transposed2d(const Arg& x, const Arg& w, const TransposedConvolutionOptions& options = {});
/// Transposed convolution, the gradient of a convolution with respect to its input, over two spatial axes: x: (N, C_in,
/// H, W), w: (C_in, C_out / groups, K_h, K_w), bias: (C_out). The result is (N, C_out, d…) with d = (o − 1) stride − 2
/// padding + (k − 1) dilation + 1 + output_padding for each spatial axis of x of size o; with Layout::nhwc, x and the
/// result are (N, H, W, C):
///
///     y_n,f,(o · stride + k · dilation − padding) += w_c,f,k x_n,c,o          then + b_f
///
/// An x without the axis N is a single example and gives a result without it. With Padding::same, d = o · stride; an
/// output_size sets d. bf16 and f16 are accumulated in f32 and rounded once.
/// Throws: ShapeError unless all shapes fit, and for options out of range; DTypeError unless all operands have one
/// floating dtype; DeviceError for operands on different devices.
/// Source: PyTorch's conv_transpose2d; TensorFlow for Padding::same.
Tensor conv_transposed2d(const Arg& x, const Arg& w, const Arg& bias, const TransposedConvolutionOptions& options = {});
/// Transposed convolution, the gradient of a convolution with respect to its input, over three spatial axes: x: (N,
/// C_in, D, H, W), w: (C_in, C_out / groups, K_d, K_h, K_w), without bias. The result is (N, C_out, d…) with d = (o −
/// 1) stride − 2 padding + (k − 1) dilation + 1 + output_padding for each spatial axis of x of size o; with
/// Layout::nhwc, x and the result are (N, D, H, W, C):
///
///     y_n,f,(o · stride + k · dilation − padding) += w_c,f,k x_n,c,o
///
/// An x without the axis N is a single example and gives a result without it. With Padding::same, d = o · stride; an
/// output_size sets d. bf16 and f16 are accumulated in f32 and rounded once.
/// Throws: ShapeError unless all shapes fit, and for options out of range; DTypeError unless all operands have one
/// floating dtype; DeviceError for operands on different devices.
/// Source: PyTorch's conv_transpose3d; TensorFlow for Padding::same.
Tensor conv_transposed3d(const Arg& x, const Arg& w, const TransposedConvolutionOptions& options = {});
/// Transposed convolution, the gradient of a convolution with respect to its input, over three spatial axes: x: (N,
/// C_in, D, H, W), w: (C_in, C_out / groups, K_d, K_h, K_w), bias: (C_out). The result is (N, C_out, d…) with d = (o −
/// 1) stride − 2 padding + (k − 1) dilation + 1 + output_padding for each spatial axis of x of size o; with
/// Layout::nhwc, x and the result are (N, D, H, W, C):
///
///     y_n,f,(o · stride + k · dilation − padding) += w_c,f,k x_n,c,o          then + b_f
///
/// An x without the axis N is a single example and gives a result without it. With Padding::same, d = o · stride; an
/// output_size sets d. bf16 and f16 are accumulated in f32 and rounded once.
/// Throws: ShapeError unless all shapes fit, and for options out of range; DTypeError unless all operands have one
/// floating dtype; DeviceError for operands on different devices.
/// Source: PyTorch's conv_transpose3d; TensorFlow for Padding::same.
Tensor conv_transposed3d(const Arg& x, const Arg& w, const Arg& bias, const TransposedConvolutionOptions& options = {});

}  // namespace reel
