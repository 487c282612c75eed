#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <reel/named_tensor.h>
#include <reel/nn/call.h>
#include <reel/nn/initialise.h>
#include <reel/nn/member.h>
#include <reel/nn/part.h>
#include <reel/ops/random.h>
#include <reel/tensor.h>

namespace reel::nn {

using reel::NamedTensor;

/// The kind of a module's part.
enum class PartKind : std::uint8_t { parameter, buffer, module };

/// An entry of a module: a name, and the part that has it.
struct ModuleEntry {
  std::string name;                  ///< its name in the module
  PartKind kind;                     ///< what the part is
  ModulePart* part;                  ///< null in a clone until it is copied
  ModulePart* moved_from = nullptr;  ///< the part that had the entry before, and may take it back

  /// The part as a sub-module; null for a parameter or a buffer.
  Module* module() const;
  /// The part as a parameter or a buffer; null for a sub-module.
  Member* tensor() const;
};

/// A part of a model that owns parameters: a plain struct derives from it and declares parameters, buffers and
/// sub-modules as members.
///
///     struct Classifier : nn::Module {
///       nn::Linear hidden{*this, "hidden", 784, 128};
///       nn::Linear output{*this, "output", 128, 10};
///       nn::Parameter scale{*this, "scale", {10}, nn::constant(1)};
///
///       Tensor operator()(const Arg& x) const { return scale * output(relu(hidden(x))); }
///     };
///
/// Modules can be moved; copies are made by `nn::clone(model)`, and anything else that copies one throws. Parts keep
/// their place in the module around them wherever they are: as members, moved along with it, or in a `std::vector`,
/// which may grow. A moved-from module has no parts and no module around it, until it is assigned to; assigning to a
/// sub-module replaces what it holds and keeps its name, also where it was moved from: `auto old =
/// std::exchange(model.head, …)`. So does `swap(a, b)`, found by its arguments; `std::swap(a, b)` of two parts
/// exchanges their names, too. A sub-module that is destroyed leaves the module around it, and one that outlives it
/// remains a module by itself. A module that contains what cannot be copied, such as a vector of unique pointers,
/// deletes its copy constructor.
class Module : public ModulePart {
 public:
  /// A module by itself: the outermost, or a layer used alone.
  Module() = default;
  /// A module that is part of `parent`, under a name.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot.
  Module(Module& parent, std::string_view name, Location where = Location::here());
  /// Copies a module, within `nn::clone` only. Throws: Error outside `nn::clone`.
  Module(const Module& other);
  /// Cannot be assigned from an lvalue: use `nn::clone`.
  Module& operator=(const Module&) = delete;
  /// Takes over the parts of `other` and its place in the module around it.
  Module(Module&& other) noexcept;
  /// Takes over the parts of `other`, and keeps its own name and place.
  Module& operator=(Module&& other) noexcept;
  /// Leaves the module around it, and releases its parts.
  virtual ~Module();
  /// Exchanges what two modules of one type contain; both keep their names.
  template <std::derived_from<Module> M>
  friend void swap(M& a, M& b) noexcept {
    M kept(std::move(a));
    a = std::move(b);
    b = std::move(kept);
    ModulePart::swap_places(a, b);
  }

  /// Registers this module in `parent` under `name`. The constructors of a layer end with it, so that one that fails
  /// leaves nothing behind.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot, and if this is part of a module
  /// already.
  void join(Module& parent, std::string_view name, Location where = Location::here());

  /// All parameters with their names, also those of sub-modules and frozen ones, in the order of declaration. A tensor
  /// under two names is listed once, under the first, or with `remove_duplicates` false under each.
  std::vector<NamedTensor> named_parameters(bool remove_duplicates = true) const;
  /// All parameters, for an optimiser: also those of sub-modules and frozen ones, in the order of declaration, each
  /// tensor once.
  std::vector<Tensor> parameters() const;
  /// The number of elements of all parameters.
  std::int64_t parameter_count() const;
  /// All buffers with their names, also those of sub-modules, in the order of declaration. A tensor under two names is
  /// listed once, under the first, or with `remove_duplicates` false under each.
  std::vector<NamedTensor> named_buffers(bool remove_duplicates = true) const;
  /// This module, under an empty name, and all sub-modules with their names, each before its own parts.
  std::vector<std::pair<std::string, const Module*>> named_modules() const;
  /// Calls f with this module and all its sub-modules, each before its own parts.
  template <class F>
  void for_each_module(F f) {
    f(*this);
    for (const ModuleEntry& entry : entries_)
      if (Module* module = entry.module()) module->for_each_module(f);
  }
  /// The name of this module within the outermost one around it: "encoder.layers.2"; empty for the outermost.
  std::string path() const;
  /// The outermost module around this one; this one if it is by itself.
  const Module& outermost() const;
  /// The name of the type, without namespaces: "Linear".
  std::string type_name() const;

