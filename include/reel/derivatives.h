#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <reel/tensor.h>

/// \file
/// Derivatives of a function f, any C++ that computes a tensor from tensors, at given inputs. Inputs are one tensor,
/// for f(x); several in braces, for f(x, w); or a span or vector, for f of a span. The result has a part for each:
///
///     Tensor j = jacobian([&](const Tensor& x) { return tanh(matmul(x, w)); }, x);
///     auto [jx, jw] = jacobian([](const Tensor& x, const Tensor& w) { return tanh(matmul(x, w)); }, {x, w});
///
/// Derivatives are with respect to the inputs alone: all else that f uses, parameters too, is a constant to them, and
/// an input that f's result does not depend on has derivatives of 0. Tapes that are open around the call record the
/// results, which depend on the inputs and on what f captures, so these functions nest to derivatives of any order.
///
/// All throw Error for an undefined input or result; DTypeError for one that is not floating; TapeError if f overwrites
/// an input, for an input of a finished tape while an outer one records, and under NoRecord while an outer one is open.

namespace reel {

/// A function of several tensors that returns one.
using TensorFunction = std::function<Tensor(std::span<const Tensor>)>;

/// The value of a function, and a product with its derivatives; for several inputs, one product for each.
template <class Product>
struct ValueAndProduct {
  Tensor value;     ///< y = f(x…)
  Product product;  ///< the product, or an array or vector of one for each input
};

namespace detail {

using Inputs = std::span<const Tensor>;
using Products = ValueAndProduct<std::vector<Tensor>>;
std::vector<Tensor> jacobian(const TensorFunction& f, Inputs inputs, bool forward, Location where);
Tensor batch_jacobian(const TensorFunction& f, const Tensor& x, Location where);
std::vector<std::vector<Tensor>> hessian(const TensorFunction& f, Inputs inputs, Location where);
Products hvp(const TensorFunction& f, Inputs inputs, Inputs directions, Location where);
Products vjp(const TensorFunction& f, Inputs inputs, const Tensor& seed, Location where);
ValueAndProduct<Tensor> jvp(const TensorFunction& f, Inputs inputs, Inputs tangents, Location where);

template <class F, class Operand, class Numbers>
inline constexpr bool takes = false;
template <class F, class Operand, std::size_t... i>
inline constexpr bool takes<F, Operand, std::index_sequence<i...>> =
    std::is_invocable_r_v<Tensor, F&, decltype((void(i), std::declval<const Operand&>()))...>;

struct OnlyArg {
  operator Arg() const;
};
/// Takes operands with their locations, as a module does, so that its caller's can be passed on.
template <class F, std::size_t count>
concept TakesPlaces = requires { &F::operator(); } && takes<F, OnlyArg, std::make_index_sequence<count>>;

/// A function of `count` tensors, called at `where`, as one of a span.
template <std::size_t count, class F>
TensorFunction of_span(F& f, Location where) {
  return [=, &f](Inputs x) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) -> Tensor {
      if constexpr (TakesPlaces<F, count>)
        return f(Arg(x[i], where)...);
      else
        return f(x[i]...);
    }(std::make_index_sequence<count>());
  };
}

template <std::size_t count, class T>
auto as_array(std::vector<T> list) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return std::array<T, count>{std::move(list[i])...};
  }(std::make_index_sequence<count>());
}
template <std::size_t count>
ValueAndProduct<std::array<Tensor, count>> as_array(Products found) {
  return {std::move(found.value), as_array<count>(std::move(found.product))};
}
inline ValueAndProduct<Tensor> only(Products found) {
  return {std::move(found.value), std::move(found.product.front())};
}

}  // namespace detail

/// A function that takes `count` tensors, one by one, and returns one.
template <class F, std::size_t count>
concept FunctionOf = detail::takes<F, Tensor, std::make_index_sequence<count>>;
/// A function that takes a span of tensors, and returns one.
template <class F>
concept FunctionOfSpan = std::is_invocable_r_v<Tensor, F&, std::span<const Tensor>>;
/// A list of tensors: a vector, an array or a span.
template <class T>
concept TensorList = std::convertible_to<const T&, std::span<const Tensor>>;

