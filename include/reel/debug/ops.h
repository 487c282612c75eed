#pragma once

#include <string_view>
#include <vector>

namespace reel::debug {

/// A description of one of the library's ops.
struct OpDescription {
  std::string_view name;    ///< the name of the op
  std::string_view family;  ///< the family of ops that it belongs to
  /// How equal calls of several examples may be batched: "elementwise", "stack", "gather", "loop"; "composed" for an op
  /// that is made of others.
  std::string_view batching;
  /// True if it has a gradient of its own; the gradient of a composed op is that of its parts.
  bool differentiable;
  /// True if it is not part of the public interface, but runs within gradients only.
  bool internal;
};

/// All ops, in the order of their families.
std::vector<OpDescription> ops();

}  // namespace reel::debug
