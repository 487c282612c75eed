#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace reel::detail {

/// The expected size and gain of groups of calls of which some number may be made in parallel: see "Groups that pay" in
/// tools/benchmark/README.md.
class GroupExpectation {
 public:
  GroupExpectation() = default;
  /// `together`: the calls that may be made in parallel. `cost_factor`: relative to the measured costs.
  GroupExpectation(std::size_t together, double cost_factor)
      : together_(together), size_(1 + static_cast<double>(together - 1) * 0.625), cost_factor_(cost_factor) {
    // Three other calls are assumed to follow each product.
    for (bool tracked : {false, true}) {
      Costs costs = costs_of(tracked);
      double least = 4 * (costs.group + costs.call * size_) / (costs.saved_by_byte * (size_ - 1));
      least_weights_[tracked] = together < 2 ? INT64_MAX : static_cast<std::int64_t>(least);
    }
  }

  std::size_t together() const { return together_; }
  /// The instructions that a call which reads a weight of this size saves in a group. `tracked`: a tape tracks an operand.
  std::int64_t gain(bool tracked, std::int64_t weight_bytes) const {
    Costs costs = costs_of(tracked);
    double saved = static_cast<double>(weight_bytes) * costs.saved_by_byte * (size_ - 1);
    return static_cast<std::int64_t>((saved - costs.group) / size_ - costs.call);
  }
  /// Returns true if calls that read a weight of this size begin chains of delayed calls.
  bool pays(bool tracked, std::int64_t weight_bytes) const { return weight_bytes >= least_weights_[tracked]; }
  /// Returns true if a lookup in a table begins a chain: it loses little by itself, and a product finds its rows adjacent.
  bool lookup_pays(bool tracked) const { return gain(tracked, 0) >= -400 * cost_factor_; }

 private:
  // In instructions: a group's costs beyond those of its calls by themselves, for each call and for the group, and the gain
  // from reading a byte of a weight once, for each call but the first.
  struct Costs {
    double call, group, saved_by_byte;
  };
  Costs costs_of(bool tracked) const {
    return tracked ? Costs{100 * cost_factor_, 4300 * cost_factor_, 1. / 16}
                   : Costs{900 * cost_factor_, 2400 * cost_factor_, 1. / 50};
  }

  std::size_t together_ = 0;
  double size_ = 1;  // of a group: examples differ in length
  double cost_factor_ = 1;
  std::array<std::int64_t, 2> least_weights_{};
};

}  // namespace reel::detail
