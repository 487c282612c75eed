#include <pthread.h>

#include <reel/reel.h>

#include <fstream>
#include <functional>

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
    // And once without a backward.
    Tape tape;
    Tensor h = w;
    for (int i = 0; i < 100'000; ++i) h = h * w;
  });
  CHECK(entries == 1'000'000);
  CHECK(gradient == 500'001);
}

TEST_CASE("memory stays flat over steps of varying length") {
  Tensor w = randn({32, 32}).requires_grad();
  Tape tape;
  std::size_t early = 0;
  for (int step = 0; step < 400; ++step) {
    Tensor h = ones({1, 32});
    int length = 20 + (step * 37) % 60;
    for (int t = 0; t < length; ++t) h = tanh(matmul(h, w));
    tape.backward(mean(h));
    w.set_grad({});
    if (step == 100) early = resident_bytes();
  }
  CHECK(tape.bytes() == 0);
  if (!sanitized) CHECK(resident_bytes() < early + early / 50);
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
