#pragma once

#include <reel/nn/module.h>

namespace reel::nn {

/// Options of Flatten.
struct FlattenOptions {
  int first = 1;  ///< the first of the axes that become one; negative ones count from the end; default 1
  int last = -1;  ///< the last of them; negative ones count from the end; default −1
};

/// The op `flatten` as a layer: a range of axes becomes one, by default all but the first: (N, C, H, W) → (N, C H W).
/// Source: PyTorch's Flatten.
struct Flatten : Module {
  /// A layer by itself, not part of a module.
  explicit Flatten(FlattenOptions options = {}) : options_(options) {}
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot.
  Flatten(Module& parent, std::string_view name, FlattenOptions options = {}, Location where = Location::here())
      : options_(options) {
    join(parent, name, where);
  }

  /// x with the range of axes as one. Throws: ShapeError for axes that do not exist or are not in order; Error if x is
  /// undefined.
  Tensor operator()(const Arg& x) const;

 private:
  FlattenOptions options_;
};

}  // namespace reel::nn
