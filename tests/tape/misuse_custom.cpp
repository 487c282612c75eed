#include "misuse.h"

// Custom gradients and checkpoints.

namespace reel_test {

using namespace reel;

namespace {

Tensor same(const Tensor& x) { return x; }

// Differentiates Σ f(x) for x (3,), where f has this gradient.
template <class Backward>
void with_gradient(Backward backward) {
  Tensor x = ones({3}).requires_grad();
  Tape tape;
  tape.backward(sum(custom_gradient(
      "mine", [](const Tensor& x) { return 2 * x; }, backward, x)));
}

// exp(x)², of which exp(x) is saved.
struct SquaredExponential {
  static constexpr const char* name = "squared_exponential";
  struct Saved {
    Tensor exponential;
  };
  Tensor forward(Saved& saved, const Tensor& x) const {
    saved.exponential = exp(x);
    return saved.exponential * saved.exponential;
  }
  Tensor gradient(const Saved& saved, const Tensor& dy) const { return 2 * dy * saved.exponential * saved.exponential; }
};

}  // namespace

MisuseGroup custom_misuse() {
  return {
      "Custom gradients and checkpoints",
      {
          {"custom_gradient([&](const Tensor& x) { return x * w; }, backward, x);  // w is a parameter",
           "TapeError: custom_gradient: its forward uses (3,) f32, made at …, which is tracked but not among its "
           "inputs, so that no gradient would flow back to it; pass it as an input, or use stop_gradient of it",
           [] {
             Tensor x = ones({3}), w = ones({3}).requires_grad();
             Tape tape;
             tape.watch(x);
             custom_gradient([&](const Tensor& x) { return x * w; }, same, x);
           }},
          {"custom_gradient([](const Tensor& x) { add_(x, 1); return x * 2; }, backward, x);",
           "TapeError: custom_gradient: its forward overwrote its input 0, …",
           [] {
             Tensor x = ones({3});
             Tape tape;
             tape.watch(x);
             custom_gradient(
                 [](const Tensor& x) {
                   add_(x, 1);
                   return x * 2;
                 },
                 same, x);
           }},
          {"custom_gradient([](const Tensor& x) { return to(x, i32); }, backward, x);",
           "DTypeError: custom_gradient: its forward returned (3,) i32, through which no gradient can flow back…",
           [] { custom_gradient([](const Tensor& x) { return to(x, i32); }, same, ones({3})); }},
          {"custom_gradient([](const Tensor&) { return Tensor{}; }, backward, x);",
           "Error: custom_gradient: its function returned an undefined tensor as result 0…",
           [] { custom_gradient([](const Tensor&) { return Tensor{}; }, same, ones({3})); }},
          {"[](const Tensor& dy) { return std::vector{dy, dy}; }  // as the gradient of an op of one input",
           "TapeError: mine: its gradient function returned 2 gradients for 1 inputs; return one for each, an "
           "undefined tensor where none flows",
           [] { with_gradient([](const Tensor& dy) {
                  return std::vector{dy, dy};
                }); }},
          {"[](const Tensor& dy) { return sum(dy); }  // as the gradient by an x (3,)",
           "ShapeError: mine: its gradient function returned () f32 for input 0, which is (3,) f32…",
           [] { with_gradient([](const Tensor& dy) { return sum(dy); }); }},
          {"[](const Tensor& dy) { return to(dy, f64); }  // as the gradient by an x in f32",
           "DTypeError: mine: its gradient function returned (3,) f64 for input 0, which is (3,) f32; convert it with "
           "to(gradient, f32)",
           [] { with_gradient([](const Tensor& dy) { return to(dy, f64); }); }},
          {"saved.exponential = exp(x);  // in a forward, and a second derivative is asked for",
           "TapeError: squared_exponential: a gradient of higher order has to flow back through member 0 of what its "
           "forward saved…",
           [] {
             Tensor x = ones({3});
             Tape outer;
             outer.watch(x);
             Tensor first;
             {
               Tape inner;
               first = inner.gradient(sum(apply(SquaredExponential{}, x)), x);
             }
             outer.gradient(sum(first), x);
           }},
          {"checkpoint([](const Tensor& x) { add_(x, 1); return x * 2; }, x);",
           "TapeError: checkpoint: its function overwrote its input 0…",
           [] {
             Tensor x = ones({3});
             Tape tape;
             tape.watch(x);
             checkpoint(
                 [](const Tensor& x) {
                   add_(x, 1);
                   return x * 2;
                 },
                 x);
           }},
          {"checkpoint([&](const Tensor& x) { return add_(h, x); }, x);  // h was computed outside",
           "TapeError: add_: (3,) f32, computed at …, comes from outside the function that overwrites it, and is "
           "tracked there; overwrite a copy",
           [] {
             Tensor x = ones({3}), w = ones({3}).requires_grad();
             Tape tape;
             tape.watch(x);
             Tensor h = w * 2;
             checkpoint([&](const Tensor& x) { return add_(h, x); }, x);
           }},
          {"checkpoint([&](const Tensor& x) { add_(total, x); return x * 2; }, x);  // total was made outside",
           "TapeError: add_: (3,) f32, made at …, comes from outside the function of a checkpoint or of a custom "
           "gradient that runs now, so that no gradient would flow back through it; return what is to be written, or "
           "write under NoRecord what needs no gradient",
           [] {
             Tensor x = ones({3}), total = zeros({3});
             Tape tape;
             tape.watch(x);
             checkpoint(
                 [&](const Tensor& x) {
                   add_(total, x);
                   return x * 2;
                 },
                 x);
           }},
          {"checkpoint([&](const Tensor&) { return w; }, x);  // w is a parameter",
           "TapeError: checkpoint: its function returned (3,) f32, …, which is tracked and is not among its inputs…",
           [] {
             Tensor x = ones({3}), w = ones({3}).requires_grad();
             Tape tape;
             tape.watch(x);
             checkpoint([&](const Tensor&) { return w; }, x);
           }},
          {"checkpoint([&](const Tensor& x) { return dropout(x, {.generator = &own}); }, x);",
           "TapeError: checkpoint: its function, run again for the gradient, gave another result 0, (64,) f32, than "
           "the first time…",
           [] {
             Tensor x = ones({64}).requires_grad();
             Generator own(5);
             Tape tape;
             tape.backward(sum(checkpoint([&](const Tensor& x) { return dropout(x, {.generator = &own}); }, x)));
           }},
          {"checkpoint([&](const Tensor& x) { return again++ ? x * w : x * 1; }, x);",
           "TapeError: checkpoint: its function, run again for the gradient, uses (3,) f32, made at …, which is "
           "tracked and was not used the first time; let it do the same each time",
           [] {
             Tensor x = ones({3}).requires_grad(), w = ones({3}).requires_grad();
             int again = 0;
             Tape tape;
             Tensor y = checkpoint([&](const Tensor& x) { return again++ ? x * w : x * 1; }, x);
             tape.backward(sum(y));
           }},
          {"checkpoint(f, x); w.write<float>()[0] = 9;  // f uses the parameter w",
           "TapeError: checkpoint: its gradient needs what its function uses, (3,) f32, made at …, but that was "
           "overwritten at … after this op had used it; overwrite a copy, or differentiate before overwriting",
           [] {
             Tensor x = ones({3}).requires_grad(), w = ones({3}).requires_grad();
             Tape tape;
             Tensor y = checkpoint([&](const Tensor& x) { return x * w; }, x);
             w.write<float>()[0] = 9;
             tape.backward(sum(y));
           }},
          {"checkpoint([&](const Tensor& x) { return tape.gradient(sum(h), w) * x; }, x);  // the tape outside",
           "TapeError: gradient: this tape was opened outside the function of a checkpoint or of a custom gradient "
           "that runs now; use it outside, or open one in the function",
           [] {
             Tensor x = ones({3}).requires_grad(), w = ones({3}).requires_grad();
             Tape tape;
             Tensor h = w * 2;
             checkpoint([&](const Tensor& x) { return tape.gradient(sum(h), w) * x; }, x);
           }},
      },
  };
}

}  // namespace reel_test
