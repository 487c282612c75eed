#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <reel/nn/initialise.h>
#include <reel/ops/random.h>
#include <reel/tensor.h>

namespace reel::nn {

struct NamedTensor {
  std::string name;  ///< "cell.W_h": the names of the modules around it and its own
  Tensor tensor;
};

/// A part of a model that owns parameters: a plain struct derives from it and declares parameters and sub-modules as
/// members.
///
///     struct Classifier : nn::Module {
///       nn::Linear hidden{*this, "hidden", 784, 128};
///       nn::Linear output{*this, "output", 128, 10};
///       Tensor scale = parameter("scale", {10}, nn::constant(1));
///     };
///
/// Modules can be moved, not copied. A sub-module keeps its place in its parent wherever it is: as a member, moved
/// along with the parent, or in a `std::vector`, which may grow. A moved-from module has no parameters, no sub-modules
/// and no parent, until it is assigned to; assigning to a sub-module replaces what it holds and keeps its name.
/// A sub-module that is destroyed leaves its parent, and one that outlives its parent goes on by itself.
class Module {
 public:
  /// A module by itself: the outermost, or a layer used alone.
  Module() = default;
  /// A module that is part of `parent`, under a name. Throws: Error unless the name is new there, not empty and without
  /// a dot.
  Module(Module& parent, std::string_view name, Location where = Location::here());
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  Module(Module&& other) noexcept;
  Module& operator=(Module&& other) noexcept;
  virtual ~Module();

  /// All parameters, also those of sub-modules, in the order of declaration. A tensor under two names comes once, under
  /// the first.
  std::vector<NamedTensor> named_parameters() const;
  /// The same without names, for an optimiser.
  std::vector<Tensor> parameters() const;
  /// How many numbers the parameters hold.
  std::int64_t parameter_count() const;
  /// All buffers, also those of sub-modules, in the order of declaration.
  std::vector<NamedTensor> named_buffers() const;

  /// Whether layers that differ between training and use, such as dropout, are to train; default true. Holds for this
  /// module and its sub-modules.
  void train(bool training = true);
  bool is_training() const { return training_; }
  /// Forgets the gradient of every parameter.
  void zero_grad() const;

 protected:
  /// A new parameter of the given shape. Throws: Error as for a sub-module's name; DTypeError unless floating.
  Tensor parameter(std::string_view name, const Shape& shape, const Initialiser& initialiser,
                   const RandomOptions& options = {}, Location where = Location::here());
  /// Makes a tensor a parameter: one with values of its own, or one that another module shares.
  Tensor parameter(std::string_view name, const Tensor& values, Location where = Location::here());
  /// A tensor that belongs to the module but is not trained, such as a running mean.
  Tensor buffer(std::string_view name, const Tensor& values, Location where = Location::here());

 private:
  // A parameter, a buffer or, where `module` is set, a sub-module.
  struct Entry {
    std::string name;
    Tensor tensor;
    Module* module;
  };

  void add(std::string_view name, Entry entry, Location where);
  void take_contents(Module& other) noexcept;
  void take_place(Module& other) noexcept;
  void release_parts() noexcept;
  void collect(bool parameters, const std::string& prefix, std::vector<NamedTensor>& found) const;

  std::vector<Entry> entries_;
  Module* parent_ = nullptr;
  bool training_ = true;
};

}  // namespace reel::nn
