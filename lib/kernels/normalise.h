#pragma once

#include "../core/op.h"
#include "kernel_table.h"

namespace reel::detail {

/// How the rows of a tensor are normalised.
struct RowForm {
  FloatBits epsilon;
  /// The number of elements of a row.
  std::int64_t length;
  /// 1: centred, divided by the standard deviation; 0: not centred, divided by the root mean square.
  std::int64_t centred;
};

/// How the channels of a batch are normalised.
struct ChannelForm {
  FloatBits epsilon;
  /// 1: by the batch's own mean and variance; 0: by given ones.
  std::int64_t training;
};

/// All operands are contiguous. Weights, biases and their gradients are f64 if x is f64 and else f32; mean and variance
/// are f64, one for each row or channel.
struct NormaliseKernels {
  /// y = (x − mean) / √(variance + ε) · weight + bias, for contiguous rows of x. The weights cover one or more rows and
  /// are repeated over the others; on the CPU, (C, size) with stride 0 along axis 1, for more than 64 elements,
  /// are one number for each channel, as those of `bias` are then. It may be null.
  void (*rows)(const View& y, const View& mean, const View& variance, const View& x, const View& weight,
               const View* bias, const RowForm& form);
  /// Gradients of x, weight and bias; those whose views are empty are not computed.
  void (*rows_gradient)(const View& dx, const View& dweight, const View& dbias, const View& d, const View& x,
                        const View& weight, const View& mean, const View& variance, const RowForm& form);
  /// y = (x − mean) / √(variance + ε) · weight + bias for the channels of x: (N, C, …). In training, mean and variance
  /// are outputs.
  void (*channels)(const View& y, const View& mean, const View& variance, const View& x, const View& weight,
                   const View& bias, const ChannelForm& form);
  void (*channels_gradient)(const View& dx, const View& dweight, const View& dbias, const View& d, const View& x,
                            const View& weight, const View& mean, const View& variance, const ChannelForm& form);
};

}  // namespace reel::detail
