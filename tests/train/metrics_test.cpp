#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>
#include <reel/train.h>

#include <cmath>
#include <limits>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

Tensor classes(const std::vector<std::int64_t>& values) { return tensor(values); }

train::BLEU::Tokens words(const std::string& text) {
  train::BLEU::Tokens tokens(1);
  for (char c : text)
    if (c == ' ')
      tokens.emplace_back();
    else
      tokens.back() += c;
  return tokens;
}

}  // namespace

TEST_CASE("a confusion matrix counts logits and classes over batches") {
  train::ConfusionMatrix matrix(3);
  CHECK(matrix.accuracy() == 0);
  // Rows of logits whose largest elements are 0, 2 and 1.
  matrix.add(tensor<float>({{3, 1, 2}, {0, 0, 1}, {-2, -1, -3}}), classes({0, 1, 1}));
  matrix.add(classes({2, 0, 1, 1}), tensor(std::vector<std::int32_t>{2, 0, 1, 0}));
  CHECK(matrix.total() == 7);
  CHECK(matrix.counts().to_vector<std::int64_t>() == std::vector<std::int64_t>{2, 1, 0, 0, 2, 1, 0, 0, 1});
  CHECK(matrix.count(0, 1) == 1);
  CHECK(matrix.accuracy() == Approx(5.0 / 7));
  const double precisions[] = {1, 2.0 / 3, 0.5}, recalls[] = {2.0 / 3, 2.0 / 3, 1}, f1[] = {0.8, 2.0 / 3, 2.0 / 3};
  for (int i = 0; i < 3; ++i) {
    CAPTURE(i);
    CHECK(matrix.scores(i).precision == Approx(precisions[i]));
    CHECK(matrix.scores(i).recall == Approx(recalls[i]));
    CHECK(matrix.scores(i).f1 == Approx(f1[i]));
  }
  CHECK(matrix.macro().precision == Approx((1 + 2.0 / 3 + 0.5) / 3));
  CHECK(matrix.macro().recall == Approx((2.0 / 3 + 2.0 / 3 + 1) / 3));
  CHECK(matrix.macro().f1 == Approx((0.8 + 4.0 / 3) / 3));
  for (double score : {matrix.micro().precision, matrix.micro().recall, matrix.micro().f1})
    CHECK(score == Approx(5.0 / 7));
}

TEST_CASE("the scores of a binary classifier are those of class 1, and 0 where they would divide by 0") {
  train::ConfusionMatrix matrix(2);
  CHECK(matrix.scores(1).f1 == 0);
  matrix.add(classes({0, 0, 0}), classes({0, 1, 0}));
  CHECK(matrix.scores(1).precision == 0);
  CHECK(matrix.scores(1).recall == 0);
  matrix.add(classes({1, 1, 1}), classes({1, 1, 0}));
  CHECK(matrix.scores(1).precision == Approx(2.0 / 3));
  CHECK(matrix.scores(1).recall == Approx(2.0 / 3));
  CHECK(matrix.scores(1).f1 == Approx(2.0 / 3));
}

TEST_CASE("a confusion matrix takes logits with further axes") {
  train::ConfusionMatrix matrix(2);
  matrix.add(tensor({{{1.f, 0.f, 5.f}, {0.f, 2.f, 7.f}}}), tensor<std::int64_t>({{0, 1, 0}}));
  CHECK(matrix.counts().to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 1, 0, 1});
}

TEST_CASE("a confusion matrix refuses what does not fit, and counts none of it") {
  train::ConfusionMatrix matrix(2);
  CHECK_THAT(error_of<Error>([] { train::ConfusionMatrix(0); }),
             contains("ConfusionMatrix: there must be at least one"));
  CHECK_THAT(error_of<Error>([] { train::ConfusionMatrix(std::int64_t{1} << 32); }), contains("more than the 1048576"));
  CHECK_THAT(error_of<Error>([&] { matrix.add({}, classes({1})); }), contains("an undefined tensor"));
  CHECK_THAT(error_of<ShapeError>([&] {
               matrix.add(zeros({2, 3}), classes({0, 1}));
             }),
             contains("logits of 2 classes are (N, 2, …), not (2, 3) f32"));
  CHECK_THAT(error_of<ShapeError>([&] {
               matrix.add(classes({0}), classes({0, 1}));
             }),
             contains("the prediction (1,) i64 does not fit y (2,) i64"));
  CHECK_THAT(error_of<DTypeError>([&] { matrix.add(classes({0}), ones({1})); }), contains("classes are i32 or i64"));
  CHECK_THAT(error_of<IndexError>([&] {
               matrix.add(classes({1, 2}), classes({1, 1}));
             }),
             contains("class 2 is none of 2"));
  CHECK_THAT(error_of<IndexError>([&] { matrix.scores(-1); }), contains("class -1 is none of 2"));
  CHECK(matrix.total() == 0);
}

