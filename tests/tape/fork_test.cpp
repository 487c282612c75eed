#include <reel/reel.h>

#include "catch.h"
#include "fork.h"

using namespace reel;
using namespace reel_test;

TEST_CASE("a forked process cannot use its parent's tape or record on it, and is told by which process it was opened") {
  Tensor w = full({}, 3.0).requires_grad();
  Tape tape;
  Tensor y = w * w;
  std::string by = "before fork(), by process " + std::to_string(getpid());
  std::string recorded = in_child([&] { return error_of<TapeError>([&] { w * 2; }); });
  CHECK_THAT(recorded, contains(by));
  CHECK_THAT(recorded, contains("mul: "));
  CHECK_THAT(in_child([&] { return error_of<TapeError>([&] { y * 2; }); }), contains(by));
  CHECK_THAT(in_child([&] { return error_of<TapeError>([&] { tape.backward(y); }); }), contains(by));
  CHECK_THAT(in_child([&] { return error_of<TapeError>([&] { tape.gradient(y, w); }); }), contains(by));
  CHECK_THAT(in_child([&] { return error_of<TapeError>([&] { tape.watch(ones({})); }); }), contains(by));
  CHECK_THAT(in_child([&] { return error_of<TapeError>([&] { tape.trace(y); }); }), contains(by));
  // The child has not changed the parent's tensors.
  tape.backward(y);
  CHECK(w.grad().item() == 6);
}

TEST_CASE("a forked process computes plain values, and records on tapes of its own") {
  Tensor w = full({}, 3.0).requires_grad();
  Tape outer;
  Tape inner;
  Tensor y = w * w;
  std::string found = in_child([&] {
    Tensor plain = ones({2}) * 4;
    NoRecord pause;
    return std::to_string((sum(plain) + w * 2 + y).item());
  });
  CHECK(found == std::to_string(23.0));
  found = in_child([&] {
    double gradient = 0;
    std::string refused;
    for (int step = 0; step < 3; ++step) {
      Tape own;
      if (step == 2) refused = error_of<TapeError>([&] { y* w; });
      Tensor carried = stop_gradient(y) * w * w;
      own.backward(carried);
      gradient = w.grad().item();
      Tape nested;
      gradient += nested.gradient(w * w, w).item();
    }
    return std::to_string(gradient) + refused;
  });
  CHECK_THAT(found, contains(std::to_string(3 * 54 + 6.0)));
  CHECK_THAT(found, contains("mul: operand () f32, computed at"));
  CHECK_THAT(found, contains("belongs to a tape that was opened before fork()"));
  CHECK_FALSE(w.grad().defined());
  CHECK(inner.gradient(y, w).item() == 6);
}

TEST_CASE("a forked process may leave its parent's tapes, and fork in turn") {
  Tensor w = full({}, 3.0).requires_grad();
  pid_t parent = getpid();
  std::string told;
  int end = -1;
  {
    Tape outer;
    Tape inner({.persistent = true});
    Tensor y = w * w;
    pid_t child = fork();
    if (child != 0)
      waitpid(child, &end, 0);
    else
      told = in_child([&] { return error_of<TapeError>([&] { inner.backward(y); }); });
  }
  if (getpid() != parent) {
    bool right = told.find("by process " + std::to_string(parent)) != std::string::npos && !is_recording();
    Tape tape;
    tape.backward(w * 5);
    _exit(right && w.grad().item() == 5 ? 0 : 1);
  }
  CHECK((WIFEXITED(end) && WEXITSTATUS(end) == 0));
}
