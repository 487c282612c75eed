#pragma once

#include <cstdint>

#include <reel/tensor.h>

/// \file
/// Losses: how far a prediction is from a target. Operands have one shape, since a broadcast is nearly always a mistake
/// here, and one floating dtype; bf16 and f16 are rounded once, at the end. Gradients flow to targets and weights, too.
/// Source: PyTorch's functions of these names, unless another one is named.

namespace reel {

/// How the losses of single examples or elements are reduced: not, by their sum, or by their mean.
enum class LossReduction : std::uint8_t { none, sum, mean };

/// Options of `mse_loss` and `l1_loss`.
struct LossOptions {
  LossReduction reduction = LossReduction::mean;  ///< default: mean
};

/// Squared error (x − t)², of input x and target t, elementwise, then reduced.
/// Throws: ShapeError unless input and target have one shape; DTypeError unless both have one floating dtype;
/// DeviceError for operands on different devices.
/// Source: PyTorch's mse_loss.
Tensor mse_loss(const Arg& input, const Arg& target, LossOptions options = {});
/// Absolute error |x − t|, of input x and target t, elementwise, then reduced; the derivative at 0 is 0.
/// Throws: ShapeError unless input and target have one shape; DTypeError unless both have one floating dtype;
/// DeviceError for operands on different devices.
/// Source: PyTorch's l1_loss.
Tensor l1_loss(const Arg& input, const Arg& target, LossOptions options = {});

/// Options of `huber_loss`.
struct HuberOptions {
  LossReduction reduction = LossReduction::mean;  ///< default: mean
  /// δ: where the square ends; above 0. Default 1.
  double delta = 1;
};

/// Huber loss, elementwise, then reduced: (x − t)² / 2 where |x − t| ≤ δ, else δ (|x − t| − δ / 2), of input x and
/// target t.
/// Throws: ShapeError unless input and target have one shape; DTypeError unless both have one floating dtype;
/// DeviceError for operands on different devices; Error unless δ is positive.
/// Source: Huber, Robust estimation of a location parameter (1964).
Tensor huber_loss(const Arg& input, const Arg& target, HuberOptions options = {});

/// Options of `smooth_l1_loss`.
struct SmoothL1Options {
  LossReduction reduction = LossReduction::mean;  ///< default: mean
  /// β: where the square ends; at least 0, which gives l1_loss. Default 1.
  double beta = 1;
};

/// Smooth absolute error, elementwise, then reduced: (x − t)² / 2β where |x − t| ≤ β, else |x − t| − β / 2, of input x
/// and target t.
/// Throws: ShapeError unless input and target have one shape; DTypeError unless both have one floating dtype;
/// DeviceError for operands on different devices; Error for a negative β.
/// Source: PyTorch's smooth_l1_loss.
Tensor smooth_l1_loss(const Arg& input, const Arg& target, SmoothL1Options options = {});

/// Options of `poisson_nll_loss`.
struct PoissonOptions {
  LossReduction reduction = LossReduction::mean;  ///< default: mean
  /// Whether the input is the logarithm of the rate. Default true.
  bool log_input = true;
  /// Whether Stirling's approximation of log t! is added where t > 1. Default false.
  bool full = false;
  /// ε: added to a rate before its logarithm is taken, without `log_input`. Default 10⁻⁸.
  double epsilon = 1e-8;
};

/// −log of the probability of t under the Poisson distribution of a rate, without the term log t!, elementwise, then
/// reduced: e^x − t x, or without `log_input` x − t log(x + ε), of input x and target t.
/// Throws: ShapeError unless input and target have one shape; DTypeError unless both have one floating dtype;
/// DeviceError for operands on different devices.
/// Source: PyTorch's poisson_nll_loss.
Tensor poisson_nll_loss(const Arg& input, const Arg& target, PoissonOptions options = {});

/// Options of `gaussian_nll_loss`.
struct GaussianOptions {
  LossReduction reduction = LossReduction::mean;  ///< default: mean
  /// Whether the constant log(2π) / 2 is added. Default false.
  bool full = false;
  /// ε: what smaller variances are replaced with; above 0. Default 10⁻⁶.
  double epsilon = 1e-6;
};

/// −log of the density of t under the normal distribution of mean x and variance v, without its constant, elementwise,
/// then reduced: (log v + (x − t)² / v) / 2 of input x and target t (…, D), with v no less than ε. The variance has
/// their shape, or one number for all of the last axis: (…, 1) or (…). Its gradient is taken at v, also where ε replaces
/// it.
/// Throws: ShapeError unless input and target have one shape and the variance fits; DTypeError unless all have one
/// floating dtype; DeviceError for operands on different devices; Error unless ε is above 0.
/// Source: PyTorch's gaussian_nll_loss.
Tensor gaussian_nll_loss(const Arg& input, const Arg& target, const Arg& variance, GaussianOptions options = {});

/// Options of `binary_cross_entropy`.
struct BinaryOptions {
  LossReduction reduction = LossReduction::mean;  ///< default: mean
  /// A factor for each element; broadcasts to the input. Undefined (default): 1.
  Tensor weight = {};
};

/// Binary cross entropy −(t log p + (1 − t) log(1 − p)), elementwise, then reduced: input p in [0, 1], NaN beyond, and
/// target t. Logarithms are at least −100, and where they would be less the derivative is 0.
/// Throws: ShapeError unless input and target have one shape and the weight broadcasts to it; DTypeError unless both
/// have one floating dtype; DeviceError for operands on different devices.
/// Source: PyTorch's binary_cross_entropy.
Tensor binary_cross_entropy(const Arg& input, const Arg& target, const BinaryOptions& options = {});

/// Options of `binary_cross_entropy_with_logits`.
struct BinaryLogitsOptions {
  LossReduction reduction = LossReduction::mean;  ///< default: mean
  /// A factor for each element; broadcasts to the input. Undefined (default): 1.
  Tensor weight = {};
  /// A factor for the term of t; broadcasts to the input. Undefined (default): 1.
  Tensor pos_weight = {};
};

/// Binary cross entropy of logits, elementwise, then reduced: −(t log p + (1 − t) log(1 − p)) with p = sigmoid(x), of
/// input x and target t, without overflow: (1 − t) x + (1 + (pos_weight − 1) t) log(1 + e^−x).
/// Throws: ShapeError unless input and target have one shape and the weights broadcast to it; DTypeError unless both
/// have one floating dtype; DeviceError for operands on different devices.
/// Source: PyTorch's binary_cross_entropy_with_logits.
Tensor binary_cross_entropy_with_logits(const Arg& input, const Arg& target, const BinaryLogitsOptions& options = {});

/// How the terms of `kl_div` are reduced.
enum class DivergenceReduction : std::uint8_t {
  none,        ///< not at all
  sum,         ///< by their sum
  mean,        ///< by their mean over all elements
  batch_mean,  ///< by their sum over the size of axis 0: the divergence itself
};

/// Options of `kl_div`.
struct DivergenceOptions {
  DivergenceReduction reduction = DivergenceReduction::mean;  ///< default: mean over all elements
  /// Whether the target is given as logarithms, too. Default false.
  bool log_target = false;
};

/// Kullback–Leibler divergence, elementwise, then reduced: t (log t − x), where the input x is the logarithm of a
/// probability and the target t a probability; t log t is 0 at 0, and so is its derivative there.
/// Throws: ShapeError unless input and target have one shape; DTypeError unless both have one floating dtype;
/// DeviceError for operands on different devices; ShapeError for batch_mean without an axis.
/// Source: Kullback and Leibler, On information and sufficiency (1951).
Tensor kl_div(const Arg& input, const Arg& target, DivergenceOptions options = {});

/// Options of `nll_loss`.
struct NllOptions {
  LossReduction reduction = LossReduction::mean;  ///< default: mean
  /// A target that is ignored, both in the sum and in the mean. Default −100.
  std::int64_t ignore_index = -100;
  /// A factor for each class: (C). Undefined (default): 1.
  Tensor weight = {};
};

/// Negative log-likelihood −w_t x_t, then reduced, where the input x holds logarithms of probabilities. Classes are
/// axis 1, or the only axis: input (N, C), (C) or (N, C, d…); targets of i32 or i64 in [0, C) have the shape without
/// it. The mean is Σ −w_t x_t / Σ w_t, over the targets that are not ignored; NaN if all are.
/// Throws: IndexError for a target out of range; ShapeError, DTypeError, DeviceError where operands do not fit.
/// Source: PyTorch's nll_loss.
Tensor nll_loss(const Arg& input, const Arg& targets, const NllOptions& options = {});

/// Options of `cross_entropy`.
struct CrossEntropyOptions {
  LossReduction reduction = LossReduction::mean;  ///< default: mean
  /// A target that is ignored, both in the sum and in the mean. Default −100.
  std::int64_t ignore_index = -100;
  /// A factor for each class: (C). Undefined (default): 1.
  Tensor weight = {};
  /// s: the share of a target, in [0, 1], that is spread evenly over all classes. Default 0.
  double label_smoothing = 0;
};

/// Cross entropy −Σ_c w_c q_c log softmax(logits)_c of each example, then reduced; q is 1 at the target, else 0, and (1
/// − s) q + s / C where labels are smoothed by s. Classes are axis 1, or the only axis: logits (N, C), (C) or (N, C,
/// d…); targets of i32 or i64 in [0, C) have the shape without it. Floating targets, in the logits' shape, are the q
/// themselves. The mean is over the examples for these, else Σ loss / Σ w_target over the targets that are not ignored;
/// NaN if all are.
/// Throws: IndexError for a target out of range; Error for a share outside [0, 1]; ShapeError, DTypeError, DeviceError
/// where operands do not fit.
/// Source: PyTorch's cross_entropy.
Tensor cross_entropy(const Arg& logits, const Arg& targets, const CrossEntropyOptions& options = {});

/// Options of `hinge_loss` and `hinge_embedding_loss`.
struct MarginOptions {
  LossReduction reduction = LossReduction::mean;  ///< default: mean
  double margin = 1;                              ///< default 1
};

/// Hinge loss max(0, margin − t x), elementwise, then reduced, of input x and target t = ±1; the derivative at the kink
/// is 0.
/// Throws: ShapeError unless input and target have one shape; DTypeError unless both have one floating dtype;
/// DeviceError for operands on different devices.
/// Source: Cortes and Vapnik, Support-vector networks (1995).
Tensor hinge_loss(const Arg& input, const Arg& target, MarginOptions options = {});
/// x where t = 1, max(0, margin − x) where t = −1, elementwise, then reduced, of input x and target t.
/// Throws: ShapeError unless input and target have one shape; DTypeError unless both have one floating dtype;
/// DeviceError for operands on different devices.
/// Source: PyTorch's hinge_embedding_loss.
Tensor hinge_embedding_loss(const Arg& input, const Arg& target, MarginOptions options = {});

/// Options of `cosine_embedding_loss`.
struct CosineEmbeddingLossOptions {
  LossReduction reduction = LossReduction::mean;  ///< default: mean
  double margin = 0;                              ///< default 0
};

/// 1 − cos(a, b) where t = 1, max(0, cos(a, b) − margin) where t = −1, of each example, then reduced, with cos(a, b) =
/// a·b / √((a² + 1e−12) (b² + 1e−12)): a, b (N, D) and target t (N), or (D) and ().
/// Throws: ShapeError, DTypeError, DeviceError where operands do not fit.
/// Source: PyTorch's cosine_embedding_loss.
Tensor cosine_embedding_loss(const Arg& a, const Arg& b, const Arg& target, CosineEmbeddingLossOptions options = {});

/// Options of `triplet_margin_loss`.
struct TripletOptions {
  LossReduction reduction = LossReduction::mean;  ///< default: mean
  double margin = 1;                              ///< default 1
  /// The order of the norm. Default 2.
  double p = 2;
  /// Takes the smaller of the distances from the negative to the anchor and to the positive. Default false.
  bool swap = false;
  /// Added to each difference. Default 10⁻⁶.
  double epsilon = 1e-6;
};

/// max(0, margin + ‖a − p‖ − ‖a − n‖) of anchors a, positives p and negatives n, norms over the last axis, then
/// reduced: three of (…, D) → (…).
/// Throws: ShapeError, DTypeError, DeviceError where operands do not fit.
/// Source: PyTorch's triplet_margin_loss.
Tensor triplet_margin_loss(const Arg& anchor, const Arg& positive, const Arg& negative, TripletOptions options = {});

/// Options of `multi_margin_loss`.
struct MultiMarginOptions {
  LossReduction reduction = LossReduction::mean;  ///< default: mean
  /// The power of each term: 1 or 2. Default 1.
  int p = 1;
  double margin = 1;  ///< default 1
  /// A factor for each class: (C). Undefined (default): 1.
  Tensor weight = {};
};

/// Multi-class hinge loss Σ_{c ≠ t} w_t max(0, margin − x_t + x_c)^p / C of each example, then reduced: input x (N, C) or
/// (C); targets t of i32 or i64 in [0, C): (N) or ().
/// Throws: IndexError for a target out of range; Error unless p is 1 or 2; ShapeError, DTypeError, DeviceError where
/// operands do not fit.
/// Source: PyTorch's multi_margin_loss.
Tensor multi_margin_loss(const Arg& input, const Arg& targets, const MultiMarginOptions& options = {});
/// Multi-label hinge loss Σ_t Σ_c max(0, 1 − (x_t − x_c)) / C of each example, then reduced, over the labels t of the
/// example and the classes c that are none: input x (N, C) or (C); targets of i32 or i64 in the same shape, which are
/// labels in [0, C) up to the first negative number.
/// Throws: IndexError for a label of C or more; ShapeError, DTypeError, DeviceError where operands do not fit.
/// Source: PyTorch's multilabel_margin_loss.
Tensor multilabel_margin_loss(const Arg& input, const Arg& targets, LossOptions options = {});

/// Options of `multilabel_soft_margin_loss`.
struct MultilabelSoftMarginOptions {
  LossReduction reduction = LossReduction::mean;  ///< default: mean
  /// A factor for each class; broadcasts to the input. Undefined (default): 1.
  Tensor weight = {};
};

/// −Σ_c w_c (t_c log p_c + (1 − t_c) log(1 − p_c)) / C with p = sigmoid(x) of each example, then reduced, of input x and
/// target t: (…, C) → (…).
/// Throws: ShapeError unless input and target have one shape, with an axis, and the weight broadcasts to it; DTypeError
/// unless all have one floating dtype; DeviceError for operands on different devices.
/// Source: PyTorch's multilabel_soft_margin_loss.
Tensor multilabel_soft_margin_loss(const Arg& input, const Arg& target,
                                   const MultilabelSoftMarginOptions& options = {});

/// Options of `ctc_loss`.
struct CtcOptions {
  LossReduction reduction = LossReduction::mean;  ///< default: mean
  /// The class of the symbol between labels, in [0, C). Default 0.
  std::int64_t blank = 0;
  /// Where no alignment is possible, the loss and its gradient are 0 instead of infinite. Default false.
  bool zero_infinity = false;
};

/// Connectionist temporal classification: −log Σ over alignments of Π_t p_t of an alignment's symbol, of each example,
/// then reduced: alignments are those of T symbols that become the target once repeats are merged and blanks left out.
/// log_probabilities (T, N, C), of which the first input_lengths[n] steps of example n are used; targets (N, S), of
/// which the first target_lengths[n] are used, or those of all examples concatenated (Σ lengths); lengths (N), also on
/// the CPU: for concatenated targets their lengths are read there. All but the first are i32 or i64. The mean divides
/// each loss by the target's length, of at least 1.
/// Without possible alignment the loss is ∞ and its gradient 0. The gradient is the derivative with respect to the
/// log-probabilities: −Σ of the probabilities, given the target, of the alignments that have that symbol at that step;
/// PyTorch adds the softmax term that log_softmax's gradient would subtract.
/// Throws: IndexError for a length or a label out of range; ShapeError, DTypeError, DeviceError where operands do not
/// fit.
/// Source: Graves et al., Connectionist temporal classification (2006).
Tensor ctc_loss(const Arg& log_probabilities, const Arg& targets, const Arg& input_lengths, const Arg& target_lengths,
                CtcOptions options = {});

}  // namespace reel