TEST_CASE("perplexity is the exponential of the mean loss over all predictions") {
  train::Perplexity perplexity;
  CHECK(std::isnan(perplexity.value()));
  perplexity.add(std::log(8.0), 2);
  perplexity.add(std::log(2.0), 4);
  perplexity.add(100, 0);
  CHECK(perplexity.count() == 6);
  CHECK(perplexity.mean_loss() == Approx((2 * std::log(8.0) + 4 * std::log(2.0)) / 6));
  CHECK(perplexity.value() == Approx(std::pow(8.0 * 8 * 2 * 2 * 2 * 2, 1.0 / 6)));
  CHECK_THAT(error_of<Error>([&] { perplexity.add(1, -1); }), contains("Perplexity: the number of predictions"));
}

TEST_CASE("BLEU clips n-grams by the reference that has most of them") {
  // The example of Papineni et al., section 2.1: "the" is in one reference twice.
  train::BLEU bleu;
  std::vector<train::BLEU::Tokens> references = {words("the cat is on the mat"), words("there is a cat on the mat")};
  bleu.add(words("the the the the the the the"), references);
  train::BLEUScore result = bleu.result();
  CHECK(result.precisions[0] == Approx(100 * 2.0 / 7));
  CHECK(result.precisions[1] == 0);
  CHECK(result.score == 0);
  CHECK(result.reference_length == 7);
}

TEST_CASE("BLEU counts over the corpus, and penalises short candidates") {
  train::BLEU bleu;
  CHECK(bleu.result().score == 0);
  bleu.add(words("a b c d e"), words("a b c d e"));
  CHECK(bleu.result().score == Approx(100));
  CHECK(bleu.result().brevity_penalty == 1);
  bleu.add(words("a b c x"), words("a b c d e f g"));
  train::BLEUScore result = bleu.result();
  CHECK(result.candidate_length == 9);
  CHECK(result.reference_length == 12);
  // 8, 6, 4 and 2 of 9, 7, 5 and 3 n-grams are right.
  const double precisions[] = {8.0 / 9, 6.0 / 7, 4.0 / 5, 2.0 / 3};
  double product = 1;
  for (std::size_t n = 0; n < 4; ++n) {
    CHECK(result.precisions[n] == Approx(100 * precisions[n]));
    product *= precisions[n];
  }
  CHECK(result.brevity_penalty == Approx(std::exp(1 - 12.0 / 9)));
  CHECK(result.score == Approx(100 * std::exp(1 - 12.0 / 9) * std::pow(product, 0.25)));
}

TEST_CASE("of references that are equally close in length, BLEU takes the shorter") {
  train::BLEU bleu;
  std::vector<train::BLEU::Tokens> references = {words("a b c d e f"), words("a b c d"), words("a")};
  bleu.add(words("a b c d e"), references);
  CHECK(bleu.result().reference_length == 4);
  CHECK(bleu.result().brevity_penalty == 1);
  CHECK_THAT(error_of<Error>([&] { bleu.add(words("a"), std::span<const train::BLEU::Tokens>()); }),
             contains("BLEU: a sentence needs at least one reference"));
}

TEST_CASE("BLEU of indices of tokens is that of the tokens") {
  train::BLEU words_of, indices_of;
  words_of.add(words("a b c d e"), words("a b c d f"));
  indices_of.add(train::BLEU::TokenIndices{1, 2, 3, 4, 5}, train::BLEU::TokenIndices{1, 2, 3, 4, 6});
  std::vector<train::BLEU::Tokens> references = {words("a b c x"), words("b c d e f g")};
  std::vector<train::BLEU::TokenIndices> indices = {{1, 2, 3, 9}, {2, 3, 4, 5, 6, 7}};
  words_of.add(words("b c d e"), references);
  indices_of.add(train::BLEU::TokenIndices{2, 3, 4, 5}, indices);
  CHECK(indices_of.result().score == words_of.result().score);
  // 8, 6, 4 and 2 of 9, 7, 5 and 3 n-grams are right.
  CHECK(indices_of.result().score == Approx(100 * std::pow(8.0 / 9 * 6 / 7 * 4 / 5 * 2 / 3, 0.25)));
  CHECK_THAT(
      error_of<Error>([&] { indices_of.add(train::BLEU::TokenIndices{1}, std::vector<train::BLEU::TokenIndices>{}); }),
      contains("BLEU: a sentence needs at least one reference"));
}

