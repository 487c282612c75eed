#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <reel/detail/immovable.h>
#include <reel/named_tensor.h>
#include <reel/nn/module.h>

namespace reel::detail {

template <class Input>
decltype(auto) with_place(const Input& input, Location where) {
  if constexpr (std::convertible_to<const Input&, const Tensor&>)
    return Arg(input, where);
  else
    return (input);
}

/// True if tensors can be passed to a model with the line of the call.
template <class M, class... Inputs>
constexpr bool takes_places =
    std::is_invocable_v<M&, decltype(with_place(std::declval<const Inputs&>(), Location()))...>;

/// model(inputs…), called from the given location if it takes one.
template <class M, class... Inputs>
auto call_at(M& model, Location where, const Inputs&... inputs) {
  if constexpr (takes_places<M, Inputs...>)
    return model(with_place(inputs, where)...);
  else
    return model(inputs...);
}

}  // namespace reel::detail

namespace reel::nn {

/// While it lives, a module computes with other tensors in the place of its parameters and buffers, such as parameters
/// after a step of learning that is itself differentiated:
///
///     nn::ReplacedParameters scope(model, fast);
///     Tensor loss = mse_loss(model(x), y);   // depends on the tensors of the list `fast`
///
/// Results depend on these tensors, and a tape differentiates by them to any order. Parameters not named stay; a
/// parameter that the module has under several names is replaced under all of them. Until the scope ends, no other
/// thread may use the module, which must not be moved, converted or assigned to either; scopes nest. In an example of
/// batch_map, ops run alone until the scope ends, because other examples use the module, too. `functional_call` leaves
/// the module as it is.
class ReplacedParameters : detail::Immovable {
 public:
  /// Puts the tensors in place; after an exception the module is as it was.
  /// Throws: Error for a name that the module has not, an undefined tensor, and two tensors for one parameter;
  /// ShapeError, DTypeError, DeviceError unless a tensor has the shape, dtype and device of what it replaces.
  ReplacedParameters(const Module& module, std::span<const NamedTensor> tensors, Location where = Location::here());
  /// Gives the module its own tensors back.
  ~ReplacedParameters();

  /// Returns the tensors that replace those of a module, ascending by the module's own.
  /// Throws: Error for a name that the module has not, an undefined tensor, and two tensors for one parameter;
  /// ShapeError, DTypeError, DeviceError unless a tensor has the shape, dtype and device of what it replaces.
  static std::vector<Replacement> find(const Module& module, std::span<const NamedTensor> tensors, Location where);

 private:
  struct Place {
    Member* member;
    Tensor own;
  };
  struct Search;  // finds the parts of a module by their names
  std::vector<Place> places_;
  bool ran_alone_ = false;  // the ops of the example of batch_map
};

/// While it lives, an op of this thread that uses a replaced tensor is an error: a copy of a module has no part to which a
/// pointer or a reference in it leads.
class ReplacedGuard : detail::Immovable {
 public:
  /// Guards the tensors that are replaced by others, and not among these.
  explicit ReplacedGuard(const std::vector<Replacement>& replaced);
  ~ReplacedGuard();

 private:
  std::vector<const detail::Body*> own_;  // with those of the calls around it, ascending
  const std::vector<const detail::Body*>* outer_;
};

/// Tensors by the names that a module has for its parameters, with the location of the caller.
struct ParameterList {
  std::span<const NamedTensor> tensors;  ///< must outlive the call
  Location where;                        ///< for errors

  /// A list as `named_parameters` returns it.
  ParameterList(const std::vector<NamedTensor>& list, Location where = Location::here())
      : tensors(list), where(where) {}
  /// Part of a list.
  ParameterList(std::span<const NamedTensor> list, Location where = Location::here()) : tensors(list), where(where) {}
};

/// Returns module(inputs…), computed with other tensors in the place of the module's parameters and buffers: those
/// whose names are listed. The result depends on these tensors, and a tape differentiates by them to any order, as
/// meta-learning needs it:
///
///     std::vector<NamedTensor> fast = model.named_parameters();
///     for (std::size_t i = 0; i < fast.size(); ++i) fast[i].tensor = fast[i].tensor - rate * gradients[i];
///     Tensor loss = mse_loss(nn::functional_call(model, fast, x), y);
///
/// Parameters that are not named stay; one that the module has under several names is replaced under all of them. The
/// call runs a copy of the module that shares all other tensors and the hooks, so that threads may call one module
/// concurrently. Its changes of other mutable members are lost; large ones are best held by a std::shared_ptr. Where
/// no copy can be made, because `operator()` is not const, or the module is of a derived class, or not copied by C++ as
/// a whole, the tensors are put into the module itself, and no other thread may use it during the call.
/// Throws: Error for a name that the module has not, an undefined tensor, and two tensors for one parameter; ShapeError,
/// DTypeError, DeviceError unless a tensor has the shape, dtype and device of what it replaces; Error if the copy reaches a
/// replaced tensor through a pointer or a reference to a part of the module; what the module throws.
/// Source: PyTorch's torch.func.functional_call.
template <class M, class... Inputs>
  requires std::derived_from<std::remove_cv_t<M>, Module>
auto functional_call(M& module, const ParameterList& parameters, const Inputs&... inputs) {
  constexpr bool is_const = detail::takes_places<const M, Inputs...> || std::is_invocable_v<const M&, const Inputs&...>;
  using Model = std::remove_cv_t<M>;
  if constexpr (is_const && std::copy_constructible<Model>)
    if (typeid(module) == typeid(Model)) {
      std::vector<Replacement> replaced = ReplacedParameters::find(module, parameters.tensors, parameters.where);
      if (std::shared_ptr<const Model> copy = copy_for_call<Model>(module, replaced, true)) {
        ReplacedGuard guard(replaced);
        return detail::call_at(*copy, parameters.where, inputs...);
      }
    }
  ReplacedParameters scope(module, parameters.tensors, parameters.where);
  std::conditional_t<is_const, const M, M>& own = module;
  return detail::call_at(own, parameters.where, inputs...);
}

}  // namespace reel::nn
