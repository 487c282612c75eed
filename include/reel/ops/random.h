#pragma once

#include <reel/ops/create.h>
#include <reel/random.h>
#include <reel/tensor.h>

// Element i of the result of random call c is made from the Philox words of the counter (c, i), whatever the layout or the
// number of threads. Integers and bools are equal on every device to the bit. Only dropouts and
// gumbel_softmax have gradients.

namespace reel {

struct RandomOptions {
  DType dtype = DType::f32;
  Device device = default_device();
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// Uniform on [0, 1). f32 has 24 random bits, f64 53, f16 11, bf16 8.
Tensor rand(const Shape& shape, RandomOptions options = {}, Location where = Location::here());
/// Normal with mean 0 and variance 1. Source: Box and Muller, A note on the generation of random normal deviates (1958).
Tensor randn(const Shape& shape, RandomOptions options = {}, Location where = Location::here());
/// −log(−log u), u uniform on (0, 1) with 32 random bits, 52 for f64: the standard Gumbel distribution, of mean 0.5772 and
/// variance π² / 6. The class with the largest logit + gumbel is a draw from softmax(logits).
/// Source: Gumbel, Statistical theory of extreme values and some practical applications (1954).
Tensor gumbel(const Shape& shape, RandomOptions options = {}, Location where = Location::here());

/// 1 with probability p, rounded up to a multiple of 2^−32, else 0; in any dtype.
/// Throws: Error for a probability outside [0, 1].
Tensor bernoulli(double p, const Shape& shape, RandomOptions options = {}, Location where = Location::here());

struct DrawOptions {
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// The same with a probability for each element, in p's shape and dtype.
/// Throws: DTypeError unless p is floating; Error, before anything is written, if one lies outside [0, 1].
Tensor bernoulli(const Arg& p, DrawOptions options = {});
/// Uniform on [0, 1), in the shape, dtype and device of another tensor. Throws: DTypeError unless floating.
Tensor rand_like(const Arg& x, DrawOptions options = {});
/// Normal, in the shape, dtype and device of another tensor. Throws: DTypeError unless floating.
Tensor randn_like(const Arg& x, DrawOptions options = {});

struct IntegerOptions {
  /// i64, i32 or u8.
  DType dtype = DType::i64;
  Device device = default_device();
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// Integers from [low, high): low + ⌊w (high − low) / 2^128⌋ of a 128-bit random number w, so that no integer's
/// probability is off by a factor of more than 1 ± 2^−64.
/// Throws: Error if there is no such integer; DTypeError if one does not fit the dtype.
Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, IntegerOptions options = {},
               Location where = Location::here());
/// The integers 0 … count − 1 in an order drawn from all with equal probability: sorted by 64-bit random numbers, of which
/// two are equal with a probability below count² / 2^65.
/// Throws: ShapeError for a negative count; DTypeError if one does not fit the dtype.
Tensor randperm(std::int64_t count, IntegerOptions options = {}, Location where = Location::here());

struct DropoutOptions {
  /// Probability, in [0, 1], with which an element becomes 0.
  double probability = 0.5;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// x / (1 − p) with each element set to 0 with probability p; the mask is drawn again, not stored, for the gradient.
/// Throws: Error for a probability outside [0, 1]; DTypeError unless floating.
/// Source: Srivastava et al., Dropout (JMLR 2014), in its inverted form.
Tensor dropout(const Arg& x, DropoutOptions options = {});

struct VariationalDropoutOptions {
  /// Probability, in [0, 1], with which an element becomes 0 at every step.
  double probability = 0.5;
  /// Along which the steps lie.
  int axis = 0;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// dropout with one mask for all steps of a sequence: it is drawn in the shape of x with size 1 along the axis.
/// Throws: as dropout; ShapeError for an axis that does not exist.
/// Source: Gal and Ghahramani, A theoretically grounded application of dropout in recurrent neural networks (NeurIPS 2016).
Tensor variational_dropout(const Arg& x, VariationalDropoutOptions options = {});

/// a x + b, where with probability p an element counts as α' = −1.7580993408473766, the limit of `selu`; a and b keep mean
/// 0 and variance 1: a = (q + α'² q p)^(−1/2), b = −a p α', q = 1 − p. All zeros for p = 1.
/// Throws: as dropout.
/// Source: Klambauer et al., Self-normalizing neural networks (NeurIPS 2017).
Tensor alpha_dropout(const Arg& x, DropoutOptions options = {});

struct GumbelSoftmaxOptions {
  /// Above 0; towards 0 the result becomes one-hot.
  double temperature = 1;
  /// Gives the largest element as one-hot, with the gradient of the soft result (straight through).
  bool hard = false;
  int axis = -1;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// softmax((logits + gumbel) / temperature) along an axis: a draw from the classes that can be differentiated.
/// Throws: DTypeError unless floating; Error unless the temperature is above 0; ShapeError for an axis that does not exist.
/// Source: Jang et al., Categorical reparameterization with Gumbel-softmax (ICLR 2017).
Tensor gumbel_softmax(const Arg& logits, GumbelSoftmaxOptions options = {});

struct MultinomialOptions {
  /// Whether a class can be drawn more than once.
  bool replacement = false;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// `count` classes of each row of probabilities (C) or (N, C), as i64 (count) or (N, count). Rows need not sum to 1; a class
/// of probability 0 is never drawn. Without replacement the classes are in the order in which they were drawn.
/// Throws: DTypeError unless floating; ShapeError for another rank or a negative count; Error, before anything is drawn,
/// for a negative, infinite or NaN probability, and for a row with too few classes above 0.
/// Source: PyTorch's multinomial; without replacement: Efraimidis and Spirakis, Weighted random sampling with a reservoir
/// (2006).
Tensor multinomial(const Arg& probabilities, std::int64_t count, MultinomialOptions options = {});

}  // namespace reel
