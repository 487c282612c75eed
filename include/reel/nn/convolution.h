#pragma once

#include <reel/nn/module.h>
#include <reel/ops/convolve.h>

namespace reel::nn {

struct ConvolutionOptions {
  /// Elements of x from one window to the next.
  AxisNumbers stride = 1;
  ConvolutionPadding padding = 0;
  /// Elements of x from one of the window's to the next.
  AxisNumbers dilation = 1;
  /// Channels are cut into so many groups that do not mix.
  std::int64_t groups = 1;
  bool bias = true;
  Layout layout = Layout::nchw;
  /// Of the weight and of the bias; null: uniform on ±1/√(in / groups · Πk).
  Initialiser initialiser = {}, bias_initialiser = {};
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// What Conv1d, Conv2d and Conv3d are: `conv1d`, `conv2d` or `conv3d` with a weight and a bias, from `in` to `out`
/// channels: x: (N, in, d…) → (N, out, o…). A window has one size for all axes, or one an axis.
/// Source: PyTorch's Conv1d, Conv2d and Conv3d, with their layout and first values of weights.
template <int axes>
struct Convolution : Module {
  Parameter weight;  ///< (out, in / groups, k…)
  Parameter bias;    ///< (out); undefined without bias

  /// Throws: ShapeError unless all sizes are positive, or unless the groups divide both numbers of channels.
  Convolution(std::int64_t in, std::int64_t out, const AxisNumbers& window, ConvolutionOptions options = {},
              Location where = Location::here());
  Convolution(Module& parent, std::string_view name, std::int64_t in, std::int64_t out, const AxisNumbers& window,
              ConvolutionOptions options = {}, Location where = Location::here())
      : Convolution(in, out, window, options, where) {
    join(parent, name, where);
  }

  /// Throws: as the op.
  Tensor operator()(const Arg& x) const;

 private:
  reel::ConvolutionOptions options_;
};

struct Conv1d : Convolution<1> {
  using Convolution<1>::Convolution;
};
struct Conv2d : Convolution<2> {
  using Convolution<2>::Convolution;
};
struct Conv3d : Convolution<3> {
  using Convolution<3>::Convolution;
};

struct TransposedConvolutionOptions {
  AxisNumbers stride = 1;
  /// Elements that are cut from each end of the result's axes.
  AxisNumbers padding = 0;
  /// Elements more at the end of the result's axes; less than the stride or the dilation.
  AxisNumbers output_padding = 0;
  AxisNumbers dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  Layout layout = Layout::nchw;
  /// Of the weight and of the bias; null: uniform on ±1/√(out / groups · Πk).
  Initialiser initialiser = {}, bias_initialiser = {};
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// What ConvTransposed1d, ConvTransposed2d and ConvTransposed3d are: the same with `conv_transposed1d` and so on:
/// x: (N, in, o…) → (N, out, d…). Source: PyTorch's ConvTranspose1d, ConvTranspose2d and ConvTranspose3d.
template <int axes>
struct TransposedConvolution : Module {
  Parameter weight;  ///< (in, out / groups, k…)
  Parameter bias;    ///< (out); undefined without bias

  /// Throws: as Convolution.
  TransposedConvolution(std::int64_t in, std::int64_t out, const AxisNumbers& window,
                        TransposedConvolutionOptions options = {}, Location where = Location::here());
  TransposedConvolution(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
                        const AxisNumbers& window, TransposedConvolutionOptions options = {},
                        Location where = Location::here())
      : TransposedConvolution(in, out, window, options, where) {
    join(parent, name, where);
  }

  /// Throws: as the op.
  Tensor operator()(const Arg& x) const;

 private:
  reel::TransposedConvolutionOptions options_;
};

struct ConvTransposed1d : TransposedConvolution<1> {
  using TransposedConvolution<1>::TransposedConvolution;
};
struct ConvTransposed2d : TransposedConvolution<2> {
  using TransposedConvolution<2>::TransposedConvolution;
};
struct ConvTransposed3d : TransposedConvolution<3> {
  using TransposedConvolution<3>::TransposedConvolution;
};

}  // namespace reel::nn
