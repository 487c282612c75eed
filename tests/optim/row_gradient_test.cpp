#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/random.h>
#include <reel/tape.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>

#include "catch.h"

using namespace reel;

namespace {

constexpr std::int64_t count = 50, size = 3;

Tensor new_table(DType dtype = f32) {
  manual_seed(4);
  return randn({count, size}, {.dtype = dtype}).requires_grad();
}

Tensor places() { return tensor(std::vector<std::int64_t>{7, 3, -1, 7, 20, 3}, {2, 3}); }

Tensor loss_of(const Tensor& table, bool by_rows) {
  Tensor rows = embedding(table, places(), {.row_gradient = by_rows});
  return sum(square(rows) * reshape(arange(18, {.dtype = table.dtype()}) * 0.25, {2, 3, 3}));
}

void differentiate(const std::function<Tensor()>& loss) {
  Tape tape;
  tape.backward(loss());
}

std::vector<double> values_of(const Tensor& x) { return to(x, f64).to_vector<double>(); }

using MakeOptimiser = std::function<std::unique_ptr<optim::Optimiser>(const Tensor& parameter)>;

}  // namespace

TEST_CASE("a gradient by rows holds the rows that were read, in order and added up") {
  for (DType dtype : {f32, f64, bf16, f16}) {
    Tensor table = new_table(dtype), dense = copy(stop_gradient(table)).requires_grad();
    differentiate([&] { return loss_of(table, true); });
    differentiate([&] { return loss_of(dense, false); });
    RowGradient gradient = table.row_grad();
    CHECK(gradient.rows.to_vector<std::int64_t>() == std::vector<std::int64_t>{3, 7, 20, 49});
    CHECK(gradient.values.dtype() == dtype);
    CHECK(values_of(gradient.values) == values_of(take(dense.grad(), gradient.rows, 0)));
    CHECK(values_of(table.grad()) == values_of(dense.grad()));
    CHECK_FALSE(dense.row_grad().defined());
    table.set_grad({});
    CHECK_FALSE(table.row_grad().defined());
    CHECK_FALSE(table.grad().defined());
  }
}

TEST_CASE("several uses of a table, and several backwards, keep to rows") {
  Tensor table = new_table(f64), dense = copy(stop_gradient(table)).requires_grad();
  for (const Tensor& t : {table, dense}) {
    bool by_rows = t.is(table);
    Tensor more = tensor(std::vector<std::int64_t>{3, 48});
    for (int i = 0; i < 2; ++i)
      differentiate([&] { return loss_of(t, by_rows) + sum(embedding(t, more, {.row_gradient = by_rows})); });
  }
  CHECK(table.row_grad().rows.to_vector<std::int64_t>() == std::vector<std::int64_t>{3, 7, 20, 48, 49});
  std::vector<double> found = values_of(table.grad()), expected = values_of(dense.grad());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-14));
}

TEST_CASE("a gradient by rows that meets a dense one becomes dense") {
  for (DType dtype : {f64, bf16}) {
    Tensor dense = new_table(dtype);
    auto dense_loss = [](const Tensor& t) { return sum(square(t)); };
    differentiate([&] { return loss_of(dense, false) + dense_loss(dense); });
    // Halves are rounded at the end of a backward.
    double margin = dtype == f64 ? 1e-13 : 0.2;
    auto check = [&](const Tensor& table) {
      CHECK_FALSE(table.row_grad().defined());
      std::vector<double> found = values_of(table.grad()), expected = values_of(dense.grad());
      for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(margin));
    };
    Tensor together = new_table(dtype), rows_first = new_table(dtype), dense_first = new_table(dtype);
    differentiate([&] { return loss_of(together, true) + dense_loss(together); });
    check(together);
    differentiate([&] { return loss_of(rows_first, true); });
    differentiate([&] { return dense_loss(rows_first); });
    check(rows_first);
    differentiate([&] { return dense_loss(dense_first); });
    differentiate([&] { return loss_of(dense_first, true); });
    check(dense_first);
  }
}

TEST_CASE("tape.gradient, and a tape around, see a dense gradient of a table") {
  Tensor table = new_table(f64);
  auto both_orders = [&](bool by_rows) {
    Tape outer;
    Tensor first = [&] {
      Tape inner;
      return inner.gradient(loss_of(table, by_rows), table);
    }();
    return std::pair(first, outer.gradient(sum(square(first)), table));
  };
  auto [first, second] = both_orders(true);
  auto [dense_first, dense_second] = both_orders(false);
  std::vector<double> expected = values_of(dense_first);
  CHECK(values_of(first) == expected);
  CHECK(values_of(second) == values_of(dense_second));
  Tape tape;
  CHECK(values_of(tape.gradient(loss_of(table, true), table)) == expected);
}

