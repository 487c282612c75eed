#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <reel/nn/module.h>

namespace reel::detail {
/// Throws: Error for a part of a module, which would be lost there.
void check_free(const nn::Module& module, Location where);
/// Throws: Error, with the keys that there are.
[[noreturn]] void refuse_key(std::string_view key, const std::vector<std::string>& keys, Location where);
}  // namespace reel::detail

namespace reel::nn {

/// A list of modules of one type, named "0", "1" … by their index.
///
///     nn::ModuleList<nn::Linear> hidden{*this, "hidden"};
///     for (int i = 0; i < depth; ++i) hidden.push_back(nn::Linear(size, size));
///
/// Source: PyTorch's ModuleList.
template <class Layer>
class ModuleList : public Module {
 public:
  /// A module without layers: by itself, or registered in a parent under a name.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot.
  using Module::Module;

  /// Moves a layer to the end of the list and returns a reference to it.
  /// Throws: Error if the layer is part of a module already.
  Layer& push_back(Layer&& layer, Location where = Location::here()) {
    static_assert(std::is_nothrow_move_constructible_v<Layer>, "a list of modules moves them when it grows");
    reel::detail::check_free(layer, where);
    layers_.push_back(std::move(layer));
    layers_.back().join(*this, std::to_string(layers_.size() - 1), where);
    return layers_.back();
  }
  /// The number of layers.
  std::size_t size() const { return layers_.size(); }
  /// Layer i, in [0, size()); not checked.
  Layer& operator[](std::size_t i) { return layers_[i]; }
  /// Layer i, in [0, size()); not checked.
  const Layer& operator[](std::size_t i) const { return layers_[i]; }
  /// An iterator to the first layer.
  auto begin() { return layers_.begin(); }
  /// An iterator to the first layer.
  auto begin() const { return layers_.begin(); }
  /// An iterator behind the last layer.
  auto end() { return layers_.end(); }
  /// An iterator behind the last layer.
  auto end() const { return layers_.end(); }

 private:
  bool is_called() const override { return false; }

  std::vector<Layer> layers_;
};

/// Modules of one type by key, in the order of their insertion. Source: PyTorch's ModuleDict.
template <class Layer>
class ModuleDict : public Module {
 public:
  /// A module without layers: by itself, or registered in a parent under a name.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot.
  using Module::Module;

  /// Moves a layer into the dictionary under a key, and returns a reference to it.
  /// Throws: Error unless the key is new, not empty and without a dot, and if the layer is part of a module already.
  Layer& insert(std::string_view key, Layer&& layer, Location where = Location::here()) {
    static_assert(std::is_nothrow_move_constructible_v<Layer>, "a dictionary of modules moves them when it grows");
    reel::detail::check_free(layer, where);
    // Before the layer is taken: a key that is refused leaves it where it is.
    layer.join(*this, key, where);
    layers_.push_back(std::move(layer));
    keys_.emplace_back(key);
    return layers_.back();
  }
  /// The number of layers.
  std::size_t size() const { return layers_.size(); }
  /// The keys, in the order of their insertion.
  const std::vector<std::string>& keys() const { return keys_; }
  /// True if there is a layer with the key.
  bool contains(std::string_view key) const { return place_of(key) < size(); }
  /// The layer with a key. Throws: Error if there is none.
  Layer& at(std::string_view key, Location where = Location::here()) { return layers_[checked(key, where)]; }
  /// The layer with a key. Throws: Error if there is none.
  const Layer& at(std::string_view key, Location where = Location::here()) const {
    return layers_[checked(key, where)];
  }

 private:
  std::size_t place_of(std::string_view key) const {
    std::size_t i = 0;
    while (i < keys_.size() && keys_[i] != key) ++i;
    return i;
  }
  std::size_t checked(std::string_view key, Location where) const {
    std::size_t i = place_of(key);
    if (i == size()) reel::detail::refuse_key(key, keys_, where);
    return i;
  }
  bool is_called() const override { return false; }

  std::vector<Layer> layers_;
  std::vector<std::string> keys_;
};

}  // namespace reel::nn
