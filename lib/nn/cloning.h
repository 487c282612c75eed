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
  /// One copy for all members that share a tensor.
  Tensor copy_of(const Tensor& tensor);
};

}  // namespace reel::nn
