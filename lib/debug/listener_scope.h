#pragma once

#include "../record/tape_list.h"

namespace reel::debug {

/// Registers a listener for this thread's ops while it lives, besides those of enclosing scopes. Scopes may end in any
/// order.
class ListenerScope : public detail::Listener {
 public:
  explicit ListenerScope(detail::Context& context) : context_(context) {
    context.tapes->scopes().begin(context, {this, detail::Setting::listener, 0, static_cast<Listener*>(this)});
  }
  ~ListenerScope() override { detail::Scopes::end(this); }
  ListenerScope(const ListenerScope&) = delete;
  ListenerScope& operator=(const ListenerScope&) = delete;

 protected:
  detail::Context& context() const { return context_; }
  /// Notifies the listener of the enclosing scope.
  void pass_on(const detail::Call& call, Location where) {
    if (void* outer = context_.tapes->scopes().object_around(this))
      static_cast<Listener*>(outer)->finished(call, where);
  }

 private:
  detail::Context& context_;
};

}  // namespace reel::debug