TEST_CASE("smoothing keeps BLEU above 0 where no long n-gram is right") {
  // 3, 1, 0 and 0 of 4, 3, 2 and 1 n-grams are right.
  auto result = [](train::BLEUSmoothing smoothing) {
    train::BLEU bleu({.smoothing = smoothing});
    bleu.add(words("a b x d"), words("a b c d"));
    return bleu.result();
  };
  CHECK(result(train::BLEUSmoothing::none).score == 0);
  CHECK(result(train::BLEUSmoothing::exponential).score ==
        Approx(100 * std::pow(3.0 / 4 * 1 / 3 * (1.0 / (2 * 2)) * (1.0 / (4 * 1)), 0.25)));
  CHECK(result(train::BLEUSmoothing::exponential).precisions[3] == Approx(25));
  CHECK(result(train::BLEUSmoothing::add_one).score ==
        Approx(100 * std::pow(3.0 / 4 * (2.0 / 4) * (1.0 / 3) * (1.0 / 2), 0.25)));
  train::BLEU wrong({.smoothing = train::BLEUSmoothing::exponential});
  wrong.add(words("x y"), words("a b"));
  CHECK(wrong.result().score == 0);
}

TEST_CASE("the area under the ROC curve is the share of pairs in order, over batches and with ties") {
  train::AUROC area;
  CHECK(std::isnan(area.value()));
  area.add(tensor<double>({0.1, 0.4}), classes({0, 0}));
  CHECK(std::isnan(area.value()));
  area.add(tensor<double>({0.35, 0.8}), classes({1, 1}));
  // Three of the pairs (0.35, 0.1), (0.35, 0.4), (0.8, 0.1) and (0.8, 0.4) are in order.
  CHECK(area.value() == Approx(0.75));
  CHECK(area.count() == 4);
  // Further pairs: (0.4, 0.1) and (0.4, 0.4), a tie.
  area.add(tensor<double>({0.4}), tensor(std::vector<std::int32_t>{1}));
  CHECK(area.value() == Approx(4.5 / 6));
}

TEST_CASE("the area under the ROC curve is 1, ½ and 0 of perfect, constant and reversed scores") {
  auto of = [](const Tensor& scores, const Tensor& y) {
    train::AUROC area;
    area.add(scores, y);
    return area.value();
  };
  double infinity = std::numeric_limits<double>::infinity();
  Tensor y = tensor<bool>({false, true, true, false});
  CHECK(of(tensor<double>({-infinity, 1, infinity, 0}), y) == 1);
  CHECK(of(ones({4}), y) == 0.5);
  CHECK(of(tensor<double>({2, 1, 0, 3}), y) == 0);
  CHECK(of(ones({2, 2}, {.dtype = DType::bf16}), reshape(y, {2, 2})) == 0.5);
  train::AUROC area;
  CHECK_THAT(error_of<ShapeError>([&] { area.add(ones({3}), y); }), contains("AUROC: the scores (3,) f32 do not fit"));
  CHECK_THAT(error_of<DTypeError>([&] { area.add(ones({4}), ones({4})); }), contains("classes are i32, i64 or bool"));
  CHECK_THAT(error_of<DTypeError>([&] { area.add(classes({1}), classes({1})); }), contains("AUROC"));
  CHECK_THAT(error_of<IndexError>([&] { area.add(ones({1}), classes({2})); }), contains("class 2 is neither 0 nor 1"));
  CHECK_THAT(error_of<Error>([&] { area.add(full({1}, std::nan("")), classes({1})); }), contains("a score is NaN"));
  CHECK_THAT(error_of<Error>([&] { area.add({}, classes({1})); }), contains("undefined"));
  CHECK(area.count() == 0);
}
