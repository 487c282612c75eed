#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <reel/debug/session.h>

namespace reel::debug {

/// The conditions of `watch`, and the state of earlier ops that they need.
class Watches {
 public:
  void add(const Watch& watch) { watches_.push_back(watch); }
  void clear() { watches_.clear(); }
  /// The finding of a watch in the op's outputs; empty: none. To be called for each op, once.
  std::optional<std::string> found_in(const RecordedOp& op);

 private:
  // A line that is executed again and again, in a step and in the next one.
  struct Execution {
    std::string_view file, op, module;
    int line;
    std::int64_t index;
    auto operator<=>(const Execution&) const = default;
  };

  double norm_before(const RecordedOp& op);

  std::vector<Watch> watches_;
  std::int64_t counted_step_ = 0;
  std::map<Execution, std::int64_t> executions_;
  std::map<Execution, double> norms_, norms_before_;
};

}  // namespace reel::debug