/// Options of `jacobian` of a function.
struct FunctionJacobianOptions {
  /// Computes the Jacobian column by column, with one reverse pass through f's gradient for each element of the inputs,
  /// instead of row by row, with one through f for each element of y: faster where y has many more elements. Default
  /// false.
  bool forward = false;
};

/// Returns the Jacobian J[o…, i…] = ∂f(x)[o…] / ∂x[i…] with respect to the input x: y = f(x) (o…), x (i…) → (o…, i…).
/// One reverse pass for each element of y, or with
/// `.forward` for each of the inputs.
/// Throws: Error for an undefined input or result; DTypeError for one that is not floating; TapeError if f overwrites
/// an input; ShapeError if y and an input have more than 8 axes together.
template <FunctionOf<1> F>
Tensor jacobian(F&& f, const Tensor& x, FunctionJacobianOptions options = {}, Location where = Location::here()) {
  return std::move(detail::jacobian(detail::of_span<1>(f, where), {&x, 1}, options.forward, where).front());
}
/// Returns the Jacobian J[o…, i…] = ∂f(x)[o…] / ∂x[i…] with respect to each of several inputs, `{x, w}`: y = f(x) (o…),
/// x (i…) → (o…, i…). One reverse pass for each element of y, or with
/// `.forward` for each of the inputs.
/// Throws: Error for an undefined input or result; DTypeError for one that is not floating; TapeError if f overwrites
/// an input; ShapeError if y and an input have more than 8 axes together.
template <class F, std::size_t count>
  requires(count > 1 && FunctionOf<F, count>)
std::array<Tensor, count> jacobian(F&& f, const Tensor (&inputs)[count], FunctionJacobianOptions options = {},
                                   Location where = Location::here()) {
  return detail::as_array<count>(detail::jacobian(detail::of_span<count>(f, where), inputs, options.forward, where));
}
/// Returns the Jacobian J[o…, i…] = ∂f(x)[o…] / ∂x[i…] with respect to each tensor of a list, for an f of a span: y =
/// f(x) (o…), x (i…) → (o…, i…). One reverse pass for each element of y, or with
/// `.forward` for each of the inputs.
/// Throws: Error for an undefined input or result; DTypeError for one that is not floating; TapeError if f overwrites
/// an input; ShapeError if y and an input have more than 8 axes together.
template <TensorList Inputs, FunctionOfSpan F>
std::vector<Tensor> jacobian(F&& f, const Inputs& inputs, FunctionJacobianOptions options = {},
                             Location where = Location::here()) {
  return detail::jacobian(std::ref(f), inputs, options.forward, where);
}

/// Returns the Jacobian of each example: x (N, i…), y = f(x) (N, o…) → (N, o…, i…). One reverse pass for each element
/// of one example, which is right only if f does not mix examples: y[n] must depend on x[n] alone.
/// Throws: Error for an undefined input or result; DTypeError for one that is not floating; TapeError if f overwrites
/// an input; ShapeError unless y has N examples too, or for more than 8 axes together.
template <FunctionOf<1> F>
Tensor batch_jacobian(F&& f, const Tensor& x, Location where = Location::here()) {
  return detail::batch_jacobian(detail::of_span<1>(f, where), x, where);
}

/// Returns the Hessian H[a…, b…] = ∂²f / ∂x[a…] ∂x[b…] of an f of one input; f returns a single element. One reverse
/// pass through f and its gradient for each element of the inputs.
/// Throws: Error for an undefined input or result; DTypeError for one that is not floating; TapeError if f overwrites
/// an input; ShapeError for an f that returns more than one element, and if two inputs have more than 8 axes together.
template <FunctionOf<1> F>
Tensor hessian(F&& f, const Tensor& x, Location where = Location::here()) {
  return std::move(detail::hessian(detail::of_span<1>(f, where), {&x, 1}, where).front().front());
}
/// Returns the Hessian H_jk[a…, b…] = ∂²f / ∂x_j[a…] ∂x_k[b…] of an f of several inputs, `{x, w}`: block [j][k] for
/// inputs j and k; f returns a single element. One reverse pass through f and its gradient for each element of the
/// inputs.
/// Throws: Error for an undefined input or result; DTypeError for one that is not floating; TapeError if f overwrites
/// an input; ShapeError for an f that returns more than one element, and if two inputs have more than 8 axes together.
template <class F, std::size_t count>
  requires(count > 1 && FunctionOf<F, count>)
