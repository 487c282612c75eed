#pragma once

namespace reel::detail {

struct Call;

/// A listener that is notified of the ops of groups, too: those that run for several examples of `batch_map`. Others see
/// each example's op, after it has waited for its group.
class GroupListener {
 public:
  virtual ~GroupListener() = default;
  /// Called when a call of an example runs by itself, between its start and its end.
  virtual void runs_alone(const Call& call) = 0;
};

}  // namespace reel::detail
