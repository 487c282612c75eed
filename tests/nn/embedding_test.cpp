#include <reel/debug/gradcheck.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

std::vector<float> row_of(const Tensor& x, std::int64_t row) { return copy(x(row)).to_vector<float>(); }

}  // namespace

TEST_CASE("the padding of an Embedding starts at 0, gets no gradient, and gives what stands in its row") {
  for (bool row_gradient : {false, true})
    for (std::int64_t padding : {1, -3}) {
      CAPTURE(row_gradient, padding);
      nn::Embedding layer(4, 2, {.row_gradient = row_gradient, .padding_index = padding});
      CHECK(row_of(layer.table, 1) == std::vector<float>{0, 0});
      Tensor indices = tensor<std::int64_t>({{0, 1, 3}, {1, -3, 0}});
      optim::SGD sgd(layer.parameters(), {.learning_rate = 1});
      Tensor before = copy(stop_gradient(layer.table));
      Tape tape;
      tape.backward(sum(layer(indices)));
      sgd.step();
      CHECK(row_of(layer.table, 1) == std::vector<float>{0, 0});
      CHECK(row_of(layer.table, 2) == row_of(before, 2));
      CHECK(layer.table(0, 0).item() == Approx(before(0, 0).item() - 2));
      CHECK(layer.table(3, 1).item() == Approx(before(3, 1).item() - 1));
      NoRecord pause;
      fill_(select(layer.table, 0, 1), 7);
      CHECK(row_of(layer(tensor<std::int64_t>({1})), 0) == std::vector<float>{7, 7});
    }
}

TEST_CASE("an Embedding's gradient is the same as a table and as rows") {
  manual_seed(1);
  nn::Embedding dense(5, 3), sparse(5, 3, {.row_gradient = true});
  sparse.table = copy(stop_gradient(dense.table)).requires_grad();
  Tensor indices = tensor<std::int64_t>({0, 4, 4, -5});
  for (nn::Embedding* layer : {&dense, &sparse}) {
    optim::SGD sgd(layer->parameters(), {.learning_rate = 0.1});
    Tape tape;
    tape.backward(sum(square((*layer)(indices))));
    sgd.step();
  }
  CHECK(max(abs(dense.table - sparse.table)).item() < 1e-6);
}

TEST_CASE("an Embedding takes an initialiser, and refuses a padding that is no symbol") {
  CHECK(min(nn::Embedding(3, 2, {.initialiser = nn::constant(4)}).table).item() == 4);
  CHECK_THAT(error_of<IndexError>([] { nn::Embedding(3, 2, {.padding_index = 3}); }),
             contains("Embedding: the padding index 3 is none of 3 symbols"));
}

TEST_CASE("EmbeddingBag brings rows of its table together") {
  Tensor indices = tensor<std::int64_t>({{0, 2}, {3, 3}}), line = tensor<std::int64_t>({0, 2, 3, 3}),
         offsets = tensor<std::int64_t>({0, 2, 4});
  for (BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max}) {
    manual_seed(2);
    nn::EmbeddingBag bag(4, 2, {.mode = mode});
    Tensor rows = embedding(bag.table, indices), expected = mode == BagMode::sum    ? sum(rows, {1})
                                                            : mode == BagMode::mean ? mean(rows, {1})
                                                                                    : max(rows, 1);
    CHECK(max(abs(bag(indices) - expected)).item() < 1e-6);
    Tensor y = bag(line, offsets);
    CHECK(y.shape() == Shape{3, 2});
    CHECK(max(abs(slice(y, 0, 0, 2) - expected)).item() < 1e-6);
    CHECK(row_of(y, 2) == std::vector<float>{0, 0});
  }
  nn::EmbeddingBag weighed(4, 2, {.mode = BagMode::sum});
  Tensor factors = tensor<float>({{2, 0}, {1, -1}});
  Tensor y = weighed(indices, {}, factors);
  CHECK(y(0, 1).item() == Approx(2 * weighed.table(0, 1).item()));
  CHECK(y(1, 0).item() == 0);
}

TEST_CASE("EmbeddingBag's gradient reaches the rows that were taken") {
  nn::EmbeddingBag bag(4, 2);
  Tape tape;
  tape.backward(sum(bag(tensor<std::int64_t>({{0, 2, 2, 2}}))));
  CHECK(bag.table.grad().to_vector<float>() == std::vector<float>{0.25, 0.25, 0, 0, 0.75, 0.75, 0, 0});
}

TEST_CASE("EmbeddingBag names itself, the caller's line and what does not fit") {
  CHECK_THAT(error_of<ShapeError>([] { nn::EmbeddingBag(3, 0); }), contains("EmbeddingBag: sizes must be positive"));
  nn::EmbeddingBag bag(3, 2);
  int line = __LINE__ + 1;
  std::string text = error_of<IndexError>([&] { bag(tensor<std::int64_t>({{3}})); });
  CHECK_THAT(text, contains(to_string(Location{__FILE__, line})));
  CHECK_THROWS_AS(bag(tensor<std::int64_t>({{0}}), {}, ones({1, 1})), Error);  // weights of a mean
}

