#pragma once

#include "kernel_table.h"

namespace reel::detail {

/// The targets for log-probabilities (T, N, C): targets (N, S), and the valid lengths (N), all contiguous i64.
struct CtcTargets {
  const View& targets;
  const View& input_lengths;
  const View& target_lengths;
  std::int64_t blank;
};

/// The invalid input of a CTC loss.
struct CtcFault {
  enum class What : std::uint8_t { input_length, target_length, label } what;
  std::int64_t value, example;
};

/// The losses of an input x and a target t, elementwise.
enum class ElementLoss : std::uint8_t {
  squared,
  absolute,
  huber,
  smooth_l1,
  binary_cross_entropy,
  logits_cross_entropy,
  divergence,
  count
};

/// Takes x and t of one floating dtype and, in `out` of the losses and in their gradient d, f32 for halves.
struct ElementLossKernels {
  void (*losses)(const View& out, const View& x, const View& t, double parameter);
  /// d times the derivative of the loss by x, in the dtype of x; d is broadcast.
  void (*gradient)(const View& out, const View& d, const View& x, const View& t, double parameter);
};

struct LossKernels {
  /// By ElementLoss. Null on a GPU, for which the ops are composed.
  ElementLossKernels elements[static_cast<int>(ElementLoss::count)];
  /// One loss per row, in f32 or f64, of contiguous logits (N, C), on the CPU also (N, C, …) with its rows along axis 1, 0
  /// where the target is `ignored`; targets (N, …) of i32 or i64, contiguous. `exponents` (N, …, 2) gets each row's
  /// largest logit and Σ e^(x − largest), in the dtype of the logits. Returns false without writing anything, and sets
  /// `bad`, if a target is out of range.
  bool (*cross_entropy)(const View& losses, const View& exponents, const View& logits, const View& targets,
                        std::int64_t ignored, std::int64_t& bad);
  /// row gradient · (softmax − one-hot), 0 where ignored; `gradient` (N) may be broadcast.
  void (*cross_entropy_gradient)(const View& out, const View& gradient, const View& logits, const View& targets,
                                 const View& exponents, std::int64_t ignored);
  /// −x[n, target, …], 0 where the target is `ignored`. Returns false and sets `bad`, as cross_entropy.
  bool (*nll_loss)(const View& losses, const View& x, const View& targets, std::int64_t ignored, std::int64_t& bad);
  /// mean[0] = Σ losses / count and count[0] = the number of targets that are not `ignored`; losses (N) and targets (N)
  /// of i32 or i64, contiguous. Null on the CPU.
  void (*mean_of_targets)(const View& mean, const View& count, const View& losses, const View& targets,
                          std::int64_t ignored);
  /// Losses (N) of contiguous `logs` in f32 or f64, ∞ if no alignment is possible, and the logarithms of the forward
  /// variables (N, T, 2 S + 1) in f64. Returns false without writing anything, and sets `fault`, if an input is
  /// invalid.
  bool (*ctc_loss)(const View& losses, const View& alphas, const View& logs, const CtcTargets& given, CtcFault& fault);
  /// The gradient of `logs` from the contiguous gradient of the losses; 0 where no alignment is possible.
  void (*ctc_loss_gradient)(const View& out, const View& gradient, const View& logs, const View& alphas,
                            const CtcTargets& given);
};

}  // namespace reel::detail
