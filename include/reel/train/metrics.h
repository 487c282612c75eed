#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <reel/tensor.h>

/// \file
/// Measures of predictions that are accumulated over batches. Counts of all batches together give the result, which for
/// most of them is not the mean of the batches' results.

namespace reel::nn::inline training {

/// How well a class is recognised: with true positives tp, false positives fp and false negatives fn,
/// precision = tp / (tp + fp), recall = tp / (tp + fn), F1 = 2 tp / (2 tp + fp + fn), each in [0, 1], and 0 where it
/// would divide by 0.
struct ClassScores {
  double precision = 0,  ///< the share of the predictions of the class that are right
      recall = 0,        ///< the share of the examples of the class that are found
      f1 = 0;            ///< the harmonic mean of both
};

/// Counts how often examples of each class are predicted as each class.
class ConfusionMatrix {
 public:
  /// No examples yet, of `classes` classes, in [1, 2²⁰]. Throws: Error for another number; MemoryError.
  explicit ConfusionMatrix(std::int64_t classes, Location where = Location::here());

  /// Counts examples: the prediction is logits (N, C, …), or class indices (N, …) of i32 or i64; y has the right
  /// classes (N, …), of i32 or i64.
  /// Throws: ShapeError unless the shapes fit; DTypeError for other dtypes; IndexError for a class outside [0, C).
  void add(const Tensor& prediction, const Tensor& y, Location where = Location::here());

  /// The number of classes, C.
  std::int64_t classes() const { return classes_; }
  /// The number of examples.
  std::int64_t total() const;
  /// The number of examples of class `actual` that were predicted as class `predicted`.
  /// Throws: IndexError for a class outside [0, C).
  std::int64_t count(std::int64_t actual, std::int64_t predicted, Location where = Location::here()) const;
  /// A tensor (C, C) of i64 with all counts: a row for each actual class, a column for each predicted one.
  Tensor counts() const;

  /// The share of the examples that are predicted correctly; 0 without examples.
  double accuracy() const;
  /// The scores of a class; those of class 1 of two are the scores of a binary classifier.
  /// Throws: IndexError for a class outside [0, C).
  ClassScores scores(std::int64_t of, Location where = Location::here()) const;
  /// The unweighted mean over all classes of the precision, of the recall and of the F1.
  /// Source: scikit-learn's f1_score with average="macro" and zero_division=0.
  ClassScores macro() const;
  /// The scores of the true positives, false positives and false negatives of all classes together; where each example
  /// has one class, all three are the accuracy.
  /// Source: scikit-learn's f1_score with average="micro".
  ClassScores micro() const;

 private:
  std::int64_t classes_;
  std::vector<std::int64_t> counts_;  // (actual, predicted)
};

/// The perplexity of a language model: exp(Σ loss / n), over n predictions whose loss is a negative log-likelihood in
/// nats.
class Perplexity {
 public:
  /// Adds a batch of `count` predictions with the given mean loss in nats. Throws: Error for a negative count.
  void add(double mean_loss, std::int64_t count, Location where = Location::here());
  /// The number of predictions.
  std::int64_t count() const { return count_; }
  /// The mean loss in nats; NaN without predictions.
  double mean_loss() const;
  /// The perplexity, exp(mean_loss()); NaN without predictions.
  double value() const;

 private:
  double total_ = 0;
  std::int64_t count_ = 0;
};

/// The area under the receiver operating characteristic curve of a binary classifier: the probability that an example
/// of class 1 has a larger score than one of class 0, where equal scores add ½. It is in [0, 1], and ½ for scores that
/// say nothing.
/// Source: Hanley and McNeil, The meaning and use of the area under a receiver operating characteristic (ROC) curve
/// (Radiology 1982); scikit-learn's roc_auc_score.
class AUROC {
 public:
  /// Adds a batch: floating scores (N, …), of which only the order matters, such as probabilities or logits of class 1;
  /// y has the right classes (N, …), 0 or 1, of i32, i64 or bool. All scores are kept in memory.
  /// Throws: ShapeError unless the shapes are equal; DTypeError for other dtypes; Error for a NaN among the scores;
  /// IndexError for a class other than 0 and 1.
  void add(const Tensor& scores, const Tensor& y, Location where = Location::here());
  /// The number of examples.
  std::int64_t count() const { return std::ssize(positive_) + std::ssize(negative_); }
  /// The area under the curve; NaN unless there are examples of both classes.
  double value() const;