  /// Sets whether this module and its sub-modules are in training mode, in which layers such as dropout differ; default
  /// true at construction.
  void train(bool training = true);
  /// Takes this module and its sub-modules out of training mode.
  void eval() { train(false); }
  /// True in training mode.
  bool is_training() const { return training_; }
  /// Clears the gradient of every parameter.
  void zero_grad() const;
  /// Freezes, or with `frozen` false unfreezes, the parameters whose names match a pattern, in which `*` stands for any
  /// characters and `?` for one: "encoder.*". Optimisers do not update frozen ones. Returns the number of matches.
  /// Throws: Error if no name matches.
  int freeze(std::string_view pattern, bool frozen = true, Location where = Location::here()) const;
  /// Unfreezes the parameters whose names match a pattern, in which `*` stands for any characters and `?` for one:
  /// "encoder.*". Optimisers do not update frozen ones. Returns the number of matches.
  /// Throws: Error if no name matches.
  int unfreeze(std::string_view pattern, Location where = Location::here()) const {
    return freeze(pattern, false, where);
  }
  /// Converts the floating parameters, their gradients, and the floating buffers to a dtype. Parameters become new
  /// tensors: an optimiser that holds the old ones throws at its next step, so create it afterwards.
  /// Throws: DTypeError unless the dtype is floating.
  void to(DType dtype, Location where = Location::here());
  /// Moves all parameters, their gradients, and buffers to a device. Parameters become new tensors: an optimiser that
  /// holds the old ones throws at its next step, so create it afterwards.
  /// Throws: DeviceError if there is no such device.
  void to(Device device, Location where = Location::here());

  /// Calls f before each call of this module with its inputs, which it may replace; an input that is not given is
  /// undefined. f is kept and called in place, so that its state lasts from call to call, until the returned object is
  /// destroyed; hooks of one kind run in the order in which they were added, and a clone of the module has none. A hook
  /// may remove itself and others, which then run no more, and add some, which run from the next call on. Threads that
  /// call the module concurrently run its hooks concurrently; the first hook must be added while no thread calls it.
  ///
  /// The module's operator() has to run through `call`, as those of all layers do; a recurrent layer whose cells have
  /// hooks calls them step by step.
  /// Throws: Error for an empty function, and for a module that only contains others, such as ModuleList. The call of a
  /// part throws Error if a module around it has hooks and was never called itself, because its operator() does not run
  /// through `call`.
  [[nodiscard]] ModuleHook before_forward(TensorsHook f, Location where = Location::here());
  /// Calls f after each call of this module with its results, which it may replace. f is kept and called in place,
  /// until the returned object is destroyed; see before_forward.
  /// Throws: Error for an empty function, and for a module that only contains others, such as ModuleList.
  [[nodiscard]] ModuleHook after_forward(TensorsHook f, Location where = Location::here());
  /// Calls f in a backward pass, with the gradients of the results of a call that a tape recorded; it may replace them.
  /// f is kept and called in place, until the returned object is destroyed; see before_forward.
  /// Throws: Error for an empty function, and for a module that only contains others, such as ModuleList.
  [[nodiscard]] ModuleHook before_backward(TensorsHook f, Location where = Location::here());
  /// Calls f in a backward pass, with the gradients of the inputs of a call that a tape recorded, which it may replace;
  /// undefined for an input that needs none. If no input needs one, f is called after the hooks on the gradients of the
  /// results. f is kept and called in place, until the returned object is destroyed; see before_forward.
  /// Throws: Error for an empty function, and for a module that only contains others, such as ModuleList.
  [[nodiscard]] ModuleHook after_backward(TensorsHook f, Location where = Location::here());
  /// True if the module has a hook of any kind.
  bool has_hooks() const;

  /// The floating-point operations of products, convolutions and recurrent layers, a multiplication and an addition
  /// each, in the last call of this module; for one that does not run through `call`, in the last calls of its parts.
  double last_flops() const;

 protected:
  /// Runs f(x) as a call of this module: errors name the caller's line, hooks observe it, its operations are counted.
  /// Throws: Error if x is undefined, DTypeError if it is a number, in the name of `op`.
  ///
  ///     Tensor operator()(const Arg& x) const {
  ///       return call("Classifier", x, [&](const Tensor& x) { return output(relu(hidden(x))); });
  ///     }
  template <class F>
  auto call(const char* op, const Arg& x, F f) const {
    ModuleCall running(*this, op, x);
    return running.run(hooks_.get(), f, *x.tensor());
  }
  /// Runs f(inputs…) as a call of this module with several inputs, of which any may be undefined: errors name the
  /// caller's line, hooks observe it, its operations are counted.
  ///
  ///     Tensor operator()(const Tensor& x, const Tensor& y, Location where = Location::here()) const {
  ///       return call("Similarity", {x, y}, where, [&](const Tensor& x, const Tensor& y) { return sum(x * y, {1}); });
  ///     }
  template <std::size_t count, class F>
  auto call(const char* op, const Tensor (&inputs)[count], Location where, F f) const {
    ModuleCall running(*this, where, op);
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return running.run(hooks_.get(), f, inputs[i]...);
    }(std::make_index_sequence<count>());
  }

