#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <reel/nn/module.h>

namespace reel::detail {
/// Throws: Error, with the keys that there are.
[[noreturn]] void refuse_key(std::string_view key, const std::vector<std::string>& keys, Location where);
}  // namespace reel::detail

namespace reel::nn {

/// Modules of one type, named "0", "1" … by their place. `Layer` has a constructor from (parent, name, …).
///
///     nn::ModuleList<nn::Linear> hidden{*this, "hidden"};
///     for (int i = 0; i < depth; ++i) hidden.emplace_back(size, size);
///
/// Source: PyTorch's ModuleList.
template <class Layer>
class ModuleList : public Module {
 public:
  using Module::Module;

  template <class... Arguments>
  Layer& emplace_back(Arguments&&... arguments) {
    return layers_.emplace_back(*this, std::to_string(layers_.size()), std::forward<Arguments>(arguments)...);
  }
  std::size_t size() const { return layers_.size(); }
  Layer& operator[](std::size_t i) { return layers_[i]; }
  const Layer& operator[](std::size_t i) const { return layers_[i]; }
  auto begin() { return layers_.begin(); }
  auto begin() const { return layers_.begin(); }
  auto end() { return layers_.end(); }
  auto end() const { return layers_.end(); }

 private:
  std::vector<Layer> layers_;
};

/// Modules of one type by name, in the order in which they came. Source: PyTorch's ModuleDict.
template <class Layer>
class ModuleDict : public Module {
 public:
  using Module::Module;

  /// Throws: Error unless the key is new, not empty and without a dot.
  template <class... Arguments>
  Layer& emplace(std::string_view key, Arguments&&... arguments) {
    Layer& layer = layers_.emplace_back(*this, key, std::forward<Arguments>(arguments)...);
    keys_.emplace_back(key);
    return layer;
  }
  std::size_t size() const { return layers_.size(); }
  const std::vector<std::string>& keys() const { return keys_; }
  bool contains(std::string_view key) const { return place_of(key) < size(); }
  /// Throws: Error if there is none.
  Layer& at(std::string_view key, Location where = Location::here()) { return layers_[checked(key, where)]; }
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

  std::vector<Layer> layers_;
  std::vector<std::string> keys_;
};

}  // namespace reel::nn