 private:
  std::vector<double> positive_, negative_;  // scores of the examples of class 1 and of class 0
};

/// How BLEU replaces a share p_n of 0, which would make the whole score 0.
enum class BLEUSmoothing {
  none,         ///< not at all
  exponential,  ///< the k-th share that is 0 becomes 2^−k / (number of n-grams); NIST's mteval-v13a
  add_one,      ///< 1 is added to the numerator and the denominator of each p_n with n > 1; Lin and Och (2004)
};

/// Options of `BLEU`.
struct BLEUOptions {
  /// How shares of 0 are replaced. Default none.
  BLEUSmoothing smoothing = BLEUSmoothing::none;
};

/// The result of BLEU.
struct BLEUScore {
  double score = 0;                    ///< in [0, 100]
  std::array<double, 4> precisions{};  ///< of the n-grams of 1 to 4 tokens, each in [0, 100]
  double brevity_penalty = 0;          ///< in [0, 1]
  std::int64_t candidate_length = 0,   ///< the number of tokens of all candidates
      reference_length = 0;            ///< the number of tokens of the references that are closest in length
};

/// The BLEU score of a corpus, of n-grams of up to 4 tokens, which are compared as they are:
///
///     BLEU = 100 · min(1, exp(1 − r / c)) · (p₁ p₂ p₃ p₄)^¼
///
/// where p_n is the share of the candidates' n-grams that are in a reference, each counted at most as often as in one
/// reference; c the number of tokens of the candidates, and r that of the references, of each sentence the one closest
/// in length, of equally close ones the shorter. Without smoothing the score is 0 if any p_n is; with it, still if no
/// token is in a reference.
/// Source: Papineni et al., BLEU: a method for automatic evaluation of machine translation (ACL 2002); sacreBLEU's
/// corpus_bleu with tokenize="none" and smooth_method="none", "exp" or "add-k" with k = 1.
class BLEU {
 public:
  /// The tokens of a sentence.
  using Tokens = std::vector<std::string>;
  /// The tokens of a sentence as indices into a vocabulary.
  using TokenIndices = std::vector<std::int64_t>;

  /// No sentences yet.
  explicit BLEU(BLEUOptions options = {}) : options_(options) {}

  /// Adds a sentence with one or several references. Throws: Error without a reference.
  void add(const Tokens& candidate, std::span<const Tokens> references, Location where = Location::here());
  /// Adds a sentence with one reference.
  void add(const Tokens& candidate, const Tokens& reference, Location where = Location::here()) {
    add(candidate, std::span(&reference, 1), where);
  }
  /// Adds a sentence with one or several references, as indices of tokens. Throws: Error without a reference.
  void add(std::span<const std::int64_t> candidate, std::span<const TokenIndices> references,
           Location where = Location::here());
  /// Adds a sentence with one reference, as indices of tokens.
  void add(std::span<const std::int64_t> candidate, std::span<const std::int64_t> reference,
           Location where = Location::here());
  /// The score of all sentences together; 0 without any.
  BLEUScore result() const;

 private:
  template <class Token>
  void add_tokens(std::span<const Token> candidate, const std::vector<std::span<const Token>>& references,
                  Location where);

  BLEUOptions options_;
  std::array<std::int64_t, 4> right_{}, all_{};  // n-grams
  std::int64_t candidate_length_ = 0, reference_length_ = 0;
};

}  // namespace reel::nn::inline training
