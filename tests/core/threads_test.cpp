#include <reel/reel.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>
#include <vector>

#include "catch.h"
#include "core/threads/parallel.h"

using namespace reel;
using namespace reel_test;

namespace {

// Restores the settings at the end of a test.
class Settings {
 public:
  Settings() = default;
  ~Settings() {
    set_thread_count(threads_);
    set_flush_denormals(flushes_);
  }
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

 private:
  int threads_ = thread_count();
  bool flushes_ = flushes_denormals();
};

// Counts the pieces of loops on two threads that ran in another mode than requested. Repeats loops until a second
// thread has taken part, which is impossible on a single processor.
int pieces_unlike(bool flush) {
  using Clock = std::chrono::steady_clock;
  std::atomic<bool> helped = false;
  std::atomic<int> unlike = 0;
  const std::thread::id caller = std::this_thread::get_id();
  Clock::time_point late = Clock::now() + std::chrono::milliseconds(500);
  while (!helped && Clock::now() < late)
    detail::parallel_for(2, 1, [&](std::int64_t begin, std::int64_t end) {
      unlike += static_cast<int>(end - begin) * (flushes_denormals() != flush);
      if (std::this_thread::get_id() != caller) helped = true;
      Clock::time_point enough = Clock::now() + std::chrono::milliseconds(1);
      while (!helped && Clock::now() < enough)
        ;
    });
  return unlike;
}

std::size_t zeros_in(const Tensor& x) {
  auto values = x.to_vector<float>();
  return static_cast<std::size_t>(std::count(values.begin(), values.end(), 0.f));
}

std::vector<std::uint32_t> bits_of(const Tensor& x) {
  std::vector<std::uint32_t> bits;
  for (float value : x.to_vector<float>()) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

}  // namespace

TEST_CASE("the number of threads is set for the calling thread, and is at least one") {
  Settings settings;
  set_thread_count(3);
  CHECK(thread_count() == 3);
  CHECK(detail::parallel::threads() == 3);
  CHECK_THAT(error_of<Error>([] { set_thread_count(0); }),
             contains("set_thread_count: at least one thread is needed, not 0; at "));
  CHECK_THROWS_AS(set_thread_count(-2), Error);
  CHECK(thread_count() == 3);
}

TEST_CASE("denormals are kept, until they are to be flushed, on one thread and on several") {
  Settings settings;
  constexpr std::int64_t count = 1 << 20;
  const Tensor tiny = full({count}, 0x1p-130), small = full({count}, 0x1p-100);
  for (int threads : {1, 2, 4}) {
    CAPTURE(threads);
    set_thread_count(threads);
    CHECK(!flushes_denormals());
    CHECK(zeros_in(tiny * 2) == 0);
    CHECK(zeros_in(small * 0x1p-30) == 0);
    set_flush_denormals(true);
    CHECK(flushes_denormals());
    CHECK(zeros_in(tiny * 0x1p100) == count);
    CHECK(zeros_in(small * 0x1p-30) == count);
    CHECK(zeros_in(small * 0x1p-26) == 0);
    CHECK(std::signbit((small * -0x1p-30)(0).item()));
    set_flush_denormals(false);
    CHECK(zeros_in(small * 0x1p-30) == 0);
  }
}

TEST_CASE("every thread of a loop flushes denormals as the one that called it") {
  Settings settings;
  set_thread_count(2);
  for (bool flush : {false, true, true, false}) {
    set_flush_denormals(flush);
    CHECK(pieces_unlike(flush) == 0);
  }
}

// Under the address sanitizer these take five minutes, in kernels that other tests run there.
#ifndef __SANITIZE_ADDRESS__
TEST_CASE("the threads of large matrix products flush denormals as the one that called them") {
  Settings settings;
  set_thread_count(2);
  constexpr std::int64_t side = 1024;
  for (DType dtype : {f32, bf16}) {
    CAPTURE(name_of(dtype));
    const std::int64_t length = dtype == f32 ? 6 * side : side;  // from here on oneDNN has its own threads
    // Denormal only at the end: denormals are slow.
    Tensor a = zeros({side, length}, {.dtype = dtype}), b = full({length, side}, 0x1p-70, {.dtype = dtype});
    a(slice(), length - 1) = 0x1p-70;
    // The processor's bf16 products flush denormals in either mode.
    if (dtype == f32) CHECK(zeros_in(matmul(a, b)) == 0);
    set_flush_denormals(true);
    CHECK(zeros_in(to(matmul(a, b), f32)) == side * side);
    set_flush_denormals(false);
    if (dtype == f32) CHECK(zeros_in(matmul(a, b)) == 0);
  }
}

TEST_CASE("threads that a product on one thread had not called flush denormals when they are called again") {
  Settings settings;
  constexpr std::int64_t side = 1024, length = 6 * side;
  Tensor a = zeros({side, length}), b = full({length, side}, 0x1p-70f);
  a(slice(), length - 1) = 0x1p-70f;
  set_thread_count(2);
  CHECK(zeros_in(matmul(a, b)) == 0);
  set_thread_count(1);
  set_flush_denormals(true);
  CHECK(zeros_in(matmul(a, b)) == side * side);
  set_thread_count(2);
  CHECK(zeros_in(matmul(a, b)) == side * side);
}

TEST_CASE("deep products of bf16 have the same bits each time, and for every number of threads") {
  Settings settings;
  // The smaller instruction sets take ten times the time, and these tests run again with each of them.
  const int repetitions = std::getenv("REEL_INSTRUCTION_SET") ? 2 : 8;
  for (std::int64_t rows : {256, 384, 1024}) {
    CAPTURE(rows);
    const Tensor a = to(rand({rows, 4096}), bf16), b = to(rand({4096, 512}), bf16);
    set_thread_count(1);
    const auto expected = bits_of(to(matmul(a, b), f32));
    for (int threads : {1, 2, 3}) {
      set_thread_count(threads);
      for (int time = 0; time < repetitions; ++time) CHECK(bits_of(to(matmul(a, b), f32)) == expected);
    }
  }
}

TEST_CASE("large matrix products have the same bits for every number of threads") {
  Settings settings;
  for (DType dtype : {f32, bf16}) {
    CAPTURE(name_of(dtype));
    const std::int64_t length = dtype == f32 ? 6144 : 1024;
    const Tensor a = to(rand({1024, length}), dtype), b = to(rand({length, 1024}), dtype);
    set_thread_count(1);
    const auto expected = bits_of(to(matmul(a, b), f32));
    for (int threads : {2, 3}) {
      set_thread_count(threads);
      CHECK(bits_of(to(matmul(a, b), f32)) == expected);
    }
  }
}

TEST_CASE("a forked process multiplies large matrices without the threads of its parent") {
  Settings settings;
  set_thread_count(2);
  const Tensor a = rand({1024, 6144}), b = rand({6144, 1024});
  const auto expected = bits_of(matmul(a, b));
  pid_t child = fork();
  if (child == 0) _exit(bits_of(matmul(a, b)) == expected ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}
#endif

TEST_CASE("a thread flushes denormals as the one that started it, and sets it for itself") {
  Settings settings;
  set_flush_denormals(true);
  bool inherited = false, own = true;
  std::thread([&] {
    inherited = flushes_denormals();
    set_flush_denormals(false);
    own = flushes_denormals();
  }).join();
  CHECK(inherited);
  CHECK(!own);
  CHECK(flushes_denormals());
}

TEST_CASE("flushing denormals changes no bit of a result that none is part of") {
  Settings settings;
  manual_seed(3);
  const Tensor x = randn({300, 200}), y = randn({200, 300});
  auto results = [&] {
    return std::vector{bits_of(exp(x)),
                       bits_of(tanh(x)),
                       bits_of(log(square(x) + 0.5)),
                       bits_of(softmax(x, 1)),
                       bits_of(matmul(x, y)),
                       bits_of(erf(x)),
                       bits_of(sum(x, 0)),
                       bits_of(to(to(x, f16), f32))};
  };
  auto kept = results();
  set_flush_denormals(true);
  CHECK(results() == kept);
}

TEST_CASE("f16 keeps its denormals when others are flushed") {
  Settings settings;
  set_flush_denormals(true);
  for (double value : {0x1p-24, 0x1.8p-16, -0x1p-20, 0x1p-14}) {
    CAPTURE(value);
    const Tensor x = full({70}, value, {.dtype = f16});
    CHECK(x(69).item() == value);
    CHECK(to(x, f32)(69).item() == value);
    CHECK((x * 1)(69).item() == value);
    CHECK(sum(reshape(x, {70, 1}), 1)(69).item() == value);
  }
  CHECK(float(Float16(-0x1p-24f)) == -0x1p-24f);
}

TEST_CASE("gradients of a vanishing chain are zero when denormals are flushed, and not when they are kept") {
  Settings settings;
  for (bool flush : {false, true}) {
    set_flush_denormals(flush);
    Tensor x = full({64}, 1.0).requires_grad();
    Tape tape;
    Tensor y = x;
    for (int i = 0; i < 14; ++i) y = y * 0x1p-10;
    tape.backward(sum(y));
    CHECK(zeros_in(x.grad()) == (flush ? 64 : 0));
  }
}
