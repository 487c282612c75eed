#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <reel/nn/call.h>
#include <reel/nn/initialise.h>
#include <reel/nn/member.h>
#include <reel/nn/part.h>
#include <reel/ops/random.h>
#include <reel/tensor.h>

namespace reel::nn {

struct NamedTensor {
  std::string name;  ///< "cell.W_h": the names of the modules around it and its own
  Tensor tensor;
};

enum class PartKind : std::uint8_t { parameter, buffer, module };

/// A place in a module.
struct ModuleEntry {
  std::string name;
  PartKind kind;
  ModulePart* part;                  ///< null in a clone until it is copied
  ModulePart* moved_from = nullptr;  ///< what had the place before, and may take it back

  Module* module() const;
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
/// Modules can be moved; copies are made by `nn::clone(model)`, and anything else that copies one throws. Parts keep their
/// place in the module around them wherever they are: as members, moved along with it, or in a `std::vector`, which may
/// grow. A moved-from module has no parts and no module around it, until it is assigned to; assigning to a sub-module
/// replaces what it holds and keeps its name, also where it was moved from: `auto old = std::exchange(model.head, …)`. So does
/// `swap(a, b)`, found by its arguments; `std::swap(a, b)` of two parts exchanges their names, too. A sub-module that is
/// destroyed leaves the module around it, and one that outlives it goes on by itself. A module that holds what cannot be
/// copied, such as a vector of unique pointers, deletes its copy constructor.
class Module : public ModulePart {
 public:
  /// A module by itself: the outermost, or a layer used alone.
  Module() = default;
  /// A module that is part of `parent`, under a name. Throws: Error unless the name is new there, not empty and without
  /// a dot.
  Module(Module& parent, std::string_view name, Location where = Location::here());
  /// For `clone`. Throws: Error if anything else copies a module.
  Module(const Module& other);
  Module& operator=(const Module&) = delete;
  Module(Module&& other) noexcept;
  Module& operator=(Module&& other) noexcept;
  virtual ~Module();
  /// Two modules of one type exchange what they hold and keep their names.
  template <std::derived_from<Module> M>
  friend void swap(M& a, M& b) noexcept {
    M kept(std::move(a));
    a = std::move(b);
    b = std::move(kept);
    ModulePart::swap_places(a, b);
  }

  /// Makes this part of `parent`. The constructors of a layer end with it, so that one that fails leaves nothing behind.
  /// Throws: as the constructor; Error if it is part of a module already.
  void join(Module& parent, std::string_view name, Location where = Location::here());

  /// All parameters, also those of sub-modules and frozen ones, in the order of declaration. A tensor under two names
  /// comes once, under the first.
  std::vector<NamedTensor> named_parameters() const;
  /// The same without names, for an optimiser.
  std::vector<Tensor> parameters() const;
  /// How many numbers the parameters hold.
  std::int64_t parameter_count() const;
  /// All buffers, also those of sub-modules, in the order of declaration.
  std::vector<NamedTensor> named_buffers() const;
  /// This module, under an empty name, and all within it, each before its own parts.
  std::vector<std::pair<std::string, const Module*>> named_modules() const;
  /// Calls f with each of them.
  template <class F>
  void for_each_module(F f) {
    f(*this);
    for (const ModuleEntry& entry : entries_)
      if (Module* module = entry.module()) module->for_each_module(f);
  }
  /// "Linear": the type's name, without namespaces.
  std::string type_name() const;

  /// Whether layers that differ between training and use, such as dropout, are to train; default true. Holds for this
  /// module and its sub-modules.
  void train(bool training = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }
  /// Forgets the gradient of every parameter.
  void zero_grad() const;
  /// Stops, or takes up again, the training of the parameters whose names fit a pattern, in which `*` stands for any
  /// characters and `?` for one: "encoder.*". Optimisers leave frozen ones as they are. Returns how many fit.
  /// Throws: Error if none does.
  int freeze(std::string_view pattern, bool frozen = true, Location where = Location::here()) const;
  int unfreeze(std::string_view pattern, Location where = Location::here()) const {
    return freeze(pattern, false, where);
  }
  /// Converts the floating parameters, their gradients, and the floating buffers. Parameters become new tensors: an
  /// optimiser that holds the old ones throws at its next step, so it is made afterwards. Throws: DTypeError unless
  /// floating.
  void to(DType dtype, Location where = Location::here());
  /// Takes all parameters, their gradients, and buffers to a device, likewise. Throws: DeviceError if there is none.
  void to(Device device, Location where = Location::here());

