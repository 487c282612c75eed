#pragma once

#include <cstdint>

#include <reel/tensor.h>

// What a prediction is worth beside a target. Operands have one shape, since a broadcast is nearly always a mistake here,
// and one floating dtype; bf16 and f16 are rounded once, at the end. Gradients flow to targets and weights, too.
// All throw ShapeError, DTypeError and DeviceError where operands do not fit.
// Source: PyTorch's functions of these names, unless another one is named.

namespace reel {

/// How losses of single examples or elements are brought together.
enum class LossReduction : std::uint8_t { none, sum, mean };

struct LossOptions {
  LossReduction reduction = LossReduction::mean;
};

// Of numbers.

/// (x − t)².
Tensor mse_loss(const Arg& input, const Arg& target, LossOptions options = {});
/// |x − t|; the derivative at 0 is 0.
Tensor l1_loss(const Arg& input, const Arg& target, LossOptions options = {});

struct HuberOptions {
  LossReduction reduction = LossReduction::mean;
  /// Where the square ends; positive.
  double delta = 1;
};

/// (x − t)² / 2 where |x − t| ≤ δ, else δ (|x − t| − δ / 2). Throws: Error unless δ is positive.
/// Source: Huber, Robust estimation of a location parameter (1964).
Tensor huber_loss(const Arg& input, const Arg& target, HuberOptions options = {});

struct SmoothL1Options {
  LossReduction reduction = LossReduction::mean;
  /// Where the square ends; 0 gives l1_loss.
  double beta = 1;
};

/// (x − t)² / 2β where |x − t| ≤ β, else |x − t| − β / 2. Throws: Error for a negative β.
Tensor smooth_l1_loss(const Arg& input, const Arg& target, SmoothL1Options options = {});

struct PoissonOptions {
  LossReduction reduction = LossReduction::mean;
  /// The input is the logarithm of the rate.
  bool log_input = true;
  /// Adds Stirling's approximation of log t! where t > 1.
  bool full = false;
  /// Added to a rate before its logarithm is taken.
  double epsilon = 1e-8;
};

/// −log of the probability of t under the Poisson distribution of a rate, but for log t!: e^x − t x, or x − t log(x + ε).
Tensor poisson_nll_loss(const Arg& input, const Arg& target, PoissonOptions options = {});

// Of probabilities.

struct BinaryOptions {
  LossReduction reduction = LossReduction::mean;
  /// A factor for each element; broadcasts to the input.
  Tensor weight = {};
};

/// −(t log p + (1 − t) log(1 − p)), p in [0, 1], NaN beyond. Logarithms are at least −100, and where they would be less
/// the derivative is 0.
Tensor binary_cross_entropy(const Arg& input, const Arg& target, const BinaryOptions& options = {});

struct BinaryLogitsOptions {
  LossReduction reduction = LossReduction::mean;
  /// A factor for each element; broadcasts to the input.
  Tensor weight = {};
  /// A factor for the term of t; broadcasts to the input.
  Tensor pos_weight = {};
};

/// The same with p = sigmoid(x), without overflow: (1 − t) x + (1 + (pos_weight − 1) t) log(1 + e^−x).
Tensor binary_cross_entropy_with_logits(const Arg& input, const Arg& target, const BinaryLogitsOptions& options = {});

enum class DivergenceReduction : std::uint8_t {
  none,
  sum,
  mean,        ///< over all elements
  batch_mean,  ///< the sum over the size of axis 0: the divergence itself
};

struct DivergenceOptions {
  DivergenceReduction reduction = DivergenceReduction::mean;
  /// The target is given as logarithms, too.
  bool log_target = false;
};

/// t (log t − x), x the logarithm of a probability; t log t is 0 at 0, and so is its derivative there.
/// Source: Kullback and Leibler, On information and sufficiency (1951).
Tensor kl_div(const Arg& input, const Arg& target, DivergenceOptions options = {});

// Of classes. They are axis 1, or the only axis, of the logits or log-probabilities (N, C), (C) or (N, C, d…); targets of
// i32 or i64 in [0, C) have the shape without it.

struct NllOptions {
  LossReduction reduction = LossReduction::mean;
  /// A target that counts for nothing, neither in the sum nor in the mean.
  std::int64_t ignore_index = -100;
  /// A factor for each class: (C).
  Tensor weight = {};
};

/// −w_t x_t, x the logarithms of probabilities. The mean is Σ −w_t x_t / Σ w_t, over the targets that are not ignored; NaN
/// if all are. Throws: IndexError for a target out of range.
Tensor nll_loss(const Arg& input, const Arg& targets, const NllOptions& options = {});

struct CrossEntropyOptions {
  LossReduction reduction = LossReduction::mean;
  /// A target that counts for nothing, neither in the sum nor in the mean.
  std::int64_t ignore_index = -100;
  /// A factor for each class: (C).
  Tensor weight = {};
  /// The share of a target, in [0, 1], that is spread evenly over all classes.
  double label_smoothing = 0;
};

/// −Σ_c w_c q_c log softmax(logits)_c, per example; q is 1 at the target, else 0, and (1 − s) q + s / C where labels are
/// smoothed by s. Floating targets, in the logits' shape, are the q themselves. The mean is over the examples for these,
/// else Σ loss / Σ w_target over the targets that are not ignored; NaN if all are.
/// Throws: IndexError for a target out of range; Error for a share outside [0, 1].
Tensor cross_entropy(const Arg& logits, const Arg& targets, const CrossEntropyOptions& options = {});

// Of margins.

struct MarginOptions {
  LossReduction reduction = LossReduction::mean;
  double margin = 1;
};

/// max(0, margin − t x), t = ±1; the derivative at the kink is 0. Source: Cortes and Vapnik, Support-vector networks (1995).
Tensor hinge_loss(const Arg& input, const Arg& target, MarginOptions options = {});
/// x where t = 1, max(0, margin − x) where t = −1.
Tensor hinge_embedding_loss(const Arg& input, const Arg& target, MarginOptions options = {});

struct CosineOptions {
  LossReduction reduction = LossReduction::mean;
  double margin = 0;
};

/// 1 − cos(a, b) where t = 1, max(0, cos(a, b) − margin) where t = −1, with cos(a, b) = a·b / √((a² + 1e−12) (b² + 1e−12)):
/// a, b (N, D) and target (N), or (D) and ().
Tensor cosine_embedding_loss(const Arg& a, const Arg& b, const Arg& target, CosineOptions options = {});

struct TripletOptions {
  LossReduction reduction = LossReduction::mean;
  double margin = 1;
  /// Of the norm.
  double p = 2;
  /// Takes the smaller of the distances from the negative to the anchor and to the positive.
  bool swap = false;
  /// Added to each difference.
  double epsilon = 1e-6;
};

/// max(0, margin + ‖a − p‖ − ‖a − n‖), norms over the last axis: three of (…, D) → (…).
Tensor triplet_margin_loss(const Arg& anchor, const Arg& positive, const Arg& negative, TripletOptions options = {});

// Of sequences.

struct CtcOptions {
  LossReduction reduction = LossReduction::mean;
  /// The class of the symbol between labels.
  std::int64_t blank = 0;
  /// Where no alignment is possible, the loss and its gradient are 0 instead of infinite.
  bool zero_infinity = false;
};

/// −log Σ over alignments of Π_t p_t of an alignment's symbol: those of T symbols that become the target once repeats are
/// merged and blanks left out. log_probabilities (T, N, C), of which the first input_lengths[n] steps of example n count;
/// targets (N, S), of which the first target_lengths[n] count, or those of all examples one behind the other (Σ lengths);
/// lengths (N), also on the CPU: of targets one behind the other their lengths are read there. All but the first are i32
/// or i64. The mean divides each loss by the target's length, of at least 1.
/// Without possible alignment the loss is ∞ and its gradient 0. The gradient is the derivative by the log-probabilities,
/// −Σ of the probabilities of alignments that pass there, given the target; PyTorch adds what log_softmax's would take away.
/// Throws: IndexError for a length or a label out of range.
/// Source: Graves et al., Connectionist temporal classification (2006).
Tensor ctc_loss(const Arg& log_probabilities, const Arg& targets, const Arg& input_lengths, const Arg& target_lengths,
                CtcOptions options = {});

}  // namespace reel
