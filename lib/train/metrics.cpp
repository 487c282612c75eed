#include <reel/train/metrics.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include <reel/no_record.h>
#include <reel/ops/create.h>
#include <reel/ops/reduce.h>

#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../ops/if_needed.h"

namespace reel::nn::inline training {

using namespace detail;

namespace {

constexpr const char *confusion_name = "ConfusionMatrix", *perplexity_name = "Perplexity", *bleu_name = "BLEU",
                     *auroc_name = "AUROC";

constexpr std::int64_t most_classes = 1 << 20;

double ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }

ClassScores scores_of(double right, double predicted, double actual) {
  return {ratio(right, predicted), ratio(right, actual), ratio(2 * right, predicted + actual)};
}

template <class Token>
std::map<std::vector<Token>, std::int64_t> ngrams_of(std::span<const Token> tokens, std::size_t n) {
  std::map<std::vector<Token>, std::int64_t> counts;
  for (std::size_t i = 0; i + n <= tokens.size(); ++i) {
    std::span<const Token> ngram = tokens.subspan(i, n);
    ++counts[std::vector<Token>(ngram.begin(), ngram.end())];
  }
  return counts;
}

// The n-grams of a sentence, by their number of tokens, and its lengths.
struct SentenceCounts {
  std::array<std::int64_t, 4> right{}, all{};
  std::int64_t candidate_length = 0, reference_length = 0;
};

template <class Token>
SentenceCounts counts_of(std::span<const Token> candidate, const std::vector<std::span<const Token>>& references,
                         Location where) {
  if (references.empty()) fail<Error>(bleu_name, where, "a sentence needs at least one reference");
  SentenceCounts counts{.candidate_length = std::ssize(candidate), .reference_length = std::ssize(references[0])};
  for (std::span<const Token> reference : references)
    counts.reference_length =
        std::min(counts.reference_length, std::ssize(reference), [&](std::int64_t a, std::int64_t b) {
          return std::pair(std::abs(a - counts.candidate_length), a) <
                 std::pair(std::abs(b - counts.candidate_length), b);
        });
  for (std::size_t n = 1; n <= counts.right.size(); ++n) {
    std::map<std::vector<Token>, std::int64_t> most;
    for (std::span<const Token> reference : references)
      for (const auto& [ngram, count] : ngrams_of(reference, n)) most[ngram] = std::max(most[ngram], count);
    for (const auto& [ngram, count] : ngrams_of(candidate, n)) {
      counts.all[n - 1] += count;
      auto found = most.find(ngram);
      if (found != most.end()) counts.right[n - 1] += std::min(count, found->second);
    }
  }
  return counts;
}

}  // namespace

ConfusionMatrix::ConfusionMatrix(std::int64_t classes, Location where) : classes_(classes) {
  if (classes < 1) fail<Error>(confusion_name, where, "there must be at least one class, not {}", classes);
  if (classes > most_classes)
    fail<Error>(confusion_name, where, "{} classes are more than the {} whose pairs can be counted", classes,
                most_classes);
  with_memory_error(confusion_name, where, [&] { counts_.resize(static_cast<std::size_t>(classes * classes)); });
}

void ConfusionMatrix::add(const Tensor& prediction, const Tensor& y, Location where) {
  if (!prediction.defined() || !y.defined())
    fail<Error>(confusion_name, where, "the prediction or y is an undefined tensor");
  NoRecord pause;
  Tensor predicted = prediction;
  if (is_floating(prediction.dtype())) {
    if (prediction.rank() < 2 || prediction.size(1) != classes_)
      fail<ShapeError>(confusion_name, where, "logits of {} classes are (N, {}, …), not {}", classes_, classes_,
                       describe(prediction));
    predicted = argmax(prediction, 1);
  }
  if (predicted.shape() != y.shape())
    fail<ShapeError>(confusion_name, where, "the prediction {} does not fit y {}", describe(prediction), describe(y));
  for (const Tensor& given : {predicted, y})
    if (given.dtype() != DType::i32 && given.dtype() != DType::i64)
      fail<DTypeError>(confusion_name, where, "classes are i32 or i64, not {}", describe(given));
  std::vector<std::int64_t> guesses = to_if_needed(predicted, DType::i64).to_vector<std::int64_t>(),
                            actual = to_if_needed(y, DType::i64).to_vector<std::int64_t>();
  for (const auto& given : {guesses, actual})
    for (std::int64_t one : given)
      if (one < 0 || one >= classes_) fail<IndexError>(confusion_name, where, "class {} is none of {}", one, classes_);
  for (std::size_t i = 0; i < actual.size(); ++i)
    ++counts_[static_cast<std::size_t>(actual[i] * classes_ + guesses[i])];
}

std::int64_t ConfusionMatrix::total() const { return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0}); }

std::int64_t ConfusionMatrix::count(std::int64_t actual, std::int64_t predicted, Location where) const {
  for (std::int64_t one : {actual, predicted})
    if (one < 0 || one >= classes_) fail<IndexError>(confusion_name, where, "class {} is none of {}", one, classes_);
  return counts_[static_cast<std::size_t>(actual * classes_ + predicted)];
}

Tensor ConfusionMatrix::counts() const { return tensor(counts_, {classes_, classes_}); }

double ConfusionMatrix::accuracy() const { return micro().f1; }

