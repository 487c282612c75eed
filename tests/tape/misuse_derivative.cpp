#include "misuse.h"

// Derivatives of functions.

namespace reel_test {

using namespace reel;

namespace {

Tensor squared(const Tensor& x) { return x * x; }
Tensor total(const Tensor& x) { return sum(x * x); }

}  // namespace

MisuseGroup derivative_misuse() {
  return {
      "Derivatives of functions",
      {
          {"jacobian(f, indices);  // i32",
           "DTypeError: jacobian: takes a floating tensor, not (3,) i32; convert it with to(x, f32)",
           [] {
             jacobian(squared, tensor({1, 2, 3}));
           }},
          {"jacobian(f, Tensor{});", "Error: jacobian: input 0 is an undefined tensor: it was never given a value",
           [] { jacobian(squared, Tensor{}); }},
          {"jacobian(TensorFunction(), inputs);", "Error: jacobian: the function is empty; give one that can be called",
           [] { jacobian(TensorFunction(), std::vector{ones({2})}); }},
          {"hessian(f, std::vector<Tensor>{});",
           "Error: hessian: there are no inputs to differentiate by; give at least one tensor",
           [] { hessian([](std::span<const Tensor>) { return ones({}); }, std::vector<Tensor>{}); }},
          {"jacobian([](const Tensor& x) { return argmax(x); }, x);",
           "DTypeError: jacobian: the function must give a floating tensor, not () i64; convert it with to(y, f32)",
           [] { jacobian([](const Tensor& x) { return argmax(x); }, ones({3})); }},
          {"jvp([](const Tensor&) { return Tensor{}; }, x, tangent);",
           "Error: jvp: the function has given an undefined tensor; let it return what it computes",
           [] { jvp([](const Tensor&) { return Tensor{}; }, ones({3}), ones({3})); }},
          {"hvp([](const Tensor& x) { return x * x; }, x, direction);  // x: (3,)",
           "ShapeError: hvp: the function must give a single element, not (3,) f32; reduce it, or ask for the jacobian "
           "of its gradient",
           [] { hvp(squared, ones({3}), ones({3})); }},
          {"hvp(f, x, ones({2}));  // x: (3,)",
           "ShapeError: hvp: direction 0, (2,) f32, does not fit its input (3,) f32; give one of its shape and dtype",
           [] { hvp(total, ones({3}), ones({2})); }},
          {"vjp(f, x, Tensor{});", "Error: vjp: the seed is an undefined tensor: it was never given a value",
           [] { vjp(squared, ones({3}), Tensor{}); }},
          {"jacobian([](const Tensor& x) { Tensor y = x; y *= 2; return y; }, x);  // x depends on a parameter",
           "TapeError: jacobian: the function has overwritten its argument 0, (3,) f32, at …, so that its derivatives "
           "would be those at other values; let it overwrite a copy",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             jacobian(
                 [](const Tensor& x) {
                   Tensor y = x;
                   y *= 2;
                   return y;
                 },
                 w * 3);
           }},
          {"jacobian(f, x);  // y = f(x) of 4 axes, x of 5",
           "ShapeError: jacobian: the derivative of (1, 2, 1, 1) f32 by (1, 1, 1, 2, 1) f32 would have 9 axes, and a "
           "tensor has at most 8; flatten one",
           [] {
             jacobian([](const Tensor& x) { return reshape(x, {1, 2, 1, 1}); }, ones({1, 1, 1, 2, 1}));
           }},
          {"batch_jacobian([](const Tensor& x) { return sum(x, 0); }, x);  // x: (3, 2)",
           "ShapeError: batch_jacobian: the target (2,) f32 and the source (3, 2) f32 are not batches of as many "
           "examples; the first axes must be of one size",
           [] {
             batch_jacobian([](const Tensor& x) { return sum(x, 0); }, ones({3, 2}));
           }},
          {"Tape tape; NoRecord pause; jacobian(f, x);",
           "TapeError: jacobian: cannot differentiate inside NoRecord while an outer tape is open, because that tape "
           "would see what is recorded here; call it outside NoRecord",
           [] {
             Tape tape;
             NoRecord pause;
             jacobian(squared, ones({3}));
           }},
          {"Tape tape; Tensor h = …; }  Tape tape; jacobian(f, h);",
           "TapeError: jacobian: operand () f32, computed at …, belongs to a tape that has finished, so no gradient "
           "can flow back through it; use stop_gradient to carry its value on",
           [] {
             Tensor w = ones({}).requires_grad(), h;
             {
               Tape tape;
               h = w * 2;
             }
             Tape tape;
             jacobian(squared, h);
           }},
      },
  };
}

}  // namespace reel_test
