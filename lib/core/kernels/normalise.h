#pragma once

#include "../invoke.h"
#include "../kernel_table.h"

namespace reel::detail {

/// How the rows of a tensor are normalised.
struct RowForm {
  FloatBits epsilon;
  /// Elements of a row.
  std::int64_t length;
  /// 1: by the deviation from the row's mean; 0: by the root of the mean square.
  std::int64_t centred;
};

/// How the channels of a batch are.
struct ChannelForm {
  FloatBits epsilon;
  /// 1: by the batch's own mean and variance, 0: by given ones.
  std::int64_t training;
};

/// All operands are contiguous. Weights, biases and their gradients are of f64 beside an f64 x and else of f32; mean and
/// variance are of f64, one for each row or channel.
struct NormaliseKernels {
  /// y = (x − mean) / √(variance + ε) · weight + bias, for rows that follow each other in x. The weights of as many rows as
  /// they have elements for are repeated over the others. There may be no bias.
  void (*rows)(const View& y, const View& mean, const View& variance, const View& x, const View& weight,
               const View* bias, const RowForm& form);
  /// Gradients of x, weight and bias; those that are empty are left out.
  void (*rows_gradient)(const View& dx, const View& dweight, const View& dbias, const View& d, const View& x,
                        const View& weight, const View& mean, const View& variance, const RowForm& form);
  /// The same for the channels of x: (N, C, …). In training, mean and variance are outputs.
  void (*channels)(const View& y, const View& mean, const View& variance, const View& x, const View& weight,
                   const View& bias, const ChannelForm& form);
  void (*channels_gradient)(const View& dx, const View& dweight, const View& dbias, const View& d, const View& x,
                            const View& weight, const View& mean, const View& variance, const ChannelForm& form);
};

}  // namespace reel::detail
