#include "misuse.h"

// Tensors that a tape cannot track.

namespace reel_test {

using namespace reel;

MisuseGroup tensor_misuse() {
  return {
      "Tapes and tensors",
      {
          {"auto tape = new Tape;", "does not compile: a tape is a scope, on the stack only", {}},
          {"Tape moved = std::move(tape);", "does not compile: a tape can be neither copied nor moved", {}},
          {"NoRecord pause; Tape inner;  // while another tape is open",
           "TapeError: Tape: cannot open inside NoRecord or a hook while an outer tape is open, because that tape "
           "would see what this one records; open it outside",
           [] {
             Tape tape;
             NoRecord pause;
             Tape inner;
           }},
          {"h * w;  // h was computed on a tape that has ended",
           "TapeError: mul: operand (3,) f32, computed at …, belongs to a tape that has finished, so no gradient can "
           "flow back through it; use stop_gradient to carry its value on",
           [] {
             Tensor w = ones({3}).requires_grad(), h;
             {
               Tape tape;
               h = w * 2;
             }
             Tape tape;
             h* w;
           }},
          {"Tensor h = x * 2; tape.watch(x);",
           "TapeError: watch: (3,) f32, made at …, was used by mul at … while a tape recorded, so that its gradient "
           "would lack that use; call watch before the first use, or use stop_gradient of it there if it is to be a "
           "constant",
           [] {
             Tensor x = ones({3});
             Tape tape;
             Tensor h = x * 2;
             tape.watch(x);
           }},
          {"Tensor h = x * w; { Tape inner; inner.watch(x); } tape.gradient(h * x, x);",
           "TapeError: gradient: (3,) f32, made at …, was used by mul at … while a tape recorded, so that its gradient "
           "would lack that use; call watch before the first use, or use stop_gradient of it there if it is to be a "
           "constant",
           [] {
             Tensor x = ones({3}), w = ones({3}).requires_grad();
             Tape tape;
             Tensor h = x * w;
             {
               Tape inner;
               inner.watch(x);
             }
             tape.gradient(h * x, x);
           }},
          {"Tape tape; Tensor h = x * 2; x.requires_grad();",
           "TapeError: requires_grad: (3,) f32, made at …, was used by mul at … while a tape recorded, so that its "
           "gradient would lack that use; call requires_grad before the first use, or use stop_gradient of it there if "
           "it is to be a constant",
           [] {
             Tensor x = ones({3});
             Tape tape;
             Tensor h = x * 2;
             x.requires_grad();
           }},
          {"tape.watch(indices);  // i32",
           "DTypeError: watch: takes a floating tensor, not (2,) i32; convert it with to(x, f32)",
           [] {
             Tape tape;
             tape.watch(tensor({1, 2}));
           }},
          {"tape.watch(Tensor{});", "Error: watch: an operand is an undefined tensor: it was never given a value",
           [] {
             Tape tape;
             tape.watch(Tensor{});
           }},
          {"(w * 2).requires_grad();  // while a tape is open",
           "TapeError: requires_grad: (3,) f32 was computed at … on an open tape and is no parameter; use tape.watch, "
           "or stop_gradient first",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             (w * 2).requires_grad();
           }},
          {"tensor({1, 2}).requires_grad();",
           "DTypeError: requires_grad: takes a floating tensor, not (2,) i32; convert it with to(x, f32)",
           [] {
             tensor({1, 2}).requires_grad();
           }},
          {"x.set_grad(ones({3}));  // x is no parameter",
           "TapeError: set_grad: (3,) f32 is no parameter; call requires_grad() on it first",
           [] { ones({3}).set_grad(ones({3})); }},
          {"w.set_grad(ones({2}));  // w: (3,)",
           "ShapeError: set_grad: a gradient of (2,) f32 does not fit the parameter (3,) f32; it must have its shape",
           [] { ones({3}).requires_grad().set_grad(ones({2})); }},
          {"w.set_grad(ones({3}, {.dtype = f64}));  // w: f32",
           "DTypeError: set_grad: a gradient of (3,) f64 does not fit the parameter (3,) f32; convert it with to(x, "
           "f32)",
           [] { ones({3}).requires_grad().set_grad(ones({3}, {.dtype = f64})); }},
      },
  };
}

}  // namespace reel_test