std::array<std::array<Tensor, count>, count> hessian(F&& f, const Tensor (&inputs)[count],
                                                     Location where = Location::here()) {
  auto blocks = detail::hessian(detail::of_span<count>(f, where), inputs, where);
  std::array<std::array<Tensor, count>, count> found;
  for (std::size_t j = 0; j < count; ++j) found[j] = detail::as_array<count>(std::move(blocks[j]));
  return found;
}
/// Returns the Hessian H_jk[a…, b…] = ∂²f / ∂x_j[a…] ∂x_k[b…] of an f of a span: block [j][k] for inputs j and k; f
/// returns a single element. One reverse pass through f and its gradient for each element of the inputs.
/// Throws: Error for an undefined input or result; DTypeError for one that is not floating; TapeError if f overwrites
/// an input; ShapeError for an f that returns more than one element, and if two inputs have more than 8 axes together.
template <TensorList Inputs, FunctionOfSpan F>
std::vector<std::vector<Tensor>> hessian(F&& f, const Inputs& inputs, Location where = Location::here()) {
  return detail::hessian(std::ref(f), inputs, where);
}

/// Returns f's value and the Hessian's product H v with a direction v, of the shape of the input x. The Hessian is
/// never formed: two reverse passes, and memory in proportion to that of f's gradient.
/// Throws: Error for an undefined input or result; DTypeError for one that is not floating; TapeError if f overwrites
/// an input; ShapeError for an f that returns more than one element, and for a direction that does not fit its input.
template <FunctionOf<1> F>
ValueAndProduct<Tensor> hvp(F&& f, const Tensor& x, const Tensor& direction, Location where = Location::here()) {
  return detail::only(detail::hvp(detail::of_span<1>(f, where), {&x, 1}, {&direction, 1}, where));
}
/// Returns f's value and the Hessian's product H v with a direction v, of the shape of each of several inputs, `{x,
/// w}`. The Hessian is never formed: two reverse passes, and memory in proportion to that of f's gradient.
/// Throws: Error for an undefined input or result; DTypeError for one that is not floating; TapeError if f overwrites
/// an input; ShapeError for an f that returns more than one element, and for a direction that does not fit its input.
template <class F, std::size_t count>
  requires(count > 1 && FunctionOf<F, count>)
ValueAndProduct<std::array<Tensor, count>> hvp(F&& f, const Tensor (&inputs)[count], const Tensor (&directions)[count],
                                               Location where = Location::here()) {
  return detail::as_array<count>(detail::hvp(detail::of_span<count>(f, where), inputs, directions, where));
}
/// Returns f's value and the Hessian's product H v with a direction v, of the shape of each tensor of a list, for an f
/// of a span. The Hessian is never formed: two reverse passes, and memory in proportion to that of f's gradient.
/// Throws: Error for an undefined input or result; DTypeError for one that is not floating; TapeError if f overwrites
/// an input; ShapeError for an f that returns more than one element, and for a direction that does not fit its input.
template <TensorList Inputs, FunctionOfSpan F>
ValueAndProduct<std::vector<Tensor>> hvp(F&& f, const Inputs& inputs, std::span<const Tensor> directions,
                                         Location where = Location::here()) {
  return detail::hvp(std::ref(f), inputs, directions, where);
}

