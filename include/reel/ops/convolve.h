#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>

#include <reel/ops/layout.h>
#include <reel/tensor.h>

// Convolution, as networks call it: correlation with a window. All take f32, f64, bf16 or f16, one dtype for all operands;
// the halves are added up in f32 and rounded once. Weights have PyTorch's layout whatever that of x. The results have the
// same bits for every number of threads.

namespace reel {

/// A number for each spatial axis: `2` for all of them, or `{2, 1}`.
class AxisNumbers {
 public:
  template <std::integral Number>
  AxisNumbers(Number number) : numbers_{static_cast<std::int64_t>(number)} {}
  AxisNumbers(std::initializer_list<std::int64_t> numbers, Location where = Location::here())
      : numbers_(numbers, where) {}

  /// As given: one, or one per axis.
  const Shape& given() const { return numbers_; }

 private:
  Shape numbers_;
};

/// How much is put around x. TensorFlow's formulas.
enum class Padding : std::uint8_t {
  valid,  ///< nothing: ceil((in − filter + 1) / stride) results, of a filter with its gaps
  same,   ///< as many zeros as give ceil(in / stride) results, half of them in front, an odd one at the end
};

/// A Padding, or how many zeros stand before and behind each spatial axis.
class ConvolutionPadding {
 public:
  ConvolutionPadding(Padding rule) : rule_(rule) {}
  template <std::integral Number>
  ConvolutionPadding(Number number) : numbers_(number), by_number_(true) {}
  ConvolutionPadding(std::initializer_list<std::int64_t> numbers, Location where = Location::here())
      : numbers_(numbers, where), by_number_(true) {}

  bool by_number() const { return by_number_; }
  Padding rule() const { return rule_; }
  const AxisNumbers& numbers() const { return numbers_; }

 private:
  AxisNumbers numbers_ = 0;
  Padding rule_ = Padding::valid;
  bool by_number_ = false;
};

struct ConvolutionOptions {
  /// Elements of x from one window to the next.
  AxisNumbers stride = 1;
  ConvolutionPadding padding = 0;
  /// Elements of x from one of the window's to the next.
  AxisNumbers dilation = 1;
  /// Channels are cut into so many groups that do not mix.
  std::int64_t groups = 1;
  Layout layout = Layout::nchw;
};

/// y_n,f,o = b_f + Σ_c,k w_f,c,k x_n,c,(o · stride + k · dilation − padding), zeros around x, for
/// x: (N, C_in, d…) with 1, 2 or 3 spatial axes, w: (C_out, C_in / groups, k…), b: (C_out) → (N, C_out, o…) with
/// o = floor((d + 2 padding − (k − 1) dilation − 1) / stride) + 1; with Layout::nhwc, x and y are (N, d…, C).
/// Throws: ShapeError unless all fit; Error for options out of range; DTypeError; DeviceError.
/// Source: PyTorch's conv1d, conv2d, conv3d; TensorFlow for Padding::same and Padding::valid.
Tensor conv1d(const Arg& x, const Arg& w, const ConvolutionOptions& options = {});
Tensor conv1d(const Arg& x, const Arg& w, const Arg& bias, const ConvolutionOptions& options = {});
Tensor conv2d(const Arg& x, const Arg& w, const ConvolutionOptions& options = {});
Tensor conv2d(const Arg& x, const Arg& w, const Arg& bias, const ConvolutionOptions& options = {});
Tensor conv3d(const Arg& x, const Arg& w, const ConvolutionOptions& options = {});
Tensor conv3d(const Arg& x, const Arg& w, const Arg& bias, const ConvolutionOptions& options = {});

struct TransposedConvolutionOptions {
  AxisNumbers stride = 1;
  /// Elements that are cut from each end of the result's axes.
  AxisNumbers padding = 0;
  /// Elements more at the end of the result's axes; less than the stride or the dilation.
  AxisNumbers output_padding = 0;
  AxisNumbers dilation = 1;
  std::int64_t groups = 1;
  Layout layout = Layout::nchw;
};

/// The transposed map of a convolution, which is its gradient by x:
/// y_n,f,(o · stride + k · dilation − padding) += w_c,f,k x_n,c,o, then + b_f, for
/// x: (N, C_in, o…), w: (C_in, C_out / groups, k…), b: (C_out) → (N, C_out, d…) with
/// d = (o − 1) stride − 2 padding + (k − 1) dilation + 1 + output_padding.
/// Throws: ShapeError unless all fit; Error for options out of range; DTypeError; DeviceError.
/// Source: PyTorch's conv_transpose1d, conv_transpose2d, conv_transpose3d.
Tensor conv_transposed1d(const Arg& x, const Arg& w, const TransposedConvolutionOptions& options = {});
Tensor conv_transposed1d(const Arg& x, const Arg& w, const Arg& bias, const TransposedConvolutionOptions& options = {});
Tensor conv_transposed2d(const Arg& x, const Arg& w, const TransposedConvolutionOptions& options = {});
Tensor conv_transposed2d(const Arg& x, const Arg& w, const Arg& bias, const TransposedConvolutionOptions& options = {});
Tensor conv_transposed3d(const Arg& x, const Arg& w, const TransposedConvolutionOptions& options = {});
Tensor conv_transposed3d(const Arg& x, const Arg& w, const Arg& bias, const TransposedConvolutionOptions& options = {});

}  // namespace reel
