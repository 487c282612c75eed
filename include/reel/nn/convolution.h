#pragma once

#include <reel/nn/module.h>
#include <reel/nn/packed.h>
#include <reel/ops/convolution.h>

namespace reel::nn {

/// Options of Conv1d, Conv2d and Conv3d.
struct ConvolutionLayerOptions {
  /// Elements of x from one window to the next; at least 1. Default 1.
  AxisNumbers stride = 1;
  /// Zeros around x: numbers of at least 0, or a Padding rule. Default 0.
  ConvolutionPadding padding = 0;
  /// Elements of x from one element of the window to the next; at least 1. Default 1.
  AxisNumbers dilation = 1;
  /// Into how many groups the channels are divided, which do not mix; divides both numbers of channels. Default 1.
  std::int64_t groups = 1;
  bool bias = true;              ///< whether there is a bias; default true
  Layout layout = Layout::nchw;  ///< where the channels of x are; default (N, C, d…)
  Initialiser initialiser = {},  ///< of the weight; null (default): uniform on ±1/√(in / groups · Πk)
      bias_initialiser = {};     ///< of the bias; null (default): uniform on ±1/√(in / groups · Πk)
  DType dtype = DType::f32;      ///< the parameters' dtype, floating; default f32
  /// The generator of the initial values; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// The base class of Conv1d, Conv2d and Conv3d: a convolution with a weight and a bias, from `in` to `out` channels: x:
/// (N, in, d…) → (N, out, o…). A window has one size for all axes, or one an axis.
/// Source: PyTorch's Conv1d, Conv2d and Conv3d, with their layout and initial values of weights.
template <int axes>
struct Convolution : Module {
  Parameter weight;  ///< (out, in / groups, k…)
  Parameter bias;    ///< (out); undefined without bias

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless all sizes are positive and the groups divide both numbers of channels.
  Convolution(std::int64_t in, std::int64_t out, const AxisNumbers& window, ConvolutionLayerOptions options = {},
              Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless all sizes are
  /// positive and the groups divide both numbers of channels.
  Convolution(Module& parent, std::string_view name, std::int64_t in, std::int64_t out, const AxisNumbers& window,
              ConvolutionLayerOptions options = {}, Location where = Location::here())
      : Convolution(in, out, window, options, where) {
    join(parent, name, where);
  }

  /// The convolution of x with the weight, plus the bias.
  /// Throws: ShapeError unless x fits the weight, and for options out of range; DTypeError unless x has the dtype of
  /// the weight.
  Tensor operator()(const Arg& x) const;

 protected:
  /// The options of a call.
  const reel::ConvolutionOptions& options() const { return options_; }

 private:
  reel::ConvolutionOptions options_;
};

/// Convolution over one spatial axis with a weight and a bias: (N, in, L) → (N, out, L'), or with Layout::nhwc the
/// channels last; see `conv1d`.
/// Source: PyTorch's Conv1d.
struct Conv1d : Convolution<1> {
  /// The constructors of the base class.
  using Convolution<1>::Convolution;
  /// The convolution of x (N, in, L) with the weight, plus the bias.
  using Convolution<1>::operator();
  /// The convolution of each sequence by itself with the weight, plus the bias: elements (N, in) → (N', out), whose
  /// lengths are L' = floor((L + 2 padding − (k − 1) dilation − 1) / stride) + 1, or 0 where a sequence of length L is
  /// shorter than a window. Zeros are put around each sequence, so that none sees its neighbours; `layout` is not used.
  /// `masked_max` of the result is the maximum over time of Kim, Convolutional neural networks for sentence
  /// classification (EMNLP 2014).
  /// Throws: ShapeError unless the elements are (N, in) and the lengths fit them, and for options out of range; DTypeError
  /// unless the elements have the dtype of the weight; Error if the elements are undefined.
  Packed operator()(const Packed& x, Location where = Location::here()) const;
};
/// Convolution over two spatial axes with a weight and a bias: (N, in, H, W) → (N, out, H', W'), or with Layout::nhwc
/// the channels last; see `conv2d`.
/// Source: PyTorch's Conv2d.
struct Conv2d : Convolution<2> {
  /// The constructors of the base class.
  using Convolution<2>::Convolution;
};
/// Convolution over three spatial axes with a weight and a bias: (N, in, D, H, W) → (N, out, D', H', W'), or with
/// Layout::nhwc the channels last; see `conv3d`.
/// Source: PyTorch's Conv3d.
struct Conv3d : Convolution<3> {
  /// The constructors of the base class.
  using Convolution<3>::Convolution;
};

/// Options of ConvTransposed1d, ConvTransposed2d and ConvTransposed3d.
struct TransposedConvolutionLayerOptions {
  /// Elements of the result from one window to the next; at least 1. Default 1.
  AxisNumbers stride = 1;
  /// Elements that are cut from each end of the result's axes: numbers of at least 0, or a Padding rule, by which a
  /// convolution of the result would give the size of x. Default 0.
  ConvolutionPadding padding = 0;
  /// Further elements at the end of the result's axes; less than the stride or the dilation. Default 0.
  AxisNumbers output_padding = 0;
  /// Elements of the result from one element of the window to the next; at least 1. Default 1.
  AxisNumbers dilation = 1;
  /// Into how many groups the channels are divided, which do not mix; divides both numbers of channels. Default 1.
  std::int64_t groups = 1;
  bool bias = true;              ///< whether there is a bias; default true
  Layout layout = Layout::nchw;  ///< where the channels of x are; default (N, C, d…)
  Initialiser initialiser = {},  ///< of the weight; null (default): uniform on ±1/√(out / groups · Πk)
      bias_initialiser = {};     ///< of the bias; null (default): uniform on ±1/√(out / groups · Πk)
  DType dtype = DType::f32;      ///< the parameters' dtype, floating; default f32
  /// The generator of the initial values; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// The base class of ConvTransposed1d, ConvTransposed2d and ConvTransposed3d: a transposed convolution with a weight
/// and a bias, from `in` to `out` channels: x: (N, in, o…) → (N, out, d…). A window has one size for all axes, or one
/// an axis.
/// Source: PyTorch's ConvTranspose1d, ConvTranspose2d and ConvTranspose3d, with their layout and initial values of
/// weights.
template <int axes>
struct TransposedConvolution : Module {
  Parameter weight;  ///< (in, out / groups, k…)
  Parameter bias;    ///< (out); undefined without bias

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless all sizes are positive and the groups divide both numbers of channels.
  TransposedConvolution(std::int64_t in, std::int64_t out, const AxisNumbers& window,
                        TransposedConvolutionLayerOptions options = {}, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless all sizes are
  /// positive and the groups divide both numbers of channels.
  TransposedConvolution(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
                        const AxisNumbers& window, TransposedConvolutionLayerOptions options = {},
                        Location where = Location::here())
      : TransposedConvolution(in, out, window, options, where) {
    join(parent, name, where);
  }

  /// The transposed convolution of x with the weight, plus the bias.
  /// Throws: ShapeError unless x fits the weight, and for options out of range; DTypeError unless x has the dtype of
  /// the weight.
  Tensor operator()(const Arg& x) const;

 private:
  reel::TransposedConvolutionOptions options_;
};

/// Transposed convolution over one spatial axis with a weight and a bias: (N, in, L) → (N, out, L'), or with
/// Layout::nhwc the channels last; see `conv_transposed1d`.
/// Source: PyTorch's ConvTranspose1d.
struct ConvTransposed1d : TransposedConvolution<1> {
  /// The constructors of the base class.
  using TransposedConvolution<1>::TransposedConvolution;
};
/// Transposed convolution over two spatial axes with a weight and a bias: (N, in, H, W) → (N, out, H', W'), or with
/// Layout::nhwc the channels last; see `conv_transposed2d`.
/// Source: PyTorch's ConvTranspose2d.
struct ConvTransposed2d : TransposedConvolution<2> {
  /// The constructors of the base class.
  using TransposedConvolution<2>::TransposedConvolution;
};
/// Transposed convolution over three spatial axes with a weight and a bias: (N, in, D, H, W) → (N, out, D', H', W'), or
/// with Layout::nhwc the channels last; see `conv_transposed3d`.
/// Source: PyTorch's ConvTranspose3d.
struct ConvTransposed3d : TransposedConvolution<3> {
  /// The constructors of the base class.
  using TransposedConvolution<3>::TransposedConvolution;
};

}  // namespace reel::nn
