#include <malloc.h>
#include <pthread.h>

#include <reel/reel.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <iostream>
#include <random>

#include "catch.h"

using namespace reel;

namespace {

// Sanitizers keep freed memory in quarantine, so the process grows there whatever the tape does.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

// Runs f on a thread with a stack of 256 KB.
void on_small_stack(std::function<void()> f) {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, 256 * 1024) == 0);
  pthread_t thread;
  auto run = [](void* f) -> void* {
    (*static_cast<std::function<void()>*>(f))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, &f) == 0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
  pthread_attr_destroy(&attributes);
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * 4096;
}

}  // namespace

TEST_CASE("a million entries build, differentiate and are freed on a small stack") {
  double gradient = 0;
  std::size_t entries = 0;
  on_small_stack([&] {
    Tensor w = full({}, 1.0, {.dtype = f64}).requires_grad();
    {
      Tape tape;
      Tensor h = w;
      for (int i = 0; i < 500'000; ++i) {
        h = h * 1.0;
        h = h + w;
      }
      entries = tape.size();
      tape.backward(h);
    }
    gradient = w.grad().item();
    // Also without a backward.
    Tape tape;
    Tensor h = w;
    for (int i = 0; i < 100'000; ++i) h = h * w;
  });
  CHECK(entries == 1'000'000);
  CHECK(gradient == 500'001);
}

TEST_CASE("resident memory is flat from step 500 to step 10,000 of training a ragged recurrent net") {
  // Sanitizers are slow, and have no comparable times.
  constexpr int steps = sanitized ? 200 : 10'000, early_step = 500;
  constexpr std::int64_t features = 4, hidden = 16, longest = 12;
  // Memory cached by other tests would hide growth.
  release_memory_cache();
  malloc_trim(0);
  manual_seed(5);
  nn::LSTMCell cell(features, hidden);
  nn::Linear head(hidden, 1);
  std::vector<Tensor> parameters = cell.parameters();
  for (const Tensor& parameter : head.parameters()) parameters.push_back(parameter);
  optim::Adam optimiser(parameters, {.learning_rate = 1e-2});
  std::mt19937 lengths(7);
  Tape tape;
  std::size_t early = 0;
  double loss_value = 0;
  for (int step = 1; step <= steps; ++step) {
    // Each example has its own length, and is computed separately.
    Tensor total = zeros({});
    for (int example = 0; example < 2; ++example) {
      std::int64_t length = std::uniform_int_distribution<std::int64_t>(1, longest)(lengths);
      Tensor x = randn({length, 1, features});
      nn::LSTMState state = cell.initial_state(1);
      for (std::int64_t t = 0; t < length; ++t) state = cell(x(t), state);
      total = total + mean(square(head(state.h) - mean(x)));
    }
    tape.backward(total);
    optimiser.step();
    optimiser.zero_grad();
    loss_value = total.item();
    if (step == early_step) early = resident_bytes();
  }
  CHECK(std::isfinite(loss_value));
  CHECK(tape.bytes() == 0);
  if (sanitized) return;
  std::size_t late = resident_bytes();
  std::cout << "resident after " << early_step << " steps: " << static_cast<double>(early) / 1e6 << " MB, after "
            << steps << ": " << static_cast<double>(late) / 1e6 << " MB" << std::endl;
  CHECK(std::abs(static_cast<double>(late) - static_cast<double>(early)) < 0.02 * static_cast<double>(early));
}

TEST_CASE("a tape tells the most that it has held") {
  Tensor w = ones({1000}).requires_grad();
  auto step = [&](Tape& tape, int length) {
    Tensor h = w;
    for (int i = 0; i < length; ++i) h = tanh(h);
    std::size_t held = tape.bytes();
    tape.backward(sum(h));
    return held;
  };
  Tape tape;
  CHECK(tape.peak_bytes() == 0);
  std::size_t held = step(tape, 20);
  CHECK(held > 20 * 4000);
  CHECK(tape.bytes() == 0);
  std::size_t peak = tape.peak_bytes();
  CHECK(peak >= held);
  CHECK(peak < held + 1000);
  step(tape, 5);
  CHECK(tape.peak_bytes() == peak);
  step(tape, 40);
  CHECK(tape.peak_bytes() > peak + 15 * 4000);
  tape.reset_peak();
  CHECK(tape.peak_bytes() == 0);
  std::size_t small = step(tape, 5);
  CHECK(tape.peak_bytes() >= small);
  CHECK(tape.peak_bytes() < small + 1000);
  {
    // An inner tape adds to what the outer one holds.
    Tensor h = tanh(w);
    Tape inner;
    Tensor y = tanh(h);
    CHECK(inner.peak_bytes() >= inner.bytes());
    CHECK(inner.peak_bytes() == tape.peak_bytes());
  }
}

TEST_CASE("a tape that opens counts its peak anew") {
  Tensor w = ones({1000}).requires_grad();
  {
    Tape tape;
    Tensor y = tanh(w);
  }
  Tape tape;
  CHECK(tape.peak_bytes() == 0);
}

TEST_CASE("the memory of one long recording is given back over the following short ones") {
  Tensor w = full({}, 1.0, {.dtype = f64}).requires_grad();
  auto record = [&](int length) {
    Tape tape;
    Tensor h = w;
    for (int i = 0; i < length; ++i) h = h * w;
    return tape.capacity();
  };
  std::size_t small = record(1000);
  std::size_t large = record(200'000);
  CHECK(large > 50 * small);
  // The next tape still has the whole buffer.
  CHECK(record(1000) == large);
  std::size_t before = large;
  for (int i = 0; i < 60; ++i) {
    std::size_t now = record(1000);
    CHECK(now <= before);
    before = now;
  }
  CHECK(before < small + (std::size_t{1} << 20));
  // Memory can be released at once, but not during a recording.
  // How much of it is spare depends on what was kept before.
  CHECK(record(200'000) > 50 * small);
  {
    Tape tape;
    Tensor y = w * w;
    release_memory_cache();
    CHECK(tape.capacity() > 50 * small);
    tape.backward(y);
    release_memory_cache();
    CHECK(tape.capacity() <= small);
    CHECK((w * w).item() == 1);
    CHECK(tape.size() == 1);
  }
}

TEST_CASE("a gradient costs nothing for entries that do not lead to its source") {
  Tensor a = full({}, 2.0, {.dtype = f64}), b = full({}, 3.0, {.dtype = f64});
  Tape tape({.persistent = true});
  tape.watch(a);
  tape.watch(b);
  Tensor noise = b;
  for (int i = 0; i < 1000; ++i) noise = noise * 1.0;
  Tensor y = a * a + noise;
  int ops = 0;
  debug::Listen listen([&](const debug::OpEvent&) { ++ops; });
  CHECK(tape.gradient(y, a).item() == 4);
  CHECK(ops < 10);
}
