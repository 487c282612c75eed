#pragma once

#include <cstddef>
#include <cstdint>

#include <reel/detail/custom_form.h>
#include <reel/tensor.h>

namespace reel {

/// The inputs whose gradients are needed: what `gradient` of an op for `apply` may take as its last parameter.
class Wanted {
 public:
  /// Bit i: the gradient of input i is needed; for the library's own use.
  explicit Wanted(std::uint64_t inputs) : inputs_(inputs) {}
  /// True if the gradient of this input is needed; always for inputs from 64 on.
  bool operator[](std::size_t input) const { return input >= 64 || (inputs_ >> input & 1); }

 private:
  std::uint64_t inputs_;
};

/// y = forward(x…) with a custom gradient: dx… = backward(dy), backward(dy, x…) or backward(dy, y, x…), whichever can
/// be called. `name` is what errors call the op.
///
///     Tensor scaled(const Arg& x, double factor) {  // the gradient is multiplied by a factor
///       return custom_gradient([](const Tensor& x) { return x; }, [=](const Tensor& dy) { return factor * dy; }, x);
///     }
///     Tensor rounded(const Arg& x) {  // straight through: as if it were the identity
///       return custom_gradient([](const Tensor& x) { return round(x); }, [](const Tensor& dy) { return dy; }, x);
///     }
///     Tensor reversed(const Arg& x) {  // the gradient changes its sign
///       return custom_gradient([](const Tensor& x) { return x; }, [](const Tensor& dy) { return -dy; }, x);
///     }
///
/// `forward` takes a `const Tensor&` for each input and returns a Tensor or a std::array<Tensor, K>; nothing that it
/// does is recorded, and dy and y are of the type that it returns. `backward` returns a Tensor, or for several inputs a
/// std::array or std::vector of them; an undefined one says that no gradient flows to that input. It captures plain
/// data only, and can itself be differentiated, being written with ops on its arguments. Where `forward` ran within an
/// autocast scope, gradients of f32, bf16 and f16 are cast to the inputs' dtypes.
/// Throws: while a tape records, TapeError if `forward` overwrites an input, or uses a tracked tensor that is not among
/// its inputs, other than through stop_gradient; DTypeError if it returns no floating tensor. In a backward pass,
/// TapeError, ShapeError or DTypeError for gradients that do not fit the inputs.
template <class Forward, class Backward, class... More>
auto custom_gradient(const char* name, Forward forward, Backward backward, const Arg& x, const More&... more) {
  using Form = detail::FunctionForm<Forward, Backward, std::make_index_sequence<1 + sizeof...(More)>>;
  typename Form::Functions functions{forward, backward};
  const Arg inputs[] = {x, Arg(more)...};
  return detail::run_form<Form>(name, &functions, inputs);
}
/// y = forward(x…) with a custom gradient: dx… = backward(dy), backward(dy, x…) or backward(dy, y, x…), whichever can
/// be called. Errors call the op "custom_gradient".
///
///     Tensor reversed(const Arg& x) {  // the gradient changes its sign
///       return custom_gradient([](const Tensor& x) { return x; }, [](const Tensor& dy) { return -dy; }, x);
///     }
///
/// `forward` takes a `const Tensor&` for each input and returns a Tensor or a std::array<Tensor, K>; nothing that it
/// does is recorded. `backward` returns a Tensor, or for several inputs a std::array or std::vector of them; an
/// undefined one says that no gradient flows to that input. It captures plain data only, and can itself be
/// differentiated. Where `forward` ran within an autocast scope, gradients of f32, bf16 and f16 are cast to the inputs'
/// dtypes.
/// Throws: while a tape records, TapeError if `forward` overwrites an input, or uses a tracked tensor that is not among
/// its inputs, other than through stop_gradient; DTypeError if it returns no floating tensor. In a backward pass,
/// TapeError, ShapeError or DTypeError for gradients that do not fit the inputs.
template <class Forward, class Backward, class... More>
auto custom_gradient(Forward forward, Backward backward, const Arg& x, const More&... more) {
  return custom_gradient("custom_gradient", std::move(forward), std::move(backward), x, more...);
}

/// y = op.forward(saved, x…) with dx… = op.gradient(saved, dy): a struct with attributes, and typed saved values.
///
///     struct Spike {  // a step, whose gradient is that of a triangle of this width
///       static constexpr const char* name = "spike";
///       double width = 1;
///       struct Saved {
///         Tensor x;
///       };
///       Tensor forward(Saved& saved, const Tensor& x) const {
///         saved.x = x;
///         return to(x > 0, x.dtype());
///       }
///       Tensor gradient(const Saved& saved, const Tensor& dy) const {
///         return dy * clamp(1 - abs(saved.x) / width, 0, 1) / width;
///       }
///     };
///     Tensor s = apply(Spike{.width = 2}, x);
///
/// `forward` returns a Tensor or a std::array<Tensor, K>, and nothing that it does is recorded; `gradient` returns a
/// Tensor, or for several inputs a std::array or std::vector of them, undefined where no gradient flows, and can itself
/// be differentiated. `Saved` is a plain struct of at most eight members, each a Tensor or plain data; without it
/// neither function takes it. `gradient` may take a `Wanted` as its last parameter. A gradient of higher order cannot
/// flow back through what `forward` computed and saved, unless it returned it too; what is saved as stop_gradient(…) is
/// treated as a constant. An op that was written for the CPU by hand says `static constexpr bool cpu_only = true`, or
/// has `forward_cuda` and `gradient_cuda` beside the others.
/// Throws: while a tape records, TapeError if `forward` overwrites an input, or uses a tracked tensor that is not among
/// its inputs, other than through stop_gradient; DTypeError if it returns no floating tensor; DeviceError for inputs on
/// another device than a `cpu_only` op's. In a backward pass, TapeError, ShapeError or DTypeError for gradients that do
/// not fit the inputs, and TapeError for a gradient of higher order through a saved intermediate.
template <class Op, class... More>
auto apply(Op op, const Arg& x, const More&... more) {
  const Arg inputs[] = {x, Arg(more)...};
  const char* name = "apply";
  if constexpr (requires { Op::name; }) name = Op::name;
  return detail::run_form<detail::StructForm<Op, std::make_index_sequence<1 + sizeof...(More)>>>(name, &op, inputs);
}

}  // namespace reel
