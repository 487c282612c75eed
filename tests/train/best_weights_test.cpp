#include <cmath>
#include <fstream>
#include <limits>
#include <vector>

#include <reel/data.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>
#include <reel/train/best_weights.h>

#include "catch.h"
#include "io/folder.h"

using namespace reel;
using namespace reel_test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Net : nn::Module {
  nn::Parameter weight{*this, "weight", {2}, nn::constant(0)};
  nn::Buffer seen{*this, "seen", zeros({}, {.dtype = i64})};

  void set(double value) const {
    NoRecord pause;
    fill_(weight, value);
    fill_(seen, std::isfinite(value) ? value : 0);
  }
  double value() const { return weight.to_vector<float>()[1]; }
};

}  // namespace

TEST_CASE("the weights of the highest score are given back in place, buffers among them") {
  Net net;
  train::BestWeights best(net);
  CHECK(best.empty());
  CHECK(best.score() == -infinity);
  Tensor handle = net.weight;
  std::vector<bool> kept;
  for (auto [value, score] : {std::pair(1, 0.2), {2, 0.5}, {3, 0.5}, {4, 0.1}}) {
    net.set(value);
    kept.push_back(best.offer(score));
  }
  CHECK(kept == std::vector<bool>{true, true, false, false});
  CHECK(best.score() == 0.5);
  CHECK(net.value() == 4);
  best.restore();
  CHECK(net.value() == 2);
  CHECK(net.seen.item() == 2);
  CHECK(handle.is(net.weight));
  CHECK(handle.is_parameter());
}

TEST_CASE("without an offer the weights stay as they are") {
  Net net;
  net.set(5);
  train::BestWeights best(net);
  best.restore();
  CHECK(net.value() == 5);
  CHECK(best.offer(-infinity));
  CHECK_FALSE(best.empty());
}

TEST_CASE("weights or scores of a run that has diverged are not kept") {
  Net net;
  net.set(1);
  train::BestWeights best(net);
  best.offer(1);
  auto said = [&](double value, double score) {
    net.set(value);
    return error_of<train::DivergedError>([&] { best.offer(score); });
  };
  double nan = std::nan("");
  CHECK_THAT(said(nan, 2), contains("train::BestWeights: the weights 'weight' are no longer finite; ") &&
                               contains("best_weights_test.cpp:"));
  CHECK_THAT(said(infinity, 2), contains("no longer finite"));
  CHECK_THAT(said(-infinity, 0), contains("no longer finite"));
  CHECK_THAT(said(2, nan), contains("the score is nan"));
  best.restore();
  CHECK(net.value() == 1);
  CHECK(best.score() == 1);
}

TEST_CASE("keeping and restoring weights leaves nothing on an open tape") {
  Net net;
  train::BestWeights best(net);
  Tape tape;
  best.offer(1);
  best.restore();
  CHECK(tape.size() == 0);
}

TEST_CASE("a loss that is not finite is refused with the caller's line") {
  train::check_loss(0);
  train::check_loss(-1e300);
  for (double loss : {std::nan(""), infinity, -infinity})
    CHECK_THAT(error_of<train::DivergedError>([&] { train::check_loss(loss); }),
               contains("train::check_loss: the loss is ") && contains("best_weights_test.cpp:"));
}

TEST_CASE("a loss that is not finite is refused with the lines that its batch was read from") {
  std::vector<data::Source> sources = {data::Source("a.txt", 1), {}, data::Source("a.txt", 2)};
  train::check_loss(1.5, sources);
  CHECK_THAT(error_of<train::DivergedError>([&] { train::check_loss(std::nan(""), sources); }),
             contains("train::check_loss: the loss is nan for the items from a.txt:1, a.txt:2;") &&
                 contains("best_weights_test.cpp:"));
  sources.clear();
  for (int line = 1; line <= 40; ++line) sources.emplace_back("b.txt", line);
  CHECK_THAT(error_of<train::DivergedError>([&] { train::check_loss(infinity, sources); }),
             contains("b.txt:1, ") && contains(", b.txt:40;"));
}

TEST_CASE("a loss that is not finite is refused with the lines of the file whose numbers are not") {
  struct Batch {
    Tensor x, y;
  };
  std::vector<data::Source> lines;
  for (int line = 1; line <= 40; ++line) lines.emplace_back("sensor.csv", line);
  auto of_item = [](int i) { return i == 6 ? std::nan("") : i == 31 ? infinity : static_cast<double>(i); };
  auto check = [&](auto collate, auto... wanted) {
    data::Loader loader(
        data::transformed(lines, [&](const data::Source& line) { return static_cast<int>(line.line()) - 1; }), collate,
        {.batch_size = 40});
    for (auto& batch : loader) {
      static_cast<void>(batch);
      train::check_loss(1, loader.sources());
      std::string error = error_of<train::DivergedError>([&] { train::check_loss(std::nan(""), loader.sources()); });
      INFO(error);
      CHECK((... && (error.find(wanted) != std::string::npos)));
    }
  };
  auto column = [&](const std::vector<int>& items, auto f) {
    std::vector<double> numbers;
    for (int item : items) numbers.push_back(f(item));
    return reshape(tensor(numbers), {-1, 1, 1});
  };
  auto plain = [](int i) { return static_cast<double>(i); };
  const char* found = "the loss is nan; the batch itself holds NaN or infinity, in rows 6, 31";
  check([&](std::vector<int> items) { return Batch{column(items, of_item), column(items, plain)}; }, found);
  check([&](std::vector<int> items) { return Batch{column(items, plain), column(items, of_item)}; }, found);
  check([&](std::vector<int> items) { return column(items, of_item); }, found);
  check(
      [&](std::vector<int> items) {
        return Batch{column(items, plain), column(items, plain)};
      },
      "if the input is finite, a lower learning rate");
  check([&](std::vector<int> items) { return items; }, "if the input is finite, a lower learning rate");
}

TEST_CASE("a bad line of a table is named by the loss that it spoils") {
  reel_test::InFolder folder;
  {
    std::ofstream out("sensor.csv");
    out << "volume,mass\n";
    for (int i = 1; i <= 64; ++i) out << (i == 37 ? 0 : i) << ',' << (i == 37 ? 0 : 2 * i) << '\n';
  }
  struct Batch {
    Tensor x, y;
  };
  data::Table rows = data::read_csv("sensor.csv");
  auto to_batch = [](std::vector<data::Row> items) {
    std::vector<float> x;
    for (const data::Row& row : items) x.push_back(static_cast<float>(row.number("mass") / row.number("volume")));
    Tensor density = reshape(tensor(x), {-1, 1});
    return Batch{density, zeros_like(density)};
  };
  data::Loader loader(rows, to_batch, {.batch_size = 16, .shuffle = true, .seed = 1});
  int refused = 0;
  for (const Batch& batch : loader) {
    Tensor loss = mse_loss(batch.x, batch.y);
    if (std::isfinite(loss.item())) continue;
    ++refused;
    CHECK_THAT(
        error_of<train::DivergedError>([&] { train::check_loss(loss.item(), loader.sources()); }),
        contains("; the batch itself holds NaN or infinity, in row ") && contains(": the items from sensor.csv:38"));
  }
  CHECK(refused == 1);
}
