#include <reel/reel.h>

#include <chrono>

#include "cases.h"

namespace reel_bench {
namespace {

using namespace reel;
using Clock = std::chrono::steady_clock;

constexpr int operations = 1000;

Tensor chain(Tensor x, const Tensor& a, const Tensor& b) {
  for (int i = 0; i < operations / 2; ++i) {
    x = x * a;
    x = x + b;
  }
  return x;
}

// Instructions are counted inside the functions that are named measured_…: never inlined, and none calls another.
[[gnu::noinline]] Tensor measured_chain(const Tensor& x, const Tensor& a, const Tensor& b) { return chain(x, a, b); }

// Mutable so that all operands can have gradients in one case and none in another.
struct Operands {
  Tensor x = ones({64}), a = ones({64}), b = ones({64}), seed = ones({64});
};

Operands parameters() {
  Operands made;
  made.x.requires_grad();
  made.a.requires_grad();
  made.b.requires_grad();
  return made;
}

[[gnu::noinline]] void measured_step(const Operands& with) {
  Tape tape;
  Tensor y = chain(with.x, with.a, with.b);
  tape.backward(y, {.seed = with.seed});
}

double nanoseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::nano>(to - from).count();
}

double no_tape() {
  static const Operands with;
  auto start = Clock::now();
  Tensor y = measured_chain(with.x, with.a, with.b);
  return nanoseconds(start, Clock::now());
}

double recorded() {
  static const Operands with = parameters();
  Tape tape;
  auto start = Clock::now();
  Tensor y = measured_chain(with.x, with.a, with.b);
  return nanoseconds(start, Clock::now());
}

double record_backward_free() {
  static const Operands with = parameters();
  auto start = Clock::now();
  measured_step(with);
  auto end = Clock::now();
  for (const Tensor& parameter : {with.x, with.a, with.b}) parameter.set_grad({});
  return nanoseconds(start, end);
}

}  // namespace

std::vector<Case> op_overhead() {
  return {
      {"op_overhead", "no_tape", operations, 35, no_tape, nullptr, 254},
      {"op_overhead", "recorded", operations, 50, recorded, nullptr, 410},
      {"op_overhead", "record_backward_free", operations, 100, record_backward_free, nullptr, 792},
  };
}

}  // namespace reel_bench
