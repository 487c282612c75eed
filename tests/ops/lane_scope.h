#pragma once

#include "core/context.h"
#include "core/invoke.h"

namespace reel_test {

/// While it lives, this thread's ops go through a lane.
class LaneScope {
 public:
  explicit LaneScope(reel::detail::Lane& lane) : context_(reel::detail::context()), before_(context_.lane) {
    context_.lane = &lane;
    context_.set(reel::detail::Context::intercepted, true);
  }
  ~LaneScope() {
    context_.lane = before_;
    context_.set(reel::detail::Context::intercepted, before_ || context_.listener);
  }
  LaneScope(const LaneScope&) = delete;
  LaneScope& operator=(const LaneScope&) = delete;

 private:
  reel::detail::Context& context_;
  reel::detail::Lane* before_;
};

}  // namespace reel_test
