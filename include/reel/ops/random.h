#pragma once

#include <reel/ops/create.h>
#include <reel/random.h>
#include <reel/tensor.h>

/// \file
/// Random tensors. Element i of the result of random call c is made from the Philox words of the counter (c, i),
/// whatever the layout or the number of threads. Integers and bools are equal on every device to the bit. Only dropouts
/// and gumbel_softmax have gradients.

namespace reel {

/// Options of functions that draw a tensor of a given shape.
struct RandomOptions {
  DType dtype = DType::f32;          ///< default f32
  Device device = default_device();  ///< default: default_device()
  /// The generator of the random numbers; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// Random numbers, uniform on [0, 1). f32 has 24 random bits, f64 53, f16 11, bf16 8.
/// Throws: ShapeError for a negative size; DTypeError unless the dtype is floating.
Tensor rand(const Shape& shape, RandomOptions options = {}, Location where = Location::here());
/// Random numbers, normal with mean 0 and variance 1.
/// Throws: ShapeError for a negative size; DTypeError unless the dtype is floating.
/// Source: Box and Muller, A note on the generation of random normal deviates (1958).
Tensor randn(const Shape& shape, RandomOptions options = {}, Location where = Location::here());
/// Random numbers of the standard Gumbel distribution: −log(−log u), u uniform on (0, 1) with 32 random bits, 52 for
/// f64; its mean is 0.5772 and its variance π² / 6. The class with the largest logit + gumbel is a sample of
/// softmax(logits).
/// Throws: ShapeError for a negative size; DTypeError unless the dtype is floating.
/// Source: Gumbel, Statistical theory of extreme values and some practical applications (1954).
Tensor gumbel(const Shape& shape, RandomOptions options = {}, Location where = Location::here());

/// 1 with probability p, rounded up to a multiple of 2^−32, else 0; in any dtype.
/// Throws: Error for a probability outside [0, 1]; ShapeError for a negative size.
Tensor bernoulli(double p, const Shape& shape, RandomOptions options = {}, Location where = Location::here());

/// Options of functions that draw a tensor like a given one.
struct DrawOptions {
  /// The generator of the random numbers; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// 1 with a probability for each element, p[…], rounded up to a multiple of 2^−32, else 0; in p's shape and dtype.
/// Throws: DTypeError unless p is a floating tensor; Error, before anything is written, if a probability is outside [0,
/// 1].
Tensor bernoulli(const Arg& p, DrawOptions options = {});
/// Random numbers, uniform on [0, 1), in the shape and dtype, and on the device, of x.
/// Throws: DTypeError unless floating.
Tensor rand_like(const Arg& x, DrawOptions options = {});
/// Random numbers, normal with mean 0 and variance 1, in the shape and dtype, and on the device, of x.
/// Throws: DTypeError unless floating.
Tensor randn_like(const Arg& x, DrawOptions options = {});

/// Options of `randint` and `randperm`.
struct IntegerOptions {
  /// An integer dtype; default i64.
  DType dtype = DType::i64;
  Device device = default_device();  ///< default: default_device()
  /// The generator of the random numbers; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// Random integers from [low, high): low + ⌊w (high − low) / 2^128⌋ of a 128-bit random number w, so that no integer's
/// probability is off by a factor of more than 1 ± 2^−64.
/// Throws: Error if low ≥ high; DTypeError for another dtype, or one that cannot hold the bounds; ShapeError for a
/// negative size.
Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, IntegerOptions options = {},
               Location where = Location::here());
/// A random permutation of the integers 0 … count − 1, all with equal probability: sorted by 64-bit random numbers, two
/// of which are equal with a probability below count² / 2^65.
/// Throws: ShapeError for a negative count; DTypeError for another dtype, or one that cannot hold the integers.
Tensor randperm(std::int64_t count, IntegerOptions options = {}, Location where = Location::here());

/// Options of `dropout`, `dropout2d` and `alpha_dropout`.
struct DropoutOptions {
  /// The probability, in [0, 1], with which an element becomes 0, a channel in `dropout2d`, or the limit of `selu` in
  /// `alpha_dropout`. Default 0.5.
  double probability = 0.5;
  /// The generator of the random numbers; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// x / (1 − p) with each element set to 0 with probability p; the mask is drawn again, not stored, for the gradient.
/// Throws: Error for a probability outside [0, 1]; DTypeError unless floating.
/// Source: Srivastava et al., Dropout (JMLR 2014), in its inverted form.
Tensor dropout(const Arg& x, DropoutOptions options = {});

/// x / (1 − p) with each channel of each example set to 0 with probability p: x: (N, C, H, W) or (C, H, W).
/// Throws: Error for a probability outside [0, 1]; DTypeError unless floating; ShapeError for another rank.
/// Source: Tompson et al., Efficient object localization using convolutional networks (CVPR 2015); PyTorch's dropout2d.
Tensor dropout2d(const Arg& x, DropoutOptions options = {});

/// Options of `variational_dropout`.
struct VariationalDropoutOptions {
  /// The probability, in [0, 1], with which an element becomes 0 at every step. Default 0.5.
  double probability = 0.5;
  /// The axis of the time steps. Default 0.
  int axis = 0;
  /// The generator of the random numbers; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// dropout with one mask for all time steps of a sequence: x / (1 − p) with elements set to 0 with probability p by a
/// mask that is drawn in the shape of x with size 1 along the axis of the steps.
/// Throws: Error for a probability outside [0, 1]; DTypeError unless floating; ShapeError for an axis that does not
/// exist.
/// Source: Gal and Ghahramani, A theoretically grounded application of dropout in recurrent neural networks (NeurIPS
/// 2016).
Tensor variational_dropout(const Arg& x, VariationalDropoutOptions options = {});

/// a x + b, where with probability p an element is replaced by α' = −1.7580993408473766, the limit of `selu`; a and b
/// keep mean 0 and variance 1: a = (q + α'² q p)^(−1/2), b = −a p α', q = 1 − p. All zeros for p = 1.
/// Throws: Error for a probability outside [0, 1]; DTypeError unless floating.
/// Source: Klambauer et al., Self-normalizing neural networks (NeurIPS 2017).
Tensor alpha_dropout(const Arg& x, DropoutOptions options = {});

/// Options of `gumbel_softmax`.
struct GumbelSoftmaxOptions {
  /// Above 0; towards 0 the result becomes one-hot. Default 1.
  double temperature = 1;
  /// Whether the result is one-hot at the largest element, with the gradient of the soft result (straight through).
  /// Default false.
  bool hard = false;
  int axis = -1;  ///< the axis of the classes; default the last
  /// The generator of the random numbers; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// softmax((logits + gumbel) / temperature) along an axis: a differentiable sample of the classes.
/// Throws: DTypeError unless floating; Error unless the temperature is above 0; ShapeError for an axis that does not
/// exist.
/// Source: Jang et al., Categorical reparameterization with Gumbel-softmax (ICLR 2017).
Tensor gumbel_softmax(const Arg& logits, GumbelSoftmaxOptions options = {});

/// Options of `multinomial`.
struct MultinomialOptions {
  /// Whether a class can be drawn more than once. Default false.
  bool replacement = false;
  /// The generator of the random numbers; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// Draws `count` classes for each row of probabilities (C) or (N, C), as i64 (count) or (N, count). Rows need not sum
/// to 1; a class of probability 0 is never drawn. Without replacement the classes are in the order in which they were
/// drawn.
/// Throws: DTypeError unless floating; ShapeError for another rank or a negative count; Error, before anything is
/// drawn, for a negative, infinite or NaN probability, and for a row with too few classes above 0.
/// Source: PyTorch's multinomial; without replacement: Efraimidis and Spirakis, Weighted random sampling with a
/// reservoir (2006).
Tensor multinomial(const Arg& probabilities, std::int64_t count, MultinomialOptions options = {});

}  // namespace reel
