#include <reel/reel.h>

#include <optional>
#include <thread>

#include "catch.h"

// Scopes end in any order, also on another thread than they began on: the effect of an ended scope is over, and that
// of the others remains.

using namespace reel;
using namespace reel_test;

namespace {

// Checks that no earlier scope has an effect on this thread.
void check_clean() {
  CHECK_FALSE(is_recording());
  Tensor w = full({}, 3.0).requires_grad();
  static_cast<void>(w * w);
  Tape tape;
  CHECK(tape.size() == 0);
  CHECK(is_recording());
  for (int step = 0; step < 3; ++step) {
    tape.backward(w * w);
    CHECK(tape.size() == 0);
  }
  CHECK(w.grad().item() == 18);
}

}  // namespace

TEST_CASE("an outer tape that ends before an inner one leaves the inner one its own") {
  Tensor w = full({}, 3.0).requires_grad();
  {
    std::optional<Tape> outer(std::in_place), inner;
    Tensor before = w * w;
    inner.emplace();
    Tensor y = w * w;
    outer.reset();
    CHECK(is_recording());
    CHECK(inner->gradient(y, w).item() == 6);
    // It is the outermost now: a backward clears its entries.
    CHECK(inner->size() == 0);
    CHECK(inner->gradient(w * 2, w).item() == 2);
    Tensor z = w * w * w;
    Tape third;
    CHECK(third.gradient(w * w, w).item() == 6);
    CHECK(inner->gradient(z, w).item() == 27);
    inner.reset();
    CHECK(is_recording());
  }
  check_clean();
}

TEST_CASE("a tape that is the outermost since another one ended has no gradients of its gradients recorded") {
  Tensor w = full({}, 3.0).requires_grad();
  std::optional<Tape> outer(std::in_place);
  Tape inner;
  outer.reset();
  Tensor y = w * w;
  Tensor gradient = inner.gradient(y, w);
  CHECK_THROWS_AS(inner.gradient(gradient, w), TapeError);
}

TEST_CASE("traces end with the tape that asked for them, whatever the order") {
  Tensor w = full({}, 3.0).requires_grad();
  std::optional<Tape> outer(std::in_place), inner(std::in_place);
  Tensor y = w * 2;
  outer->trace(y);
  inner->trace(y);
  outer.reset();
  inner->gradient(y * y, w);
  CHECK(inner->traced().size() == 1);
}

TEST_CASE("NoRecord that outlives its tape pauses until it ends, and records nothing afterwards") {
  Tensor w = full({}, 3.0).requires_grad();
  {
    std::optional<Tape> tape(std::in_place);
    std::optional<NoRecord> pause(std::in_place);
    tape.reset();
    CHECK_FALSE(is_recording());
    {
      Tape other;
      CHECK(other.gradient(w * w, w).item() == 6);
    }
    CHECK_FALSE(is_recording());
    pause.reset();
  }
  check_clean();
  {
    std::optional<NoRecord> first(std::in_place);
    Tape tape;
    std::optional<NoRecord> second(std::in_place);
    first.reset();
    CHECK_FALSE(is_recording());
    second.reset();
    CHECK(is_recording());
  }
  check_clean();
}

TEST_CASE("an inner NoRecord that ends last keeps its thread from recording until then") {
  Tape tape;
  std::optional<NoRecord> outer(std::in_place), inner(std::in_place);
  outer.reset();
  CHECK_FALSE(is_recording());
  inner.reset();
  CHECK(is_recording());
}

TEST_CASE("a tape that another thread ends is over for the thread that began it") {
  Tensor w = full({}, 3.0).requires_grad();
  {
    std::optional<Tape> tape(std::in_place);
    Tensor y = w * w;
    std::thread([&] {
      tape.reset();
      check_clean();
    }).join();
    CHECK_FALSE(is_recording());
  }
  check_clean();
  // Meanwhile the thread continues to compute.
  std::optional<Tape> tape(std::in_place);
  std::thread([&] { tape.reset(); }).join();
  for (int i = 0; i < 100000; ++i) static_cast<void>(w * w);
  CHECK_FALSE(is_recording());
  check_clean();
}

TEST_CASE("a tape ends with the thread that began it, and may be destroyed afterwards") {
  std::optional<Tape> tape;
  std::optional<NoRecord> pause;
  Tensor w = full({}, 3.0).requires_grad(), y;
  std::thread([&] {
    tape.emplace();
    y = w * w;
    pause.emplace();
  }).join();
  // It adopts that thread's context.
  std::thread([&] {
    check_clean();
    CHECK_THAT(error_of<TapeError>([&] { tape->gradient(w * w, w); }), contains("opened by another thread"));
    tape.reset();
    check_clean();
  }).join();
  std::thread(check_clean).join();
  pause.reset();
  check_clean();
}

TEST_CASE("a tape that outlives the function of a checkpoint ends with it") {
  Tensor w = full({}, 3.0).requires_grad();
  {
    std::optional<Tape> left;
    Tape tape;
    Tensor y = checkpoint(
        [&](const Tensor& x) {
          left.reset();
          left.emplace();
          return x * x;
        },
        w);
    CHECK(tape.gradient(y, w).item() == 6);
    CHECK(tape.size() == 0);
  }
  check_clean();
}

TEST_CASE("device guards end in any order") {
  Device gpu{Device::Type::cuda, 3}, other{Device::Type::cuda, 5};
  std::optional<DeviceGuard> outer(std::in_place, gpu), inner(std::in_place, other);
  CHECK(default_device() == other);
  outer.reset();
  CHECK(default_device() == other);
  inner.reset();
  CHECK(default_device() == cpu);
  outer.emplace(gpu);
  std::thread([&] { outer.reset(); }).join();
  CHECK(default_device() == cpu);
}

TEST_CASE("autocast scopes end in any order") {
  Tensor a = ones({4, 4}), b = ones({4, 4});
  std::optional<AutocastScope> outer(std::in_place, bf16, Location::here()),
      inner(std::in_place, f16, Location::here());
  outer.reset();
  CHECK(matmul(a, b).dtype() == f16);
  inner.reset();
  CHECK(matmul(a, b).dtype() == f32);
  outer.emplace(bf16, Location::here());
  inner.emplace(f32, Location::here());
  inner.reset();
  CHECK(matmul(a, b).dtype() == bf16);
  std::thread([&] { outer.reset(); }).join();
  CHECK(matmul(a, b).dtype() == f32);
}

TEST_CASE("listeners end in any order, and those that are left go on hearing") {
  int first_heard = 0, second_heard = 0;
  Tensor x = ones({2});
  std::optional<debug::Listen> first(std::in_place, [&](const debug::OpEvent&) { ++first_heard; });
  std::optional<debug::Listen> second(std::in_place, [&](const debug::OpEvent&) { ++second_heard; });
  static_cast<void>(x + x);
  CHECK(first_heard == 1);
  CHECK(second_heard == 1);
  first.reset();
  static_cast<void>(x + x);
  CHECK(first_heard == 1);
  CHECK(second_heard == 2);
  second.reset();
  static_cast<void>(x + x);
  CHECK(second_heard == 2);
  std::optional<debug::AnomalyScope> detects(std::in_place, debug::AnomalyOptions{});
  first.emplace([&](const debug::OpEvent&) { ++first_heard; });
  detects.reset();
  static_cast<void>(log(zeros({2})));  // anomaly detection has ended
  int heard = first_heard;
  CHECK(heard > 1);
  std::thread([&] { first.reset(); }).join();
  static_cast<void>(x + x);
  CHECK(first_heard == heard);
}
