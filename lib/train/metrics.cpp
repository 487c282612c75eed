#include <reel/train/metrics.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <new>
#include <numeric>
#include <utility>

#include <reel/no_record.h>
#include <reel/ops/create.h>
#include <reel/ops/reduce.h>

#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../ops/if_needed.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char *confusion_name = "ConfusionMatrix", *perplexity_name = "Perplexity", *bleu_name = "BLEU";

constexpr std::int64_t most_classes = 1 << 20;

double ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }

ClassScores scores_of(double right, double predicted, double actual) {
  return {ratio(right, predicted), ratio(right, actual), ratio(2 * right, predicted + actual)};
}

std::map<BLEU::Tokens, std::int64_t> ngrams_of(const BLEU::Tokens& tokens, std::size_t n) {
  std::map<BLEU::Tokens, std::int64_t> counts;
  for (std::size_t i = 0; i + n <= tokens.size(); ++i) {
    auto first = tokens.begin() + static_cast<std::ptrdiff_t>(i);
    ++counts[BLEU::Tokens(first, first + static_cast<std::ptrdiff_t>(n))];
  }
  return counts;
}

}  // namespace

ConfusionMatrix::ConfusionMatrix(std::int64_t classes, Location where) : classes_(classes) {
  if (classes < 1) fail<Error>(confusion_name, where, "there must be at least one class, not {}", classes);
  if (classes > most_classes)
    fail<Error>(confusion_name, where, "{} classes are more than the {} whose pairs can be counted", classes,
                most_classes);
  try {
    counts_.resize(static_cast<std::size_t>(classes * classes));
  } catch (const std::bad_alloc&) {
    fail_for_memory(confusion_name, where);
  }
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

void BLEU::add(const Tokens& candidate, std::span<const Tokens> references, Location where) {
  if (references.empty()) fail<Error>(bleu_name, where, "a sentence needs at least one reference");
  std::int64_t length = std::ssize(candidate), closest = std::ssize(references[0]);
  for (const Tokens& reference : references)
    closest = std::min(closest, std::ssize(reference), [&](std::int64_t a, std::int64_t b) {
      return std::pair(std::abs(a - length), a) < std::pair(std::abs(b - length), b);
    });
  candidate_length_ += length;
  reference_length_ += closest;
  for (std::size_t n = 1; n <= right_.size(); ++n) {
    std::map<Tokens, std::int64_t> most;
    for (const Tokens& reference : references)
      for (const auto& [ngram, count] : ngrams_of(reference, n)) most[ngram] = std::max(most[ngram], count);
    for (const auto& [ngram, count] : ngrams_of(candidate, n)) {
      all_[n - 1] += count;
      auto found = most.find(ngram);
      if (found != most.end()) right_[n - 1] += std::min(count, found->second);
    }
  }
}

BLEUScore BLEU::result() const {
  BLEUScore result{.candidate_length = candidate_length_, .reference_length = reference_length_};
  double logarithms = 0;
  for (std::size_t n = 0; n < right_.size(); ++n) {
    double precision = ratio(static_cast<double>(right_[n]), static_cast<double>(all_[n]));
    result.precisions[n] = 100 * precision;
    logarithms += std::log(precision) / static_cast<double>(right_.size());
  }
  if (candidate_length_ == 0) return result;
  double shortage = static_cast<double>(reference_length_) / static_cast<double>(candidate_length_);
  result.brevity_penalty = std::min(1.0, std::exp(1 - shortage));
  result.score = 100 * result.brevity_penalty * std::exp(logarithms);
  return result;
}

}  // namespace reel::nn
