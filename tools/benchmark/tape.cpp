#include <reel/reel.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "cases.h"

namespace reel_bench {
namespace {

using namespace reel;
using Clock = std::chrono::steady_clock;

double nanoseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::nano>(to - from).count();
}

// What reading the clock twice takes, which matters where ten entries are timed.
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

// What one record, backward and free of a chain take, all operands with gradients.
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

// A million entries on so many tapes, one after the other. The additions save nothing; each multiplication saves a tensor
// that nothing else keeps, some 400 bytes, so that a million of them are bound by the memory.
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

}  // namespace

std::vector<Case> tape() {
  return {
      {"tape", "record_10", operations, 50, chain<false, 10, &Phases::record>},
      {"tape", "record_1000", operations, 50, chain<false, 1000, &Phases::record>},
      {"tape", "record_1000000", operations, 50, chain<false, operations, &Phases::record>},
      {"tape", "backward_10", operations, 60, chain<false, 10, &Phases::backward>},
      {"tape", "backward_1000", operations, 60, chain<false, 1000, &Phases::backward>},
      {"tape", "backward_1000000", operations, 60, chain<false, operations, &Phases::backward>},
      {"tape", "free_10", operations, 20, chain<false, 10, &Phases::free>},
      {"tape", "free_1000", operations, 20, chain<false, 1000, &Phases::free>},
      {"tape", "free_1000000", operations, 20, chain<false, operations, &Phases::free>},
      {"tape", "saving_record_10", operations, 50, chain<true, 10, &Phases::record>},
      {"tape", "saving_record_1000", operations, 50, chain<true, 1000, &Phases::record>},
      {"tape", "saving_record_1000000", operations, 50, chain<true, operations, &Phases::record>},
      {"tape", "saving_backward_10", operations, 60, chain<true, 10, &Phases::backward>},
      {"tape", "saving_backward_1000", operations, 60, chain<true, 1000, &Phases::backward>},
      {"tape", "saving_backward_1000000", operations, 60, chain<true, operations, &Phases::backward>},
      {"tape", "saving_free_10", operations, 20, chain<true, 10, &Phases::free>},
      {"tape", "saving_free_1000", operations, 20, chain<true, 1000, &Phases::free>},
      {"tape", "saving_free_1000000", operations, 20, chain<true, operations, &Phases::free>},
      {"tape", "weight_at_once_1", 200, 4100, weight_gradient<false, 1, 128>},
      {"tape", "weight_deferred_1", 200, 2600, weight_gradient<true, 1, 128>},
      {"tape", "weight_at_once_8", 200, 0, weight_gradient<false, 8, 512>},
      {"tape", "weight_deferred_8", 200, 0, weight_gradient<true, 8, 512>},
  };
}

}  // namespace reel_bench
