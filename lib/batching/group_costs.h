#pragma once

#include <cstddef>
#include <cstdint>

namespace reel::detail {

/// The costs of a group beyond those of its calls by themselves, in instructions, and its gain from reading a weight once:
/// see "Groups that pay" in tools/benchmark/README.md.
struct GroupCosts {
  double call, group;    ///< for each call, and for each group
  double saved_by_byte;  ///< of the weight, for each call but the first
};
/// `factor`: of all costs.
constexpr GroupCosts costs_of(bool tracked, double factor) {
  return tracked ? GroupCosts{100 * factor, 4300 * factor, 1. / 16} : GroupCosts{900 * factor, 2400 * factor, 1. / 50};
}

/// The expected size of a group of calls of which `together` may be made in parallel: examples differ in length.
constexpr double expected_group(std::size_t together) { return 1 + static_cast<double>(together - 1) * 0.625; }

/// The instructions that a call saves in a group.
constexpr std::int64_t gain_of(const GroupCosts& costs, std::int64_t weight_bytes, std::size_t together) {
  double size = expected_group(together), saved = static_cast<double>(weight_bytes) * costs.saved_by_byte * (size - 1);
  return static_cast<std::int64_t>((saved - costs.group) / size - costs.call);
}

/// The least bytes of a weight with which its calls begin chains of delayed calls. Three others are assumed to follow each.
constexpr std::int64_t least_weight(const GroupCosts& costs, std::size_t together) {
  if (together < 2) return INT64_MAX;
  double size = expected_group(together);
  return static_cast<std::int64_t>(4 * (costs.group + costs.call * size) / (costs.saved_by_byte * (size - 1)));
}

/// A lookup in a table begins a chain if it loses little by itself: its rows are then adjacent for a product.
constexpr bool leads(const GroupCosts& costs, std::size_t together) {
  return gain_of(costs, 0, together) >= -4 * costs.call;
}

}  // namespace reel::detail