/// Returns f's value y and the product of a seed, of y's shape, with the Jacobian: Σ_o seed[o…] J[o…, i…] for the input
/// x. One reverse pass. It can be differentiated with respect to the seed too.
/// Throws: Error for an undefined input or result; DTypeError for one that is not floating; TapeError if f overwrites
/// an input; ShapeError for a seed that does not fit y.
template <FunctionOf<1> F>
ValueAndProduct<Tensor> vjp(F&& f, const Tensor& x, const Tensor& seed, Location where = Location::here()) {
  return detail::only(detail::vjp(detail::of_span<1>(f, where), {&x, 1}, seed, where));
}
/// Returns f's value y and the product of a seed, of y's shape, with the Jacobian: Σ_o seed[o…] J[o…, i…] for each of
/// several inputs, `{x, w}`. One reverse pass. It can be differentiated with respect to the seed too.
/// Throws: Error for an undefined input or result; DTypeError for one that is not floating; TapeError if f overwrites
/// an input; ShapeError for a seed that does not fit y.
template <class F, std::size_t count>
  requires(count > 1 && FunctionOf<F, count>)
ValueAndProduct<std::array<Tensor, count>> vjp(F&& f, const Tensor (&inputs)[count], const Tensor& seed,
                                               Location where = Location::here()) {
  return detail::as_array<count>(detail::vjp(detail::of_span<count>(f, where), inputs, seed, where));
}
/// Returns f's value y and the product of a seed, of y's shape, with the Jacobian: Σ_o seed[o…] J[o…, i…] for each
/// tensor of a list, for an f of a span. One reverse pass. It can be differentiated with respect to the seed too.
/// Throws: Error for an undefined input or result; DTypeError for one that is not floating; TapeError if f overwrites
/// an input; ShapeError for a seed that does not fit y.
template <TensorList Inputs, FunctionOfSpan F>
ValueAndProduct<std::vector<Tensor>> vjp(F&& f, const Inputs& inputs, const Tensor& seed,
                                         Location where = Location::here()) {
  return detail::vjp(std::ref(f), inputs, seed, where);
}

/// Returns f's value y and the Jacobian's product with a tangent v, of the shape of the input x: Σ_i J[o…, i…] v[i…],
/// summed over the inputs, of y's shape. Two reverse passes: the product of a seed with J is linear in the seed, and is
/// differentiated with respect to it.
/// Throws: Error for an undefined input or result; DTypeError for one that is not floating; TapeError if f overwrites
/// an input; ShapeError for a tangent that does not fit its input.
template <FunctionOf<1> F>
ValueAndProduct<Tensor> jvp(F&& f, const Tensor& x, const Tensor& tangent, Location where = Location::here()) {
  return detail::jvp(detail::of_span<1>(f, where), {&x, 1}, {&tangent, 1}, where);
}
/// Returns f's value y and the Jacobian's product with a tangent v, of the shape of each of several inputs, `{x, w}`:
/// Σ_i J[o…, i…] v[i…], summed over the inputs, of y's shape. Two reverse passes: the product of a seed with J is
/// linear in the seed, and is differentiated with respect to it.
/// Throws: Error for an undefined input or result; DTypeError for one that is not floating; TapeError if f overwrites
/// an input; ShapeError for a tangent that does not fit its input.
template <class F, std::size_t count>
  requires(count > 1 && FunctionOf<F, count>)
ValueAndProduct<Tensor> jvp(F&& f, const Tensor (&inputs)[count], const Tensor (&tangents)[count],
                            Location where = Location::here()) {
  return detail::jvp(detail::of_span<count>(f, where), inputs, tangents, where);
}
/// Returns f's value y and the Jacobian's product with a tangent v, of the shape of each tensor of a list, for an f of
/// a span: Σ_i J[o…, i…] v[i…], summed over the inputs, of y's shape. Two reverse passes: the product of a seed with J
/// is linear in the seed, and is differentiated with respect to it.
/// Throws: Error for an undefined input or result; DTypeError for one that is not floating; TapeError if f overwrites
/// an input; ShapeError for a tangent that does not fit its input.
template <TensorList Inputs, FunctionOfSpan F>
ValueAndProduct<Tensor> jvp(F&& f, const Inputs& inputs, std::span<const Tensor> tangents,
                            Location where = Location::here()) {
  return detail::jvp(std::ref(f), inputs, tangents, where);
}

}  // namespace reel
