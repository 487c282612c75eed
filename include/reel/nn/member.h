#pragma once

#include <string_view>

#include <reel/nn/initialise.h>
#include <reel/nn/part.h>
#include <reel/ops/random.h>
#include <reel/tensor.h>

namespace reel::nn {

/// A tensor that a module knows by name: what `Parameter` and `Buffer` have in common. It is a Tensor in every use. A copy
/// of it shares the elements and belongs to no module.
class Member : public Tensor, public Part {
 public:
  Member() = default;
  Member(const Member& other);
  Member(Member&& other) noexcept;
  ~Member() = default;

 protected:
  Member(Module& module, std::string_view name, const Tensor& values, bool is_parameter, Location where);
  /// Takes another tensor in place of its own.
  void assign(const Tensor& values);
  /// Takes the place of another, if it has none.
  void assign(Member&& other);
  void swap_with(Member& other) noexcept;

 private:
  friend class Module;
};

/// A tensor of a module that is trained. A default-constructed one is undefined and counts for nothing: a layer's bias,
/// where it has none.
class Parameter : public Member {
 public:
  Parameter() = default;
  /// One that is undefined for now, and counts for nothing until it is assigned a tensor. Throws: as below.
  Parameter(Module& module, std::string_view name, Location where = Location::here())
      : Member(module, name, {}, true, where) {}
  /// A new one of this shape. Throws: Error unless the name is new in the module, not empty and without a dot; DTypeError
  /// unless floating.
  Parameter(Module& module, std::string_view name, const Shape& shape, const Initialiser& initialiser,
            const RandomOptions& options = {}, Location where = Location::here());
  /// One with values of its own, or the tensor of another, which is then tied to it, and stays frozen if that is. Throws:
  /// as above.
  Parameter(Module& module, std::string_view name, const Tensor& values, Location where = Location::here())
      : Member(module, name, values, true, where) {}
  Parameter(const Parameter&) = default;
  Parameter(Parameter&&) noexcept = default;
  /// From now on, this tensor is the module's parameter. An optimiser that holds the one before throws at its next step,
  /// unless that is still a parameter of the model elsewhere. Throws: DTypeError unless floating.
  Parameter& operator=(const Tensor& values) {
    assign(values);
    return *this;
  }
  Parameter& operator=(const Parameter& other) { return *this = static_cast<const Tensor&>(other); }
  Parameter& operator=(Parameter&& other) {
    assign(std::move(other));
    return *this;
  }
  /// Two of a module, or of several, exchange their tensors and keep their names.
  friend void swap(Parameter& a, Parameter& b) noexcept { a.swap_with(b); }
};

/// A tensor of a module that is kept with it but not trained, such as a running mean.
class Buffer : public Member {
 public:
  Buffer() = default;
  /// Throws: Error unless the name is new in the module, not empty and without a dot, and the tensor is defined.
  Buffer(Module& module, std::string_view name, const Tensor& values, Location where = Location::here())
      : Member(module, name, values, false, where) {}
  Buffer(const Buffer&) = default;
  Buffer(Buffer&&) noexcept = default;
  Buffer& operator=(const Tensor& values) {
    assign(values);
    return *this;
  }
  Buffer& operator=(const Buffer& other) { return *this = static_cast<const Tensor&>(other); }
  Buffer& operator=(Buffer&& other) {
    assign(std::move(other));
    return *this;
  }
  friend void swap(Buffer& a, Buffer& b) noexcept { a.swap_with(b); }
};

}  // namespace reel::nn
