#include "misuse.h"

// Hooks and traces.

namespace reel_test {

using namespace reel;

namespace {

// Differentiates Σ x² with a hook on x.
template <class F>
void with_hook(F f) {
  Tensor x = ones({3});
  Tape tape;
  tape.watch(x);
  tape.hook(x, f);
  tape.gradient(sum(x * x), x);
}

}  // namespace

MisuseGroup hook_misuse() {
  return {
      "Hooks and traces",
      {
          {"tape.hook(x, f);  // x is neither a parameter nor watched",
           "TapeError: hook: (3,) f32, made at …, is not tracked; call requires_grad() on it, or tape.watch first",
           [] {
             Tape tape;
             tape.hook(ones({3}), [](const Tensor&) {});
           }},
          {"tape.hook(indices, f);  // i32",
           "DTypeError: hook: takes a floating tensor, not (2,) i32; convert it with to(x, f32)",
           [] {
             Tape tape;
             tape.hook(tensor({1, 2}), [](const Tensor&) {});
           }},
          {"tape.hook(w, GradientHook{});", "Error: hook: the function for the gradient of (3,) f32 is empty",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             tape.hook(w, GradientHook{});
           }},
          {"tape.hook(x, [](const Tensor& gradient) { return sum(gradient); });  // x: (3,)",
           "ShapeError: hook: the hook gave () f32 on cpu for the gradient of the hooked tensor, which is (3,) f32 on "
           "cpu; give one that fits",
           [] { with_hook([](const Tensor& gradient) { return sum(gradient); }); }},
          {"tape.hook(x, [](const Tensor& gradient) { return to(gradient, f64); });  // x: f32",
           "DTypeError: hook: the hook gave (3,) f64 on cpu for the gradient of the hooked tensor, which is (3,) f32 "
           "on cpu; give one that fits",
           [] { with_hook([](const Tensor& gradient) { return to(gradient, f64); }); }},
          {"tape.hook(x, [](const Tensor& gradient) { mul_(gradient, 2); });",
           "TapeError: hook: the hook overwrote the gradient (3,) f32 that it was given, at …, and others may share "
           "its elements; return a new tensor instead",
           [] { with_hook([](const Tensor& gradient) { mul_(gradient, 2); }); }},
          {"tape.hook(w, [&](const Tensor&) { tape.backward(loss); });",
           "TapeError: backward: the tape is being differentiated, so what runs meanwhile, such as a hook, cannot use "
           "it; do it afterwards",
           [] {
             Tensor w = ones({}).requires_grad();
             Tape tape;
             Tensor loss = w * w;
             tape.hook(w, [&](const Tensor&) { tape.backward(loss); });
             tape.backward(loss);
           }},
          {"tape.hook_op(\"rellu\", f);",
           "Error: hook_op: there is no op named 'rellu'; debug::ops() lists all, and a "
           "custom one is known when it has run",
           [] {
             Tape tape;
             tape.hook_op("rellu", [](const OpGradients&) {});
           }},
          {"tape.hook_op(\"einsum\", f);",
           "Error: hook_op: einsum is composed of other ops and leaves no entry of its own; hook those",
           [] {
             Tape tape;
             tape.hook_op("einsum", [](const OpGradients&) {});
           }},
          {"tape.hook_op(\"argmax\", f);", "Error: hook_op: argmax has no gradient, so a tape never holds one",
           [] {
             Tape tape;
             tape.hook_op("argmax", [](const OpGradients&) {});
           }},
          {"tape.hook_op(\"relu\", [](const OpGradients& g) { g.inputs[0] = ones({2}); });  // of a (3,)",
           "ShapeError: hook_op: the hook gave (2,) f32 on cpu for the gradient of input 0 of relu, which is (3,) f32 "
           "on cpu; give one that fits",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             tape.hook_op("relu", [](const OpGradients& g) { g.inputs[0] = ones({2}); });
             tape.backward(sum(relu(w)));
           }},
          {"tape.trace(x);  // x is neither a parameter nor watched",
           "TapeError: trace: (3,) f32, made at …, is not tracked; call requires_grad() on it, or tape.watch first",
           [] {
             Tape tape;
             tape.trace(ones({3}));
           }},
          {"tape.backward(sum(h)); tape.trace(h);",
           "TapeError: trace: operand (3,) f32, computed at …, belongs to a tape that has finished, so no gradient can "
           "flow back through it; use stop_gradient to carry its value on",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             Tensor h = w * 2;
             tape.backward(sum(h));
             tape.trace(h);
           }},
          {"truncate(indices);  // i32",
           "DTypeError: truncate: takes a floating tensor, not (2,) i32; convert it with to(x, f32)",
           [] {
             truncate(tensor({1, 2}));
           }},
      },
  };
}

}  // namespace reel_test
