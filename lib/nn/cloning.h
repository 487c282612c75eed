#pragma once

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <reel/nn/module.h>

namespace reel::nn {

/// The state of a clone in progress: what has been copied so far.
struct Cloning {
  std::vector<std::pair<const Module*, Module*>> modules;  // mostly of the last one a part is copied next
  std::unordered_map<const detail::Body*, Tensor> tensors;
  std::optional<std::vector<Replacement>> replaced;  // set: a copy shares tensors, but for these
  bool is_complete = true;
  Cloning* outer = nullptr;

  /// This thread's clone in progress; null if there is none.
  static Cloning*& current();
  Module* copy_of(const Module* module) const {
    auto found =
        std::find_if(modules.rbegin(), modules.rend(), [=](const auto& copied) { return copied.first == module; });
    return found == modules.rend() ? nullptr : found->second;
  }
  /// Places a copy where the original is, if the module that contains the original has been copied.
  void take_place(ModulePart& copy, const ModulePart& original) const;
  /// Updates the map when a copy is moved; `forget` removes a copy that is destroyed.
  void moved(const Module& from, Module& to) noexcept {
    for (auto& [original, copy] : modules)
      if (copy == &from) copy = &to;
  }
  void forget(const Module& gone) noexcept {
    std::erase_if(modules, [&](const auto& copied) { return copied.second == &gone; });
  }
  /// A copy of a tensor, or what replaces it; members that share the tensor share the copy.
  Tensor copy_of(const Tensor& tensor);
};

}  // namespace reel::nn
