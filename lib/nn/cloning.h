#pragma once

#include <unordered_map>

#include <reel/nn/module.h>

namespace reel::nn {

/// The state of a clone in progress: what has been copied so far.
struct Cloning {
  std::unordered_map<const Module*, Module*> modules;
  std::unordered_map<const detail::Body*, Tensor> tensors;
  Cloning* outer = nullptr;

  /// This thread's clone in progress; null if there is none.
  static Cloning*& current();
  Module* copy_of(const Module* module) const {
    auto found = modules.find(module);
    return found == modules.end() ? nullptr : found->second;
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
  /// A copy of a tensor; members that share the tensor share the copy.
  Tensor copy_of(const Tensor& tensor);
};

}  // namespace reel::nn
