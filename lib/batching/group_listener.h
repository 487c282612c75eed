#pragma once

namespace reel::detail {

/// A listener that is notified of the ops of groups, too: those that run for several examples of `batch_map`. Others see
/// each example's op, after it has waited for its group.
class GroupListener {
 public:
  virtual ~GroupListener() = default;
};

}  // namespace reel::detail
