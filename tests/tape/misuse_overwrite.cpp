#include "misuse.h"

// Overwriting values that a tape needs.

namespace reel_test {

using namespace reel;

MisuseGroup overwrite_misuse() {
  return {
      "Overwriting",
      {
          {"Tensor y = w * w; w.write<float>()[0] = 5; tape.backward(sum(y));",
           "TapeError: mul: its gradient needs input … (3,) f32, made at …, but that was overwritten at … after this "
           "op had used it; overwrite a copy, or differentiate before overwriting",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             Tensor y = w * w;
             w.write<float>()[0] = 5;
             tape.backward(sum(y));
           }},
          {"Tensor y = exp(w); add_(y, 1); tape.backward(sum(y));",
           "TapeError: exp: its gradient needs its result (3,) f32, made at …, but that was overwritten at … after "
           "this op had used it; overwrite a copy, or differentiate before overwriting",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             Tensor y = exp(w);
             add_(y, 1);
             tape.backward(sum(y));
           }},
          {"Writer<float> writer = x.write<float>(); tape.gradient(sum(x * w), w);",
           "TapeError: mul: its gradient needs input 0 (3,) f32, made at …, but the guard that writes to it, from …, "
           "is still alive; end the guard before the tensor is used",
           [] {
             Tensor x = ones({3}), w = ones({3}).requires_grad();
             Tape tape;
             Writer<float> writer = x.write<float>();
             tape.gradient(sum(x * w), w);
           }},
          {"(w * 2).write<float>();",
           "TapeError: write: (3,) f32, computed at …, is tracked by an open tape, whose gradients would be those of "
           "the old values; write to a copy",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             (w * 2).write<float>();
           }},
          {"tape.watch(x); x.write<float>();",
           "TapeError: write: (3,) f32, made at …, is tracked by an open tape, whose gradients would be those of the "
           "old values; write to a copy",
           [] {
             Tensor x = ones({3});
             Tape tape;
             tape.watch(x);
             x.write<float>();
           }},
          {"tape.watch(x); add_(x, 1);",
           "TapeError: add_: (3,) f32, made at …, is watched by an open tape, and its gradient would be that of the "
           "old values; overwrite a copy, or watch it afterwards",
           [] {
             Tensor x = ones({3});
             Tape tape;
             tape.watch(x);
             add_(x, 1);
           }},
          {"w -= 0.1;  // a parameter, while a tape is open",
           "TapeError: sub_: (3,) f32, made at …, is a parameter, whose gradient would be that of the old values; "
           "overwrite it under NoRecord, or overwrite a copy",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             w -= 0.1;
           }},
          {"Tensor row = h(0); h *= 2; row * 2;",
           "TapeError: mul: operand (2,) f32, made at …, is tracked by an open tape but was overwritten at … through a "
           "tensor that shares its elements; use that one from then on, or overwrite a copy",
           [] {
             Tensor w = ones({3, 2}).requires_grad();
             Tape tape;
             Tensor h = w * 3, row = h(0);
             h *= 2;
             row * 2;
           }},
          {"Tensor row = buffer(0); copy_(row, h); sum(buffer);",
           "TapeError: sum: operand (3, 2) f32, made at …, shares its elements with a tensor of an open tape, into "
           "which values were written, last at …, and their gradients could not flow back through it; write to it as a "
           "whole or as x(…) = y, or use the tensor that was written to",
           [] {
             Tensor w = ones({2}).requires_grad(), buffer = zeros({3, 2});
             Tape tape;
             Tensor h = w * 2, row = buffer(0);
             copy_(row, h);
             sum(buffer);
           }},
          {"buffer * w;  // a tape that has ended had values written to a view of it",
           "TapeError: mul: operand (3, 2) f32, made at …, shares its elements with a tensor of a tape that has "
           "finished, into which values were written, last at …, so no gradient can flow back through it; use "
           "stop_gradient to carry its values on, or overwrite it as a whole",
           [] {
             Tensor w = ones({2}).requires_grad(), buffer = zeros({3, 2}), row = buffer(0);
             {
               Tape tape;
               copy_(row, w * 2);
             }
             Tape tape;
             buffer* w;
           }},
      },
  };
}

}  // namespace reel_test
