#pragma once

#include <unordered_map>

#include <reel/nn/module.h>

namespace reel::nn {

/// What a clone has copied so far.
struct Cloning {
  std::unordered_map<const Module*, Module*> modules;
  std::unordered_map<const detail::Body*, Tensor> tensors;
  Cloning* outer = nullptr;

  /// That of this thread which is under way; null if none is.
  static Cloning*& current();
  Module* copy_of(const Module* module) const {
    auto found = modules.find(module);
    return found == modules.end() ? nullptr : found->second;
  }
  /// Gives a copy the place that the original has, if the module around that has been copied.
  void take_place(Part& copy, const Part& original);
  /// What was copied has moved on, or is gone.
  void moved(const Module& from, Module& to) noexcept {
    for (auto& [original, copy] : modules)
      if (copy == &from) copy = &to;
  }
  void forget(const Module& gone) noexcept {
    std::erase_if(modules, [&](const auto& copied) { return copied.second == &gone; });
  }
  /// One copy for all members that share a tensor.
  Tensor copy_of(const Tensor& tensor);
};

}  // namespace reel::nn
