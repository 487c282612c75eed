#pragma once

#include <string_view>
#include <vector>

namespace reel::debug {

/// A description of one of the library's ops.
struct OpDescription {
  std::string_view name;    ///< the name of the op
  std::string_view family;  ///< the family of ops that it belongs to
  /// How `batch_map` treats equal calls of several examples: "elementwise" and "joined" ones run as one where their
  /// shapes allow it, the latter by a rule of the op's own; "alone": each call runs by itself. "composed": the op runs
  /// others, which are treated as they are.
  std::string_view batching;
  /// True if it has a gradient of its own; the gradient of a composed op is that of its parts.
  bool differentiable;
  /// True if it is not part of the public interface, but runs within gradients only.
  bool internal;
};

/// All ops, in the order of their families.
std::vector<OpDescription> ops();

}  // namespace reel::debug
