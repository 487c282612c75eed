#include <cmath>
#include <limits>
#include <vector>

#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>
#include <reel/train/best_weights.h>

#include "catch.h"

using namespace reel;
using reel_test::contains;
using reel_test::error_of;

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
}
