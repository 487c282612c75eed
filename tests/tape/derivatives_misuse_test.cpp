#include <reel/reel.h>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

std::string location(int line) { return std::string("derivatives_misuse_test.cpp:") + std::to_string(line); }

Tensor square_of(const Tensor& x) { return x * x; }

}  // namespace

TEST_CASE("derivatives by integers, by undefined tensors and by nothing are refused, in the function's name") {
  Tensor x = ones({3}), whole = tensor({1, 2, 3});
  int line = __LINE__ + 1;
  std::string text = error_of<DTypeError>([&] { jacobian(square_of, whole); });
  CHECK_THAT(text, contains("jacobian: takes a floating tensor, not (3,) i32"));
  CHECK_THAT(text, contains(location(line)));
  CHECK_THAT(error_of<DTypeError>([&] { hvp(square_of, whole, x); }), contains("hvp: takes a floating tensor"));
  CHECK_THAT(error_of<Error>([&] { vjp(square_of, Tensor{}, x); }), contains("vjp: input 0 is an undefined tensor"));
  CHECK_THAT(error_of<Error>([&] { vjp(square_of, x, Tensor{}); }), contains("vjp: the seed is an undefined tensor"));
  CHECK_THAT(error_of<Error>([&] { jvp(square_of, x, Tensor{}); }), contains("jvp: tangent 0 is an undefined tensor"));
  TensorFunction first = [](std::span<const Tensor> in) { return in[0]; }, none;
  std::vector<Tensor> nothing, one{x};
  CHECK_THAT(error_of<Error>([&] { hessian(first, nothing); }), contains("hessian: there are no inputs"));
  CHECK_THAT(error_of<Error>([&] { jacobian(none, one); }), contains("jacobian: the function is empty"));
}

TEST_CASE("what the function gives must be a floating tensor, and a single element for second derivatives") {
  Tensor x = ones({3});
  CHECK_THAT(error_of<DTypeError>([&] { jacobian([](const Tensor& x) { return to(x, i32); }, x); }),
             contains("jacobian: the function must give a floating tensor, not (3,) i32"));
  CHECK_THAT(error_of<Error>([&] { jvp([](const Tensor&) { return Tensor{}; }, x, x); }),
             contains("jvp: the function has given an undefined tensor"));
  CHECK_THAT(error_of<ShapeError>([&] { hessian(square_of, x); }),
             contains("hessian: the function must give a single element, not (3,) f32"));
  CHECK_THAT(error_of<ShapeError>([&] { hvp(square_of, x, x); }),
             contains("hvp: the function must give a single element, not (3,) f32"));
}

TEST_CASE("seeds, directions and tangents must fit") {
  Tensor x = ones({3}), wrong = ones({2}), finer = ones({3}, {.dtype = f64});
  auto total = [](const Tensor& x) { return sum(x * x); };
  CHECK_THAT(error_of<ShapeError>([&] { vjp(square_of, x, wrong); }),
             contains("vjp: the seed (2,) f32 does not fit the target (3,) f32"));
  CHECK_THAT(error_of<ShapeError>([&] { hvp(total, x, wrong); }),
             contains("hvp: direction 0, (2,) f32, does not fit its input (3,) f32"));
  CHECK_THAT(error_of<ShapeError>([&] { jvp(square_of, x, finer); }),
             contains("jvp: tangent 0, (3,) f64, does not fit its input (3,) f32"));
  TensorFunction f = [](std::span<const Tensor> in) { return sum(in[0]); };
  std::vector<Tensor> one{x}, two{x, x};
  CHECK_THAT(error_of<ShapeError>([&] { hvp(f, one, two); }), contains("hvp: there are 1 inputs, but 2 directions"));
}

TEST_CASE("a jacobian of more than 8 axes is refused") {
  Tensor x = ones({1, 1, 1, 2, 1}), y = ones({1, 2, 1, 1});
  auto f = [&](const Tensor& x) { return sum(x) * y; };
  CHECK_THAT(error_of<ShapeError>([&] { jacobian(f, x); }),
             contains("jacobian: the derivative of (1, 2, 1, 1) f32 by (1, 1, 1, 2, 1) f32 would have 9 axes"));
  CHECK_THAT(error_of<ShapeError>([&] { hessian([&](const Tensor& x) { return sum(f(x) * f(x)); }, x); }),
             contains("hessian: the derivative of (1, 1, 1, 2, 1) f32 by (1, 1, 1, 2, 1) f32 would have 10 axes"));
}

TEST_CASE("a batch jacobian needs batches of as many examples") {
  Tensor x = ones({3, 2});
  CHECK_THAT(error_of<ShapeError>([&] { batch_jacobian([](const Tensor& x) { return sum(x); }, x); }),
             contains("batch_jacobian: the target () f32 and the source (3, 2) f32 are not batches"));
  CHECK_THAT(error_of<ShapeError>([&] { batch_jacobian([](const Tensor& x) { return sum(x, 0); }, x); }),
             contains("are not batches of as many examples"));
  Tape tape;
  tape.watch(x);
  CHECK_THAT(error_of<ShapeError>([&] { tape.batch_jacobian(sum(x, 0), x); }), contains("batch_jacobian: the target"));
}

TEST_CASE("a function that overwrites its argument is refused, whether or not an outer tape records") {
  Tensor x = ones({3});
  auto f = [](const Tensor& x) {
    Tensor y = x;
    y *= 2;
    return y;
  };
  CHECK_THROWS_AS(jacobian(f, x), TapeError);
  Tensor w = ones({3}).requires_grad();
  Tape tape;
  Tensor h = w * 3;
  int line = __LINE__ + 1;
  std::string text = error_of<TapeError>([&] { jacobian(f, h); });
  CHECK_THAT(text, contains("jacobian: the function has overwritten its argument 0, (3,) f32"));
  CHECK_THAT(text, contains(location(line)));
}

TEST_CASE("a module that is differentiated by its input reports the line that asked") {
  struct Model : nn::Module {
    nn::Linear layer{*this, "layer", 3, 1};
    Tensor operator()(const Arg& x) const { return layer(x); }
  } model;
  CHECK(jacobian(model, ones({2, 3})).shape() == Shape{2, 1, 2, 3});
  CHECK(batch_jacobian(model, ones({2, 3})).shape() == Shape{2, 1, 3});
  int line = __LINE__ + 1;
  CHECK_THAT(error_of<ShapeError>([&] { jacobian(model, ones({2})); }), contains(location(line)));
}

TEST_CASE("an exception of the function leaves outer tapes as they were") {
  Tensor x = ones({3});
  Tape tape;
  tape.watch(x);
  Tensor y = x * x;
  CHECK_THROWS_AS(jacobian([](const Tensor& x) -> Tensor { return matmul(x, ones({2})); }, x), ShapeError);
  CHECK(is_recording());
  CHECK(sum(tape.gradient(sum(y), x)).item() == 6);
}

TEST_CASE("a jacobian of a finished tape's tensor, or without recording under a tape, says why not") {
  Tensor w = ones({3}).requires_grad(), h;
  {
    Tape tape;
    h = w * 2;
  }
  CHECK(jacobian(square_of, h).defined());  // no tape is open: a plain value
  Tape tape;
  CHECK_THAT(error_of<TapeError>([&] { jacobian(square_of, h); }),
             contains("jacobian: operand (3,) f32, computed at tests/tape/derivatives_misuse_test.cpp"));
  NoRecord pause;
  CHECK_THAT(error_of<TapeError>([&] { hessian(square_of, w); }),
             contains("hessian: cannot differentiate inside NoRecord while an outer tape is open"));
}
