#include "misuse.h"

// Functions over functions.

namespace reel_test {

using namespace reel;

namespace {

Tensor total(const Tensor& x) { return sum(x * x); }
Tensor squares(const Tensor& x) { return x * x; }

}  // namespace

MisuseGroup derivative_misuse() {
  return {
      "Derivatives of functions",
      {
          {"jacobian(f, indices);  // i32",
           "DTypeError: jacobian: takes a floating tensor, not (2,) i32; convert it with to(x, f32)",
           [] {
             jacobian(squares, tensor({1, 2}));
           }},
          {"vjp(f, Tensor{}, seed);", "Error: vjp: input 0 is an undefined tensor…",
           [] { vjp(squares, Tensor{}, ones({3})); }},
          {"jacobian([](const Tensor& x) { return argmax(x); }, x);",
           "DTypeError: jacobian: the function must give a floating tensor, not () i64; convert it with to(y, f32)",
           [] { jacobian([](const Tensor& x) { return argmax(x); }, ones({3})); }},
          {"jvp([](const Tensor&) { return Tensor{}; }, x, tangent);",
           "Error: jvp: the function has given an undefined tensor…",
           [] { jvp([](const Tensor&) { return Tensor{}; }, ones({3}), ones({3})); }},
          {"hessian(square, x);  // x: (3,)",
           "ShapeError: hessian: the function must give a single element, not (3,) f32; reduce it, or ask for the "
           "jacobian of its gradient",
           [] { hessian(squares, ones({3})); }},
          {"hvp(f, x, ones({2}));  // x: (3,)",
           "ShapeError: hvp: direction 0, (2,) f32, does not fit its input (3,) f32…",
           [] { hvp(total, ones({3}), ones({2})); }},
          {"batch_jacobian([](const Tensor& x) { return sum(x, 0); }, x);  // x: (3, 2)",
           "ShapeError: batch_jacobian: the target (2,) f32 and the source (3, 2) f32 are not batches of as many "
           "examples…",
           [] {
             batch_jacobian([](const Tensor& x) { return sum(x, 0); }, ones({3, 2}));
           }},
          {"jacobian([](const Tensor& x) { return mul_(x, 2); }, x);",
           "TapeError: jacobian: the function has overwritten its argument 0, (3,) f32, at …, so that its derivatives "
           "would be those at other values; let it overwrite a copy",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             jacobian([](const Tensor& x) { return mul_(x, 2); }, w * 3);
           }},
          {"NoRecord pause; hessian(f, w);  // while a tape is open",
           "TapeError: hessian: cannot differentiate inside NoRecord while an outer tape is open, because that tape "
           "would see what is recorded here; call it outside NoRecord",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             NoRecord pause;
             hessian(total, w);
           }},
      },
  };
}

}  // namespace reel_test
