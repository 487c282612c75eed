#pragma once

#include <string_view>

#include <reel/nn/initialise.h>
#include <reel/nn/part.h>
#include <reel/ops/random.h>
#include <reel/tensor.h>

namespace reel::nn {

/// A tensor of a module, with a name in it: the base class of `Parameter` and `Buffer`. It is a Tensor in every use. A
/// copy of it shares the elements and belongs to no module.
class Member : public Tensor, public ModulePart {
 public:
  /// An undefined tensor of no module.
  Member() = default;
  /// A handle that shares the elements and belongs to no module.
  Member(const Member& other);
  /// Takes over the tensor and its place in the module.
  Member(Member&& other) noexcept;
  /// Leaves the module.
  ~Member() = default;

 protected:
  /// A tensor that is registered in `module` under `name`.
  /// Throws: Error unless the name is new there, not empty and without a dot.
  Member(Module& module, std::string_view name, const Tensor& values, bool is_parameter, Location where);
  /// Replaces its tensor by another.
  void assign(const Tensor& values);
  /// Replaces its tensor by that of `other`, and takes over its place if this has none.
  void assign(Member&& other);
  /// Exchanges the tensors of two members; both keep their names.
  void swap_with(Member& other) noexcept;

 private:
  friend class Module;
};

/// A tensor of a module that is trained. A default-constructed one is undefined and is not listed among the parameters:
/// the bias of a layer without one.
class Parameter : public Member {
 public:
  /// An undefined parameter of no module.
  Parameter() = default;
  /// A parameter that is undefined for now, and is not listed until it is assigned a tensor.
  /// Throws: Error unless the name is new in the module, not empty and without a dot.
  Parameter(Module& module, std::string_view name, Location where = Location::here())
      : Member(module, name, {}, true, where) {}
  /// A new parameter of the given shape, with values of the initialiser.
  /// Throws: Error unless the name is new in the module, not empty and without a dot; DTypeError unless floating.
  Parameter(Module& module, std::string_view name, const Shape& shape, const Initialiser& initialiser,
            const RandomOptions& options = {}, Location where = Location::here());
  /// A parameter with the given values, or the tensor of another parameter, which is then tied to it, and stays frozen
  /// if that is.
  /// Throws: Error unless the name is new in the module, not empty and without a dot; DTypeError unless floating.
  Parameter(Module& module, std::string_view name, const Tensor& values, Location where = Location::here())
      : Member(module, name, values, true, where) {}
  /// A handle that shares the elements and belongs to no module.
  Parameter(const Parameter&) = default;
  /// Takes over the tensor and its place in the module.
  Parameter(Parameter&&) noexcept = default;
  /// Makes another tensor the module's parameter. An optimiser that holds the one before throws at its next step,
  /// unless that is still a parameter of the model elsewhere.
  /// Throws: DTypeError unless floating.
  Parameter& operator=(const Tensor& values) {
    assign(values);
    return *this;
  }
  /// Makes another tensor the module's parameter. An optimiser that holds the one before throws at its next step,
  /// unless that is still a parameter of the model elsewhere.
  /// Throws: DTypeError unless floating.
  Parameter& operator=(const Parameter& other) { return *this = static_cast<const Tensor&>(other); }
  /// Makes another tensor the module's parameter. An optimiser that holds the one before throws at its next step,
  /// unless that is still a parameter of the model elsewhere.
  /// Throws: DTypeError unless floating.
  Parameter& operator=(Parameter&& other) {  // NOLINT(performance-noexcept-move-constructor): may throw, as documented
    assign(std::move(other));
    return *this;
  }
  /// Exchanges the tensors of two parameters of a module, or of several; both keep their names.
  friend void swap(Parameter& a, Parameter& b) noexcept { a.swap_with(b); }
};

/// A tensor of a module that is saved with it but not trained, such as a running mean.
class Buffer : public Member {
 public:
  /// An undefined buffer of no module.
  Buffer() = default;
  /// A buffer with the given values.
  /// Throws: Error unless the name is new in the module, not empty and without a dot, and the tensor is defined.
  Buffer(Module& module, std::string_view name, const Tensor& values, Location where = Location::here())
      : Member(module, name, values, false, where) {}
  /// A handle that shares the elements and belongs to no module.
  Buffer(const Buffer&) = default;
  /// Takes over the tensor and its place in the module.
  Buffer(Buffer&&) noexcept = default;
  /// Makes another tensor the module's buffer.
  Buffer& operator=(const Tensor& values) {
    assign(values);
    return *this;
  }
  /// Makes another tensor the module's buffer.
  Buffer& operator=(const Buffer& other) { return *this = static_cast<const Tensor&>(other); }
  /// Makes another tensor the module's buffer.
  Buffer& operator=(Buffer&& other) {  // NOLINT(performance-noexcept-move-constructor): may throw, as documented
    assign(std::move(other));
    return *this;
  }
  /// Exchanges the tensors of two buffers of a module, or of several; both keep their names.
  friend void swap(Buffer& a, Buffer& b) noexcept { a.swap_with(b); }
};

}  // namespace reel::nn