TEST_CASE("the table of a computed tensor has a dense gradient") {
  Tensor table = new_table(f64), dense = new_table(f64);
  differentiate([&] { return loss_of(table * 2, true); });
  differentiate([&] { return loss_of(dense * 2, false); });
  CHECK_FALSE(table.row_grad().defined());
  CHECK(values_of(table.grad()) == values_of(dense.grad()));
}

TEST_CASE("no indices give no rows, and a step then changes nothing") {
  Tensor table = new_table();
  std::vector<float> before = table.to_vector<float>();
  optim::SGD sgd({table}, {.learning_rate = 1});
  differentiate([&] { return sum(embedding(table, zeros({0}, {.dtype = i64}), {.row_gradient = true})); });
  CHECK(table.row_grad().rows.numel() == 0);
  CHECK(values_of(table.grad()) == std::vector<double>(count * size, 0));
  sgd.step();
  CHECK(table.to_vector<float>() == before);
}

TEST_CASE("optimisers change the rows as a dense gradient would, and no other bit") {
  const std::pair<const char*, MakeOptimiser> optimisers[] = {
      {"SGD",
       [](auto& p) { return std::make_unique<optim::SGD>(std::vector{p}, optim::SGDOptions{.learning_rate = 0.1}); }},
      {"momentum",
       [](auto& p) {
         return std::make_unique<optim::SGD>(
             std::vector{p},
             optim::SGDOptions{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
       }},
      {"Adam",
       [](auto& p) {
         return std::make_unique<optim::Adam>(std::vector{p},
                                              optim::AdamOptions{.learning_rate = 0.1, .weight_decay = 0.01});
       }},
      {"amsgrad",
       [](auto& p) {
         return std::make_unique<optim::Adam>(std::vector{p}, optim::AdamOptions{.beta2 = 0.5, .amsgrad = true});
       }},
      {"Adagrad",
       [](auto& p) {
         return std::make_unique<optim::Adagrad>(std::vector{p},
                                                 optim::AdagradOptions{.rate_decay = 0.1, .initial_sum = 0.2});
       }},
  };
  for (const auto& [name, make] : optimisers)
    for (DType dtype : {f32, f64}) {
      CAPTURE(name, name_of(dtype));
      Tensor table = new_table(dtype), dense = new_table(dtype), before = copy(stop_gradient(table));
      auto by_rows = make(table), whole = make(dense);
      for (int step = 0; step < 3; ++step) {
        differentiate([&] { return loss_of(table, true); });
        differentiate([&] { return loss_of(dense, false); });
        CHECK(table.row_grad().defined());
        by_rows->step();
        whole->step();
        by_rows->zero_grad();
        whole->zero_grad();
        CHECK_FALSE(table.row_grad().defined());
      }
      // Every step has the rows of the first, so that lazy momentum equals the dense one.
      for (std::int64_t row = 0; row < count; ++row) {
        bool touched = row == 3 || row == 7 || row == 20 || row == 49;
        CHECK(values_of(select(table, 0, row)) == values_of(select(touched ? dense : before, 0, row)));
      }
    }
}

TEST_CASE("sparse products, bags and sparse layers give gradients by rows that equal dense ones") {
  manual_seed(11);
  Tensor drawn = randn({6, count}, {.dtype = f64});
  CSRMatrix matrix = csr_from_dense(where(drawn > 1.5, drawn, 0)),
            flat = csr_from_dense(where(transpose(drawn) > 1.5, transpose(drawn), 0));
  Tensor weights = arange(6, {.dtype = f64}), bags = places();
  auto weighted = [](const Tensor& y) {
    return sum(square(y) * reshape(arange(y.numel(), {.dtype = f64}), y.shape()));
  };
  using Loss = std::function<Tensor(const Tensor& table, bool by_rows)>;
  const std::pair<const char*, Loss> losses[] = {
      {"a product", [&](auto& t, bool by_rows) { return weighted(matmul(matrix, t, {.row_gradient = by_rows})); }},
      {"a transposed product",
       [&](auto& t, bool by_rows) { return weighted(matmul(flat, t, {.transposed = true, .row_gradient = by_rows})); }},
      {"sums of bags",
       [&](auto& t, bool by_rows) {
         return weighted(embedding_bag(
             t, bags, {.mode = BagMode::sum, .per_sample_weights = reshape(weights, {2, 3}), .row_gradient = by_rows}));
       }},
      {"means of bags",
       [&](auto& t, bool by_rows) {
         return weighted(embedding_bag(
             t, reshape(bags, {-1}), {.offsets = tensor(std::vector<std::int64_t>{0, 2, 2}), .row_gradient = by_rows}));
       }},
  };
  const std::pair<const char*, MakeOptimiser> optimisers[] = {
      {"SGD",
       [](auto& p) { return std::make_unique<optim::SGD>(std::vector{p}, optim::SGDOptions{.learning_rate = 1e-3}); }},
      {"Adagrad", [](auto& p) { return std::make_unique<optim::Adagrad>(std::vector{p}, optim::AdagradOptions{}); }},
      {"Adam", [](auto& p) { return std::make_unique<optim::Adam>(std::vector{p}, optim::AdamOptions{}); }},
  };
  for (const auto& [loss_name, loss] : losses)
    for (const auto& [name, make] : optimisers) {
      CAPTURE(loss_name, name);
      Tensor table = new_table(f64), dense = new_table(f64);
      auto by_rows = make(table), whole = make(dense);
      for (int step = 0; step < 3; ++step) {
        differentiate([&] { return loss(table, true); });
        differentiate([&] { return loss(dense, false); });
        RowGradient gradient = table.row_grad();
        REQUIRE(gradient.defined());
        CHECK(gradient.rows.numel() < count);
        CHECK_FALSE(dense.row_grad().defined());
        CHECK(max(abs(table.grad() - dense.grad())).item() <= 1e-9 * max(abs(dense.grad())).item());
        by_rows->step();
        whole->step();
        by_rows->zero_grad();
        whole->zero_grad();
        // Rows without a gradient are left alone, which a dense step of each leaves alone, too: their moments are 0.
        CHECK(max(abs(table - dense)).item() <= 1e-9);
      }
      Tape tape;
      CHECK(max(abs(tape.gradient(loss(table, true), table))).item() > 0);
    }
}

TEST_CASE("the largest elements of bags give a dense gradient") {
  Tensor table = new_table(f64);
  differentiate([&] { return sum(embedding_bag(table, places(), {.mode = BagMode::max, .row_gradient = true})); });
  CHECK_FALSE(table.row_grad().defined());
  CHECK(sum(table.grad()).item() == 2 * size);
}

TEST_CASE("a gradient by rows is clipped as a dense one") {
  for (bool is_held : {false, true}) {
    Tensor table = new_table(f64), dense = new_table(f64);
    differentiate([&] { return loss_of(table, true); });
    differentiate([&] { return loss_of(dense, false); });
    RowGradient held = is_held ? table.row_grad() : RowGradient{};
    std::vector<double> before = is_held ? values_of(held.values) : std::vector<double>();
    CHECK(optim::clip_grad_norm({table}, 0.5) == Approx(optim::clip_grad_norm({dense}, 0.5)));
    CHECK(table.row_grad().defined());
    std::vector<double> found = values_of(table.grad()), expected = values_of(dense.grad());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]));
    if (is_held) CHECK(values_of(held.values) == before);
  }
}

