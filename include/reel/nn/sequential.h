#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <reel/nn/module.h>
#include <reel/nn/module_list.h>

namespace reel::nn {

/// What can stand in a Sequential: a layer, which is moved into it, a function or a lambda, that makes a tensor of a
/// tensor.
template <class T>
concept SequentialPart =
    std::move_constructible<std::decay_t<T>> &&
    !(std::is_lvalue_reference_v<T> &&
      std::derived_from<std::decay_t<T>, Module>)&&std::is_invocable_r_v<Tensor, const std::decay_t<T>&, const Tensor&>;

/// Layers and functions one after the other; layers are named "0", "1" … by their place:
///
///     nn::Sequential net(nn::Linear(784, 128), relu, nn::Linear(128, 10));
///
/// Without parts, or with parts that change nothing: a copy of x. Source: PyTorch's Sequential.
class Sequential : public Module {
 public:
  Sequential() = default;
  template <SequentialPart... Parts>
    requires(sizeof...(Parts) > 0)
  explicit Sequential(Parts&&... parts) {
    (add(std::forward<Parts>(parts)), ...);
  }
  template <SequentialPart... Parts>
  Sequential(Module& parent, Name name, Parts&&... parts) : Module(parent, name.text, name.where) {
    (add(std::forward<Parts>(parts), name.where), ...);
  }
  Sequential(const Sequential& other);
  Sequential(Sequential&&) noexcept = default;
  Sequential& operator=(Sequential&&) noexcept = default;

  /// Puts a part at the end.
  template <SequentialPart T>
  void add(T&& part, Location where = Location::here()) {
    if constexpr (std::derived_from<std::decay_t<T>, Module>) reel::detail::check_free(part, where);
    auto holder = std::make_unique<Holder<std::decay_t<T>>>(std::forward<T>(part));
    if constexpr (std::derived_from<std::decay_t<T>, Module>) holder->part.join(*this, std::to_string(size()), where);
    parts_.push_back(std::move(holder));
  }
  std::size_t size() const { return parts_.size(); }

  Tensor operator()(const Arg& x) const;

 private:
  struct Part {
    virtual ~Part() = default;
    virtual Tensor run(const Tensor& x) const = 0;
    virtual std::unique_ptr<Part> copy() const = 0;
  };
  [[noreturn]] static void refuse_copy();
  template <class T>
  struct Holder : Part {
    explicit Holder(T part) : part(std::move(part)) {}
    Tensor run(const Tensor& x) const override { return part(x); }
    std::unique_ptr<Part> copy() const override {
      if constexpr (std::copy_constructible<T>)
        return std::unique_ptr<Part>(std::make_unique<Holder>(*this));
      else
        refuse_copy();
    }
    T part;
  };

  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace reel::nn
