#include <reel/reel.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <vector>

#include "cases.h"

namespace reel_bench {
namespace {

using namespace reel;
using Clock = std::chrono::steady_clock;

double nanoseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::nano>(to - from).count();
}

// The time of reading the clock twice, which matters when ten entries are timed.
double clock_cost() {
  static const double cost = [] {
    std::vector<double> costs;
    for (int i = 0; i < 1001; ++i) {
      auto start = Clock::now();
      costs.push_back(nanoseconds(start, Clock::now()));
    }
    std::nth_element(costs.begin(), costs.begin() + 500, costs.end());
    return costs[500];
  }();
  return cost;
}

double since(Clock::time_point start) { return nanoseconds(start, Clock::now()) - clock_cost(); }

[[gnu::noinline]] Tensor measured_record(Tensor y, const Tensor& a, const Tensor& b, int entries, bool saves) {
  if (saves)
    for (int i = 0; i < entries / 2; ++i) {
      y = y * a;
      y = y + b;
    }
  else
    for (int i = 0; i < entries / 2; ++i) {
      y = y + a;
      y = y + b;
    }
  return y;
}

[[gnu::noinline]] void measured_backward(Tape& tape, const Tensor& y, const Tensor& seed) {
  tape.backward(y, {.seed = seed});
}

// Times one record, backward and free of a chain whose operands all have gradients.
struct Phases {
  double record = 0, backward = 0, free = 0;
};

Phases pass(const Tensor& x, const Tensor& a, const Tensor& b, const Tensor& seed, int entries, bool saves,
            bool differentiate) {
  Phases took;
  Clock::time_point start;
  {
    Tape tape({.warn_bytes = 0});
    start = Clock::now();
    Tensor y = measured_record(x, a, b, entries, saves);
    took.record = since(start);
    if (differentiate) {
      start = Clock::now();
      measured_backward(tape, y, seed);
      took.backward = since(start);
    }
    start = Clock::now();
  }
  took.free = since(start);
  for (const Tensor& parameter : {x, a, b}) parameter.set_grad({});
  return took;
}

constexpr int operations = 1'000'000;

// A million entries on a number of successive tapes. The additions save nothing; each multiplication saves a tensor
// without other handles, some 400 bytes, so that a million of them are bound by memory.
template <bool saves, int entries, double Phases::*phase>
double chain() {
  constexpr std::int64_t size = 64;
  static const Tensor x = ones({size}).requires_grad(), a = ones({size}).requires_grad(),
                      b = ones({size}).requires_grad(), seed = ones({size});
  double total = 0;
  for (int i = 0; i < operations / entries; ++i)
    total += pass(x, a, b, seed, entries, saves, phase != &Phases::free).*phase;
  return total;
}

// (rows, size) × (size, size), then tanh, 200 times; both with gradients.
template <bool deferred, std::int64_t rows, std::int64_t size>
double weight_gradient() {
  static const Tensor x = rand({rows, size}).requires_grad(),
                      w = (randn({size, size}) * (1 / std::sqrt(size))).requires_grad(), seed = ones({rows, size});
  auto start = Clock::now();
  {
    Tape tape({.deferred_products = deferred});
    Tensor h = x;
    for (int i = 0; i < 200; ++i) h = tanh(matmul(h, w));
    measured_backward(tape, h, seed);
  }
  double took = since(start);
  x.set_grad({});
  w.set_grad({});
  return took;
}

// A chain of a thousand ops, forward and backward, with detect_anomaly and without.
template <bool watched>
double anomaly() {
  static const Tensor x = ones({64}).requires_grad(), a = ones({64}).requires_grad(), b = ones({64}).requires_grad(),
                      seed = ones({64});
  std::optional<debug::AnomalyScope> scope;
  if (watched) scope.emplace(debug::AnomalyOptions{});
  Phases took = pass(x, a, b, seed, 1000, true, true);
  return took.record + took.backward;
}

}  // namespace

std::vector<Case> tape() {
  return {
      {"tape", "record_1000", operations, 0, chain<false, 1000, &Phases::record>},
      {"tape", "record_10", operations, 1.3, chain<false, 10, &Phases::record>, "record_1000"},
      {"tape", "record_1000000", operations, 1.3, chain<false, operations, &Phases::record>, "record_1000"},
      {"tape", "backward_1000", operations, 0, chain<false, 1000, &Phases::backward>},
      {"tape", "backward_10", operations, 1.3, chain<false, 10, &Phases::backward>, "backward_1000"},
      {"tape", "backward_1000000", operations, 1.3, chain<false, operations, &Phases::backward>, "backward_1000"},
      {"tape", "free_1000", operations, 0, chain<false, 1000, &Phases::free>},
      {"tape", "free_10", operations, 1.3, chain<false, 10, &Phases::free>, "free_1000"},
      {"tape", "free_1000000", operations, 1.3, chain<false, operations, &Phases::free>, "free_1000"},
      {"tape", "saving_record_1000", operations, 0, chain<true, 1000, &Phases::record>},
      {"tape", "saving_record_10", operations, 1.3, chain<true, 10, &Phases::record>, "saving_record_1000"},
      {"tape", "saving_record_1000000", operations, 1.3, chain<true, operations, &Phases::record>,
       "saving_record_1000"},
      {"tape", "saving_backward_1000", operations, 0, chain<true, 1000, &Phases::backward>},
      {"tape", "saving_backward_10", operations, 1.3, chain<true, 10, &Phases::backward>, "saving_backward_1000"},
      {"tape", "saving_backward_1000000", operations, 1.3, chain<true, operations, &Phases::backward>,
       "saving_backward_1000"},
      {"tape", "saving_free_1000", operations, 0, chain<true, 1000, &Phases::free>},
      {"tape", "saving_free_10", operations, 1.3, chain<true, 10, &Phases::free>, "saving_free_1000"},
      {"tape", "saving_free_1000000", operations, 1.3, chain<true, operations, &Phases::free>, "saving_free_1000"},
      {"tape", "weight_at_once_1_128", 200, 0, weight_gradient<false, 1, 128>},
      {"tape", "weight_deferred_1_128", 200, 1, weight_gradient<true, 1, 128>, "weight_at_once_1_128"},
      {"tape", "weight_at_once_1_512", 200, 0, weight_gradient<false, 1, 512>},
      {"tape", "weight_deferred_1_512", 200, 1, weight_gradient<true, 1, 512>, "weight_at_once_1_512"},
      {"tape", "weight_at_once_8_512", 200, 0, weight_gradient<false, 8, 512>},
      {"tape", "weight_deferred_8_512", 200, 1, weight_gradient<true, 8, 512>, "weight_at_once_8_512"},
      {"tape", "anomaly_off", 1000, 0, anomaly<false>},
      {"tape", "anomaly_on", 1000, 2, anomaly<true>, "anomaly_off"},
  };
}

}  // namespace reel_bench
