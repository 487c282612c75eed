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

/// What `watch` looks for, and what it has to remember of earlier ops for that.
class Watches {
 public:
  void add(const Watch& watch) { watches_.push_back(watch); }
  void clear() { watches_.clear(); }
  /// What a watch has found in the op's outputs; none: nothing. To be called for each op, once.
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
