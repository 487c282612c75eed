#pragma once

#include <string_view>
#include <vector>

namespace reel::debug {

/// What the library says of one of its ops.
struct OpDescription {
  std::string_view name;
  std::string_view family;
  /// How equal calls of several examples may be run as one: "elementwise", "stack", "gather", "loop"; "composed" for an op
  /// that is made of others.
  std::string_view batching;
  /// Has a gradient of its own; of a composed op its parts decide.
  bool differentiable;
  /// Not part of the public interface: reached through gradients only.
  bool internal;
};

/// All ops, in the order of their families.
std::vector<OpDescription> ops();

}  // namespace reel::debug
