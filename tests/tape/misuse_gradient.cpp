#include "misuse.h"

// Differentiating.

namespace reel_test {

using namespace reel;

MisuseGroup gradient_misuse() {
  return {
      "Asking for gradients",
      {
          {"tape.backward(loss); tape.backward(loss);",
           "TapeError: backward: the target () f32, computed at …, belongs to a tape that has finished or has been "
           "differentiated already; compute it again, or open the tape with {.persistent = true}",
           [] {
             Tensor w = ones({}).requires_grad();
             Tape tape;
             Tensor loss = w * w;
             tape.backward(loss);
             tape.backward(loss);
           }},
          {"tape.backward(square(w));  // w: (3,)",
           "TapeError: backward: the target (3,) f32 is not a single element; reduce it, or give its own gradient as "
           ".seed",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             tape.backward(square(w));
           }},
          {"tape.backward(square(w), {.seed = ones({2})});  // w: (3,)",
           "ShapeError: backward: the seed (2,) f32 does not fit the target (3,) f32; give one of its shape and dtype",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             tape.backward(square(w), {.seed = ones({2})});
           }},
          {"tape.backward(sum(x));  // x is neither a parameter nor watched",
           "TapeError: backward: the target () f32, computed at …, was computed from nothing that is tracked; call "
           "requires_grad() on a tensor that it depends on, or tape.watch, before it is computed",
           [] {
             Tensor x = ones({3});
             Tape tape;
             tape.backward(sum(x));
           }},
          {"Tensor loss = sum(w); Tape tape; tape.backward(loss);",
           "TapeError: backward: the target () f32, computed at …, was there before the tape was opened, so how it was "
           "computed is not on the tape; compute it while the tape is open",
           [] {
             Tensor w = ones({3}).requires_grad(), loss = sum(w);
             Tape tape;
             tape.backward(loss);
           }},
          {"Tape tape; { NoRecord pause; loss = sum(w); } tape.backward(loss);",
           "TapeError: backward: the target () f32, computed at …, was computed under NoRecord, so how is not on the "
           "tape; compute it outside of NoRecord",
           [] {
             Tensor w = ones({3}).requires_grad(), loss;
             Tape tape;
             {
               NoRecord pause;
               loss = sum(w);
             }
             tape.backward(loss);
           }},
          {"w.requires_grad(false); Tape tape; tape.backward(sum(w * 2));",
           "TapeError: backward: the target () f32, computed at …, depends on no parameter but frozen ones; call "
           "requires_grad() on one of them before it is used",
           [] {
             Tensor w = ones({3}).requires_grad();
             w.requires_grad(false);
             Tape tape;
             tape.backward(sum(w * 2));
           }},
          {"w.requires_grad(false); Tape tape; tape.backward(w);",
           "TapeError: backward: the target () f32, computed at …, is a frozen parameter; call requires_grad() on it "
           "before it is used",
           [] {
             Tensor w = ones({}).requires_grad();
             w.requires_grad(false);
             Tape tape;
             tape.backward(w);
           }},
          {"tape.backward(to(argmax(w), f32) * 2);",
           "TapeError: backward: the target () f32, computed at …, depends on what is tracked only through an op that "
           "has no gradient, such as argmax or a comparison; compute it with ops that have one",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             tape.backward(to(argmax(w), f32) * 2);
           }},
          {"tape.backward(sum(stop_gradient(w)));",
           "TapeError: backward: the target () f32, computed at …, depends on what is tracked only through "
           "stop_gradient; leave that out where the gradient is to flow",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             tape.backward(sum(stop_gradient(w)));
           }},
          {"tape.gradient(tape.gradient(y, w), w);  // no outer tape",
           "TapeError: gradient: the target () f32, computed at …, was computed by a tape that differentiated, which "
           "no other tape recorded; open an outer tape around that one, and ask it",
           [] {
             Tensor w = ones({}).requires_grad();
             Tape tape;
             tape.gradient(tape.gradient(w * w * w, w), w);
           }},
          {"Tensor y = w * 2; Tape inner; inner.gradient(y, w);",
           "TapeError: gradient: the target () f32, computed at …, is older than this tape; ask an outer tape",
           [] {
             Tensor w = ones({}).requires_grad();
             Tape tape;
             Tensor y = w * 2;
             Tape inner;
             inner.gradient(y, w);
           }},
          {"tape.backward(argmax(w));",
           "DTypeError: backward: takes a floating tensor, not () i64; convert it with to(x, f32)",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             tape.backward(argmax(w));
           }},
          {"tape.backward(Tensor{});", "Error: backward: an operand is an undefined tensor: it was never given a value",
           [] {
             Tape tape;
             tape.backward(Tensor{});
           }},
          {"tape.backward(3.0);",
           "DTypeError: backward: takes a tensor here, not the number 3; make one with full({}, number)",
           [] {
             Tape tape;
             tape.backward(3.0);
           }},
          {"tape.backward(y);  // y depends on watched tensors only",
           "TapeError: backward: the target () f32, computed at …, does not depend on any parameter; ask tape.gradient "
           "for the gradients of watched tensors",
           [] {
             Tensor x = ones({3});
             Tape tape;
             tape.watch(x);
             tape.backward(sum(x));
           }},
          {"Tensor view = reshape(loss, {}); mul_(loss, 2); tape.gradient(view, x);",
           "TapeError: gradient: the target () f32, computed at …, was overwritten at … through a tensor that shares "
           "its elements; give that tensor, or overwrite a copy",
           [] {
             Tensor x = ones({3});
             Tape tape;
             tape.watch(x);
             Tensor loss = sum(x * x), view = reshape(loss, {});
             mul_(loss, 2);
             tape.gradient(view, x);
           }},
          {"tape.gradient(y, x);  // x is neither a parameter nor watched",
           "TapeError: gradient: source 0, (3,) f32 made at …, is not tracked; call requires_grad() on it, or "
           "tape.watch before it is used",
           [] {
             Tensor x = ones({3}), w = ones({3}).requires_grad();
             Tape tape;
             tape.gradient(sum(x * w), x);
           }},
          {"tape.gradient(y, w, other);  // y is not computed from other",
           "TapeError: gradient: the target () f32 does not depend on source 1, (2,) f32 made at …; ask with "
           ".unconnected = Unconnected::zeros if zeros will do",
           [] {
             Tensor w = ones({3}).requires_grad(), other = ones({2}).requires_grad();
             Tape tape;
             tape.gradient(sum(w), w, other);
           }},
          {"tape.gradient(y, indices);  // i32",
           "DTypeError: gradient: source 0, (2,) i32 made at …, is not floating, and only floating tensors have "
           "gradients; convert it with to(x, f32) before it is used",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             tape.gradient(sum(w), tensor({1, 2}));
           }},
          {"tape.gradient(y, Tensor{});",
           "Error: gradient: source 0 is an undefined tensor: it was never given a value",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             tape.gradient(sum(w), Tensor{});
           }},
      },
  };
}

}  // namespace reel_test
