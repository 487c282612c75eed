#include <reel/reel.h>

#include <stdexcept>
#include <utility>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

std::string location(int line) { return std::string("checkpoint_misuse_test.cpp:") + std::to_string(line); }

Tensor values() { return tensor({0.3, -0.7, 1.6, 2.4}); }

}  // namespace

TEST_CASE("a function that does not give the same again is refused, with its line") {
  Tensor x = values().requires_grad();
  Tape tape;
  Generator own(5);
  int line = __LINE__ + 1;
  Tensor y = checkpoint([&](const Tensor& x) { return dropout(x * x, {.generator = &own}); }, x);
  std::string text = error_of<TapeError>([&] { tape.backward(sum(y)); });
  CHECK_THAT(text, contains("checkpoint: its function, run again for the gradient, gave another result 0, (4,) f64"));
  CHECK_THAT(text, contains(location(line)));
  CHECK_FALSE(x.grad().defined());
  // A buffer that was overwritten is detected, too.
  Tensor buffer = values();
  Tensor z = checkpoint([&](const Tensor& x) { return x * buffer; }, x);
  buffer.write<double>()[0] = 9;
  CHECK_THAT(error_of<TapeError>([&] { tape.backward(sum(z)); }), contains("gave another result"));
}

TEST_CASE("a captured view into which tracked values came through its base is refused") {
  Tensor w = full({3}, 2.0), base = zeros({3}), x = full({3}, 5.0), view = slice(base, 0, 0, 3);
  Tape tape;
  tape.watch(w);
  tape.watch(x);
  copy_(base, w);
  std::string outside = error_of<TapeError>([&] { static_cast<void>(x * view); });
  CHECK_THAT(outside, contains("shares its elements"));
  std::string inside =
      error_of<TapeError>([&] { static_cast<void>(checkpoint([view](const Tensor& u) { return u * view; }, x)); });
  CHECK_THAT(inside, contains("shares its elements"));
}

TEST_CASE("a captured view of what a finished tape has written to is refused") {
  Tensor w = full({3}, 2.0), base = zeros({3}), x = full({3}, 5.0), view = slice(base, 0, 0, 3);
  {
    Tape tape;
    tape.watch(w);
    base += w;
  }
  Tape tape;
  tape.watch(x);
  CHECK_THROWS_AS(x * view, TapeError);
  CHECK_THAT(error_of<TapeError>([&] { checkpoint([view](const Tensor& x) { return x * view; }, x); }),
             contains("shares its elements with a tensor of a tape that has finished"));
}

TEST_CASE("a tracked tensor that the function did not use the first time is refused") {
  Tensor x = values().requires_grad(), w = ones({4}, {.dtype = f64}).requires_grad();
  Tape tape;
  bool again = false;
  Tensor y = checkpoint([&](const Tensor& x) { return std::exchange(again, true) ? x * w : x * 1; }, x);
  CHECK_THAT(error_of<TapeError>([&] { tape.backward(sum(y)); }), contains("was not used the first time"));
}

TEST_CASE("a captured parameter or an input that is overwritten before the backward is refused with both lines") {
  Tensor x = values().requires_grad(), w = values().requires_grad();
  Tape tape;
  int line = __LINE__ + 1;
  Tensor y = checkpoint([&](const Tensor& x) { return x * w; }, x);
  int write_line = __LINE__ + 1;
  w.write<double>()[0] = 9;
  std::string text = error_of<TapeError>([&] { tape.backward(sum(y)); });
  CHECK_THAT(text, contains("checkpoint: its gradient needs what its function uses, (4,) f64"));
  CHECK_THAT(text, contains(location(line)));
  CHECK_THAT(text, contains(location(write_line)));
  Tensor z = checkpoint([&](const Tensor& x) { return x * x; }, x);
  x.write<double>()[0] = 9;
  CHECK_THAT(error_of<TapeError>([&] { tape.backward(sum(z)); }), contains("checkpoint: its gradient needs input 0"));
}

TEST_CASE("a function that overwrites its input or a tracked tensor is refused") {
  Tensor x = values(), w = values().requires_grad();
  Tape tape;
  tape.watch(x);
  Tensor h = w * 2;
  CHECK_THAT(error_of<TapeError>([&] { checkpoint([](const Tensor& x) { return add_(x, 1) * 2; }, x); }),
             contains("checkpoint: its function overwrote its input 0"));
  CHECK_THAT(error_of<TapeError>([&] { checkpoint([&](const Tensor& x) { return add_(h, x); }, x); }),
             contains("is tracked there"));
  CHECK_THAT(error_of<Error>([&] { checkpoint([](const Tensor&) { return Tensor{}; }, x); }),
             contains("undefined tensor as result 0"));
  CHECK_THAT(error_of<TapeError>([&] { checkpoint([&](const Tensor&) { return w; }, x); }),
             contains("is not among its inputs"));
  CHECK_THAT(error_of<Error>([&] { checkpoint([](const Tensor& x) { return x; }, Tensor{}); }),
             contains("undefined tensor"));
}

TEST_CASE("a function that throws, forward or in a backward, leaves every grad as it was and the tape usable") {
  Tensor x = values().requires_grad(), w = values().requires_grad();
  Tape tape;
  int runs = 0;
  auto throwing = [&](const Tensor& x) {
    Tensor y = x * w;
    if (++runs != 2) throw std::runtime_error("mine");
    return y;
  };
  CHECK(error_of<std::runtime_error>([&] { checkpoint(throwing, x); }) == "mine");
  CHECK(is_recording());
  Tensor y = checkpoint(throwing, x);
  CHECK(error_of<std::runtime_error>([&] { tape.backward(sum(y * w)); }) == "mine");
  CHECK_FALSE(x.grad().defined());
  CHECK_FALSE(w.grad().defined());
  tape.backward(sum(checkpoint([&](const Tensor& x) { return x * w; }, x)));
  CHECK(w.grad().to_vector<double>() == x.to_vector<double>());
}