TEST_CASE("Bilinear is a sum over both inputs' elements") {
  manual_seed(3);
  nn::Bilinear layer(3, 4, 5);
  CHECK(layer.weight.shape() == Shape{5, 3, 4});
  CHECK(max(abs(layer.weight)).item() <= 1 / std::sqrt(3.f));
  Tensor a = randn({2, 6, 3}), b = randn({2, 6, 4});
  Tensor expected = einsum("nmi,oij,nmj->nmo", {a, layer.weight, b}) + layer.bias;
  CHECK(layer(a, b).shape() == Shape{2, 6, 5});
  CHECK(max(abs(layer(a, b) - expected)).item() < 1e-5);
  CHECK(max(abs(layer(a(0, 0), b(0, 0)) - expected(0, 0))).item() < 1e-5);
  CHECK(layer(ones({0, 3}), ones({0, 4})).shape() == Shape{0, 5});
  CHECK(nn::Bilinear(3, 4, 5, {.bias = false}).parameters().size() == 1);
}

TEST_CASE("Bilinear's gradient and its gradient's gradient agree with differences") {
  manual_seed(4);
  nn::Bilinear layer(2, 3, 2, {.dtype = f64});
  auto f = [&](std::span<const Tensor> inputs) { return tanh(layer(inputs[0], inputs[1])); };
  std::vector<Tensor> inputs{randn({3, 2}, {.dtype = f64}), randn({3, 3}, {.dtype = f64})};
  auto report = debug::gradcheck(f, inputs);
  INFO(report.text);
  CHECK(report);
  auto second = debug::gradgradcheck(f, inputs);
  INFO(second.text);
  CHECK(second);
}

TEST_CASE("Bilinear names itself, the caller's line and what does not fit") {
  CHECK_THAT(error_of<ShapeError>([] { nn::Bilinear(0, 3, 4); }),
             contains("Bilinear: sizes must be positive, not in_1 0, in_2 3, out 4"));
  nn::Bilinear layer(2, 3, 4);
  Tensor a = ones({5, 2}), b = ones({6, 3});
  int line = __LINE__ + 1;
  std::string text = error_of<ShapeError>([&] { layer(a, b); });
  CHECK(text ==
        "Bilinear: a (5, 2) and b (6, 3) do not end in axes of sizes 2 and 3 behind the same others, as the weight "
        "(4, 2, 3) needs; at " +
            to_string(Location{__FILE__, line}));
  CHECK_THROWS_AS(layer(a, Tensor()), Error);
}

TEST_CASE("an EmbeddingBag and a Linear of a sparse matrix get gradients by rows, and equal dense layers") {
  manual_seed(8);
  Tensor x = tensor<float>({{0, 2, 0, 0, 1}, {0, 0, 0, 0, 0}, {0, 1, 0, 0, 0}});
  CSRMatrix sparse = csr_from_dense(x);
  for (bool bias : {true, false})
    for (bool row_gradient : {false, true}) {
      CAPTURE(bias, row_gradient);
      nn::Linear layer(5, 3, {.bias = bias, .row_gradient = row_gradient});
      nn::EmbeddingBag bag(5, 3, {.mode = BagMode::sum, .row_gradient = row_gradient});
      bag.table = copy(stop_gradient(layer.weight)).requires_grad();
      Tensor words = sparse.column_indices(), starts = slice(sparse.row_offsets(), 0, 0, -1);
      Tensor dense = layer(x), from_bag = bag(words, starts, sparse.values());
      if (bias) from_bag = from_bag + layer.bias;
      CHECK(max(abs(layer(sparse) - dense)).item() < 1e-6);
      CHECK(max(abs(from_bag - dense)).item() < 1e-6);
      auto gradient_of = [&](auto loss) {
        layer.zero_grad();
        Tape tape;
        tape.backward(sum(square(loss())));
        return copy(layer.weight.grad());
      };
      Tensor by_sparse = gradient_of([&] { return layer(sparse); });
      CHECK(layer.weight.row_grad().defined() == row_gradient);
      CHECK(max(abs(by_sparse - gradient_of([&] { return layer(x); }))).item() < 1e-5);
      Tape tape;
      tape.backward(sum(square(bag(words, starts, sparse.values()))));
      CHECK(bag.table.row_grad().defined() == row_gradient);
    }
}

TEST_CASE("hooks of a Linear see the values of a sparse matrix") {
  nn::Linear layer(4, 2);
  CSRMatrix sparse = csr_from_dense(tensor<float>({{0, 2, 0, 3}}));
  Tensor twice = layer(sparse.with_values(sparse.values() * 2));
  auto hook = layer.before_forward([](std::span<Tensor> tensors) { tensors[0] = tensors[0] * 2; });
  CHECK(layer(sparse).to_vector<float>() == twice.to_vector<float>());
}

TEST_CASE("a Linear refuses a sparse matrix that does not fit") {
  nn::Linear layer(4, 2);
  CHECK_THAT(error_of<ShapeError>([&] {
               layer(csr_from_dense(zeros({2, 3})));
             }),
             contains("Linear: the sparse x (2, 3) does not have 4 columns, as the weight (4, 2) needs"));
  CHECK_THAT(error_of<Error>([&] { layer(CSRMatrix()); }), contains("Linear: the sparse matrix is undefined"));
}