  /// Calls f before each call of this module with its inputs, which it may replace; one that is not given is undefined.
  /// The function is called where it is kept, so that its state lasts from call to call, until what is returned is
  /// destroyed; hooks of one kind run in the order in which they came, and a clone of the module has none. A hook may
  /// remove itself and others, which then run no more, and add some, which run from the next call on. Threads that call
  /// the module at once run its hooks at once; the first hook is added while none calls it.
  ///
  /// The module's operator() has to run through `call`, as those of all layers do; a recurrent layer whose cells have
  /// hooks calls them step by step. Throws: Error for an empty function, and for a module that only holds others, such
  /// as ModuleList. The call of a part throws Error if a module around it has hooks and was never called itself, because
  /// its operator() does not run through `call`.
  [[nodiscard]] ModuleHook before_forward(TensorsHook f, Location where = Location::here());
  /// Calls f after each call of this module with its results, which it may replace. Throws: as before_forward.
  [[nodiscard]] ModuleHook after_forward(TensorsHook f, Location where = Location::here());
  /// Calls f in a backward, with the gradients of the results of a call that a tape recorded; it may replace them.
  /// Throws: as before_forward.
  [[nodiscard]] ModuleHook before_backward(TensorsHook f, Location where = Location::here());
  /// Calls f in a backward, with the gradients that flow from such a call to its inputs, which it may replace; undefined
  /// for an input that needs none. If no input needs one, it is called after the hooks on the results' gradients.
  /// Throws: as before_forward.
  [[nodiscard]] ModuleHook after_backward(TensorsHook f, Location where = Location::here());
  /// Whether there are any of the four kinds.
  bool has_hooks() const;

  /// Floating-point operations of products, convolutions and recurrent layers, a multiplication and an addition each, in
  /// the last call of this module; of one that does not run through `call`, in the last ones of its parts.
  double last_flops() const;

 protected:
  /// f(x), as a call of this module: errors name the caller's line, hooks see it, its operations are counted.
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
  /// The same with several inputs, of which any may be undefined: call("Attention", {q, k, v}, where, [&](const Tensor& q,
  /// const Tensor& k, const Tensor& v) { … }).
  template <std::size_t count, class F>
  auto call(const char*, const Tensor (&inputs)[count], Location where, F f) const {
    ModuleCall running(*this, where);
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return running.run(hooks_.get(), f, inputs[i]...);
    }(std::make_index_sequence<count>());
  }

  /// Whether the module is called itself. One that only holds others, such as ModuleList, says false, and refuses hooks.
  virtual bool is_called() const { return true; }

  /// reel::to, which the two above would hide within a module.
  static Tensor to(const Arg& x, DType dtype);

 private:
  friend class ModulePart;
  friend class Member;
  friend class ModuleCall;
  friend struct Cloning;
  friend struct CloneScope;

  void register_part(std::string_view name, ModuleEntry entry, Location where);
  void take_contents(Module& other) noexcept;
  void release_parts() noexcept;
  template <class F>
  void visit_members(PartKind kind, const std::string& prefix, F f) const;
  std::vector<NamedTensor> collect_members(PartKind kind) const;
  void collect_modules(const std::string& name, std::vector<std::pair<std::string, const Module*>>& found) const;
  template <class Convert>
  void convert_members(Convert converted);
  ModuleHook add_hook(TensorsHook f, ModuleHooks::When when, Location where);
  // Throws: Error if a module around this one has hooks and was never called.
  void check_hooks_around(Location where) const;

  std::vector<ModuleEntry> entries_;
  std::shared_ptr<ModuleHooks> hooks_;
  mutable std::atomic<double> multiplications_ = -1;  // in the last call; less than 0: there was none
  bool training_ = true;
};

inline Module* ModuleEntry::module() const { return kind == PartKind::module ? static_cast<Module*>(part) : nullptr; }
inline Member* ModuleEntry::tensor() const { return kind == PartKind::module ? nullptr : static_cast<Member*>(part); }

/// While it lives, a module may be copied.
struct CloneScope {
  CloneScope();
  ~CloneScope();
  /// Throws: Error if a part of a module was not copied.
  void finish(Location where) const;
};

/// A copy with parameters and buffers of its own; what shares a tensor in the model shares one in the copy. Gradients and
/// hooks are not copied. Members of the model that are neither parameters, buffers nor modules are copied as C++ does.
template <class Model>
  requires std::derived_from<Model, Module>
Model clone(const Model& model, Location where = Location::here()) {
  CloneScope scope;
  Model copy(model);
  scope.finish(where);
  return copy;
}

}  // namespace reel::nn
