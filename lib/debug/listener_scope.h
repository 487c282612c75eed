#pragma once

#include "../core/context.h"

namespace reel::debug {

/// A listener that hears this thread's ops while it lives, beside those around it.
class ListenerScope : public detail::Listener {
 public:
  explicit ListenerScope(detail::Context& context) : context_(context), outer_(context.listener) {
    context.listener = this;
    context.set(detail::Context::intercepted, true);
  }
  ~ListenerScope() override {
    context_.listener = outer_;
    context_.set(detail::Context::intercepted, outer_ || context_.lane);
  }
  ListenerScope(const ListenerScope&) = delete;
  ListenerScope& operator=(const ListenerScope&) = delete;

 protected:
  detail::Context& context() const { return context_; }
  /// Hands what was heard on to the listeners around this one.
  void pass_on(const detail::Call& call, Location where) {
    if (outer_) outer_->finished(call, where);
  }

 private:
  detail::Context& context_;
  detail::Listener* outer_;
};

}  // namespace reel::debug