TEST_CASE("a gradient that nobody else holds is clipped where it lies") {
  for (bool by_rows : {false, true}) {
    Tensor table = new_table();
    differentiate([&] { return loss_of(table, by_rows); });
    auto place = [&] { return (by_rows ? table.row_grad().values : table.grad()).body().data; };
    const void* before = place();
    optim::clip_grad_norm({table}, 0.5);
    CHECK(place() == before);
  }
}

TEST_CASE("an embedding of a network may have its gradient by rows") {
  nn::Embedding embedding(count, size, {.row_gradient = true}), dense(count, size);
  for (nn::Embedding* one : {&embedding, &dense}) differentiate([&] { return sum((*one)(places())); });
  CHECK(embedding.table.row_grad().defined());
  CHECK_FALSE(dense.table.row_grad().defined());
}

TEST_CASE("a step by rows takes no longer for a larger table") {
  using Clock = std::chrono::steady_clock;
  auto best_time = [](std::int64_t rows) {
    Tensor table = zeros({rows, 8}).requires_grad();
    optim::SGD sgd({table}, {.learning_rate = 0.1});
    Tensor indices = arange(16);
    double best = 1e9;
    for (int trial = 0; trial < 20; ++trial) {
      Clock::time_point start = Clock::now();
      differentiate([&] { return sum(embedding(table, indices, {.row_gradient = true})); });
      sgd.step();
      sgd.zero_grad();
      best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
    }
    return best;
  };
  // A dense gradient of the large one takes some 10 ms, a step by rows some 50 µs.
  CHECK(best_time(1'000'000) < 10 * best_time(100) + 1e-3);
}
