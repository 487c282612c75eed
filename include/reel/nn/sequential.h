#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include <reel/nn/module.h>
#include <reel/nn/module_list.h>

namespace reel::nn {

/// A type that can be a part of a Sequential: a layer, which is moved into it, a function or a lambda, that maps a
/// tensor to a tensor.
template <class T>
concept SequentialPart =
    std::move_constructible<std::decay_t<T>> &&
    !(std::is_lvalue_reference_v<T> &&
      std::derived_from<std::decay_t<T>, Module>)&&std::is_invocable_r_v<Tensor, const std::decay_t<T>&, const Tensor&>;

class Sequential;

/// The index of a part, with the location of the caller.
struct PartIndex {
  std::int64_t value;  ///< negative ones count from the end
  Location where;      ///< for errors

  /// An index, with the location of the caller.
  PartIndex(std::int64_t value, Location where = Location::here()) : value(value), where(where) {}
};

/// Some successive parts of a Sequential, as a function. It refers to the Sequential, which must outlive it and not be
/// moved meanwhile.
class SequentialSlice {
 public:
  /// The number of parts.
  std::size_t size() const { return end_ - begin_; }
  /// The result of the last of these parts for that of the one before, and so on from x; a copy of x without parts.
  /// Hooks of the parts run, those of the Sequential do not.
  /// Throws: Error if x is undefined; what the parts throw.
  Tensor operator()(const Arg& x) const;

 private:
  friend class Sequential;
  SequentialSlice(const Sequential& whole, std::size_t begin, std::size_t end)
      : whole_(whole), begin_(begin), end_(end) {}

  const Sequential& whole_;
  std::size_t begin_, end_;
};

/// Layers and functions one after the other; layers are named "0", "1" … by their index:
///
///     nn::Sequential net(nn::Linear(784, 128), relu, nn::Linear(128, 10));
///     Tensor features = net.slice(0, 2)(x);                     // of the first two parts
///     Tensor first_weight = net.at<nn::Linear>(0).weight;
///
/// Without parts, or with parts that return x, the result is a copy of x.
/// Source: PyTorch's Sequential.
class Sequential : public Module {
 public:
  /// A Sequential without parts, by itself.
  Sequential() = default;
  // A Sequential alone is copied or moved. Asking first whether it can be a part would ask for this constructor again.
  /// A Sequential of the given parts, by itself. Throws: Error for a layer that is part of a module already.
  template <class... Parts>
    requires(sizeof...(Parts) > 1 || !(std::same_as<std::remove_cvref_t<Parts>, Sequential> && ...)) &&
            (SequentialPart<Parts> && ...)
  explicit Sequential(Parts&&... parts) {
    (add(std::forward<Parts>(parts)), ...);
  }
  /// A Sequential of the given parts that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot, and for a layer that is part of a
  /// module already.
  template <SequentialPart... Parts>
  Sequential(Module& parent, Name name, Parts&&... parts) : Module(parent, name.text, name.where) {
    (add(std::forward<Parts>(parts), name.where), ...);
  }
  /// Copies the parts, within `nn::clone` only.
  /// Throws: Error outside `nn::clone`, and for a function that cannot be copied.
  Sequential(const Sequential& other);
  /// Takes over the parts of the other.
  Sequential(Sequential&&) noexcept = default;
  /// Takes over the parts of the other.
  Sequential& operator=(Sequential&&) noexcept = default;

  /// Adds a part at the end. Throws: Error for a layer that is part of a module already.
  template <SequentialPart T>
  void add(T&& part, Location where = Location::here()) {
    if constexpr (std::derived_from<std::decay_t<T>, Module>) reel::detail::check_free(part, where);
    auto holder = std::make_unique<Holder<std::decay_t<T>>>(std::forward<T>(part));
    if constexpr (std::derived_from<std::decay_t<T>, Module>) holder->part.join(*this, std::to_string(size()), where);
    parts_.push_back(std::move(holder));
  }
  /// The number of parts.
  std::size_t size() const { return parts_.size(); }
  /// Part i as a function; negative ones count from the end. `at` gives it as the layer that it is.
  /// Throws: IndexError if there is no such part.
  SequentialSlice operator[](PartIndex i) const;
  /// The parts from `begin` to before `end` as a function; negative ones count from the end.
  /// Throws: IndexError unless 0 ≤ begin ≤ end ≤ size().
  SequentialSlice slice(std::int64_t begin, std::int64_t end, Location where = Location::here()) const;
  /// Part i, which is a T; a negative i counts from the end.
  /// Throws: IndexError if there is no such part; Error if it is not a T.
  template <class T>
  T& at(std::int64_t i, Location where = Location::here()) {
    return *static_cast<T*>(find(i, typeid(T), where));
  }
  /// Part i, which is a T; a negative i counts from the end.
  /// Throws: IndexError if there is no such part; Error if it is not a T.
  template <class T>
  const T& at(std::int64_t i, Location where = Location::here()) const {
    return *static_cast<const T*>(find(i, typeid(T), where));
  }

  /// The result of the last part for that of the one before, and so on from x.
  /// Throws: Error if x is undefined; what the parts throw.
  Tensor operator()(const Arg& x) const;

 private:
  struct Part {
    virtual ~Part() = default;
    virtual Tensor run(const Tensor& x) const = 0;
    virtual std::unique_ptr<Part> copy() const = 0;
    virtual const std::type_info& type() const = 0;
    virtual void* address() = 0;
  };
  static std::unique_ptr<Part> refuse_copy();
  template <class T>
  struct Holder : Part {
    explicit Holder(T part) : part(std::move(part)) {}
    Tensor run(const Tensor& x) const override { return part(x); }
    std::unique_ptr<Part> copy() const override {
      if constexpr (std::copy_constructible<T>)
        return std::unique_ptr<Part>(std::make_unique<Holder>(*this));
      else
        return refuse_copy();
    }
    const std::type_info& type() const override { return typeid(T); }
    void* address() override { return &part; }
    T part;
  };
  friend class SequentialSlice;
  std::size_t index_of(std::int64_t i, Location where) const;
  void* find(std::int64_t i, const std::type_info& type, Location where) const;
  Tensor run(std::size_t begin, std::size_t end, const Tensor& x) const;

  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace reel::nn