  /// True if the module is called itself. A module that only contains others, such as ModuleList, returns false, and
  /// refuses hooks.
  virtual bool is_called() const { return true; }

  /// Throws: Error if parameters are only made at the first call of the module, as those of a Linear that learns its
  /// input size are, and there was none.
  virtual void check_initialised() const {}
  /// True for a copy that was made for one call, with other parameters.
  bool is_copy_for_call() const { return original_ != nullptr; }
  /// Gives an undefined parameter of this module its values, which a const call of the module may do.
  void initialise_parameter(const Parameter& parameter, const Tensor& values) const;

  /// A copy of x in the given dtype: reel::to, which the member functions of that name would hide.
  static Tensor to(const Arg& x, DType dtype);

 private:
  friend class ModulePart;
  friend class Member;
  friend class ModuleCall;
  friend class ReplacedParameters;
  friend struct Cloning;
  friend struct CloneScope;
  friend struct ModuleLayout;

  // The module itself, or the one of which this is a copy for one call.
  const Module& original() const { return original_ ? *original_ : *this; }
  void register_part(std::string_view name, ModuleEntry entry, Location where);
  void take_contents(Module& other) noexcept;
  void release_parts() noexcept;
  template <class F>
  void visit_members(PartKind kind, const std::string& prefix, F f) const;
  std::vector<NamedTensor> collect_members(PartKind kind, bool remove_duplicates) const;
  void collect_modules(const std::string& name, std::vector<std::pair<std::string, const Module*>>& found) const;
  template <class Convert>
  void convert_members(Convert converted);
  ModuleHook add_hook(TensorsHook f, ModuleHooks::When when, Location where);
  // Throws: Error if a module around this one has hooks and was never called.
  void check_hooks_around(Location where) const;

  // Throws: Error if the module was moved from.
  void check_not_moved_from(Location where) const;

  std::vector<ModuleEntry> entries_;
  std::shared_ptr<ModuleHooks> hooks_;
  const Module* original_ = nullptr;
  mutable std::atomic<double> multiplications_ = -1;  // in the last call; less than 0: there was none
  bool training_ = true;
  bool moved_from_ = false;
};

inline Module* ModuleEntry::module() const { return kind == PartKind::module ? static_cast<Module*>(part) : nullptr; }
inline Member* ModuleEntry::tensor() const { return kind == PartKind::module ? nullptr : static_cast<Member*>(part); }

/// A tensor of a module, and the tensor that a copy of the module has in its place.
struct Replacement {
  const detail::Body* own;  ///< identifies the module's tensor
  Tensor tensor;            ///< what replaces it
};

/// While it lives, a module may be copied; used by `clone`.
struct CloneScope {
  /// Allows copies of modules on this thread.
  CloneScope();
  /// Allows copies that share the tensors, hooks and path of the original, but for the replaced tensors, which ascend by
  /// `own`.
  explicit CloneScope(std::vector<Replacement> replaced);
  /// Forbids copies again.
  ~CloneScope();
  /// Checks that all parts were copied. Throws: Error if a part of a module was not copied.
  void finish(Location where) const;
  /// True if all parts were copied.
  bool is_complete() const;
  /// Keeps a copy until the gradients of what was recorded have been computed, since they may call it again.
  static void keep(std::shared_ptr<const Module> copy);
};

/// A copy of a module for one call, which leaves the module as it is for other threads: it shares the module's tensors,
/// but for those that are replaced. Null with `whole` if the module has parts that C++ does not copy with it.
template <std::derived_from<Module> M>
std::shared_ptr<M> copy_for_call(const M& module, std::vector<Replacement> replaced = {}, bool whole = false) {
  std::shared_ptr<M> copy;
  {
    CloneScope scope(std::move(replaced));
    copy = std::make_shared<M>(module);
    if (whole && !scope.is_complete()) copy = nullptr;
  }
  if (copy) CloneScope::keep(copy);
  return copy;
}

/// A copy of a model with parameters and buffers of its own; parts that share a tensor in the model share one in the
/// copy. Gradients and hooks are not copied. Members that are neither parameters, buffers nor modules are copied as C++
/// copies them.
/// Throws: Error if a part of the model was not copied with it.
template <class Model>
  requires std::derived_from<Model, Module>
Model clone(const Model& model, Location where = Location::here()) {
  CloneScope scope;
  Model copy(model);
  scope.finish(where);
  return copy;
}

}  // namespace reel::nn