ClassScores ConfusionMatrix::scores(std::int64_t of, Location where) const {
  std::int64_t right = count(of, of, where), predicted = 0, actual = 0;
  for (std::int64_t other = 0; other < classes_; ++other) {
    predicted += count(other, of);
    actual += count(of, other);
  }
  return scores_of(static_cast<double>(right), static_cast<double>(predicted), static_cast<double>(actual));
}

ClassScores ConfusionMatrix::macro() const {
  ClassScores mean;
  for (std::int64_t of = 0; of < classes_; ++of) {
    ClassScores one = scores(of);
    mean.precision += one.precision / static_cast<double>(classes_);
    mean.recall += one.recall / static_cast<double>(classes_);
    mean.f1 += one.f1 / static_cast<double>(classes_);
  }
  return mean;
}

ClassScores ConfusionMatrix::micro() const {
  std::int64_t right = 0;
  for (std::int64_t of = 0; of < classes_; ++of) right += count(of, of);
  auto all = static_cast<double>(total());
  return scores_of(static_cast<double>(right), all, all);
}

void Perplexity::add(double mean_loss, std::int64_t count, Location where) {
  if (count < 0) fail<Error>(perplexity_name, where, "the number of predictions is at least 0, not {}", count);
  if (count == 0) return;
  total_ += mean_loss * static_cast<double>(count);
  count_ += count;
}

double Perplexity::mean_loss() const {
  return count_ == 0 ? std::numeric_limits<double>::quiet_NaN() : total_ / static_cast<double>(count_);
}

double Perplexity::value() const { return std::exp(mean_loss()); }

void AUROC::add(const Tensor& scores, const Tensor& y, Location where) {
  if (!scores.defined() || !y.defined()) fail<Error>(auroc_name, where, "the scores or y are an undefined tensor");
  NoRecord pause;
  check_floating(auroc_name, scores, where);
  if (scores.shape() != y.shape())
    fail<ShapeError>(auroc_name, where, "the scores {} do not fit y {}", describe(scores), describe(y));
  if (y.dtype() != DType::i32 && y.dtype() != DType::i64 && y.dtype() != DType::boolean)
    fail<DTypeError>(auroc_name, where, "classes are i32, i64 or bool, not {}", describe(y));
  std::vector<double> values = to_if_needed(scores, DType::f64).to_vector<double>();
  std::vector<std::int64_t> classes = to_if_needed(y, DType::i64).to_vector<std::int64_t>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) fail<Error>(auroc_name, where, "a score is NaN");
    if (classes[i] != 0 && classes[i] != 1)
      fail<IndexError>(auroc_name, where, "class {} is neither 0 nor 1", classes[i]);
  }
  for (std::size_t i = 0; i < values.size(); ++i) (classes[i] == 1 ? positive_ : negative_).push_back(values[i]);
}

double AUROC::value() const {
  if (positive_.empty() || negative_.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sorted = negative_;
  std::sort(sorted.begin(), sorted.end());
  double pairs = 0;
  for (double score : positive_) {
    auto [below, above] = std::equal_range(sorted.begin(), sorted.end(), score);
    pairs += static_cast<double>(below - sorted.begin()) + 0.5 * static_cast<double>(above - below);
  }
  return pairs / (static_cast<double>(positive_.size()) * static_cast<double>(negative_.size()));
}

template <class Token>
void BLEU::add_tokens(std::span<const Token> candidate, const std::vector<std::span<const Token>>& references,
                      Location where) {
  SentenceCounts counts = counts_of(candidate, references, where);
  for (std::size_t n = 0; n < right_.size(); ++n) {
    right_[n] += counts.right[n];
    all_[n] += counts.all[n];
  }
  candidate_length_ += counts.candidate_length;
  reference_length_ += counts.reference_length;
}

void BLEU::add(const Tokens& candidate, std::span<const Tokens> references, Location where) {
  add_tokens<std::string>(candidate, {references.begin(), references.end()}, where);
}

void BLEU::add(std::span<const std::int64_t> candidate, std::span<const TokenIndices> references, Location where) {
  add_tokens<std::int64_t>(candidate, {references.begin(), references.end()}, where);
}

void BLEU::add(std::span<const std::int64_t> candidate, std::span<const std::int64_t> reference, Location where) {
  add_tokens<std::int64_t>(candidate, {reference}, where);
}

BLEUScore BLEU::result() const {
  BLEUScore result{.candidate_length = candidate_length_, .reference_length = reference_length_};
  double logarithms = 0, smoothed = 1;
  for (std::size_t n = 0; n < right_.size(); ++n) {
    auto right = static_cast<double>(right_[n]), all = static_cast<double>(all_[n]);
    if (options_.smoothing == BLEUSmoothing::add_one && n > 0) {
      right += 1;
      all += 1;
    }
    double precision = ratio(right, all);
    if (options_.smoothing == BLEUSmoothing::exponential && precision == 0 && all > 0)
      precision = 1 / ((smoothed *= 2) * all);
    result.precisions[n] = 100 * precision;
    logarithms += std::log(precision) / static_cast<double>(right_.size());
  }
  if (candidate_length_ == 0) return result;
  double shortage = static_cast<double>(reference_length_) / static_cast<double>(candidate_length_);
  result.brevity_penalty = std::min(1.0, std::exp(1 - shortage));
  if (right_[0] > 0) result.score = 100 * result.brevity_penalty * std::exp(logarithms);
  return result;
}

}  // namespace reel::nn::inline training
