#pragma once

#include "../core/threads/waiting.h"
#include "../record/tape_list.h"

namespace reel::detail {

/// While it lives, this thread's ops and errors are not observed: for ops that a listener runs, and for what the library
/// only tries.
class Unobserved : Immovable {
 public:
  explicit Unobserved(Context& context) : context_(context), was_observed_(context.has(Context::intercepted)) {
    wait_for_all(context);
    context.set(Context::intercepted, false);
  }
  ~Unobserved() { context_.set(Context::intercepted, was_observed_ && (context_.listener || context_.interceptor)); }

 private:
  Context& context_;
  bool was_observed_;
};

/// Registers a listener for this thread's ops while it lives, besides those of enclosing scopes. Scopes may end in any
/// order. A derived class's override, except of `finished`, has to call the function of this class, which notifies the
/// listener of the enclosing scope.
class ListenerScope : public Listener, public WaitObserver, Immovable {
 public:
  explicit ListenerScope(Context& context) {
    context.tapes->scopes().begin(context, {this, Setting::listener, 0, static_cast<Listener*>(this)});
  }
  ~ListenerScope() override { Scopes::end(this); }

  /// The listener of the enclosing scope; null if there is none.
  Listener* outer() const { return static_cast<Listener*>(context().tapes->scopes().object_around(this)); }

  void starting(const Call& call, Location where) override {
    if (Listener* outer = this->outer()) outer->starting(call, where);
  }
  void finished(const Call& call, Location where) override { pass_on(call, where); }
  void failed(const Call& call) noexcept override {
    if (Listener* outer = this->outer()) outer->failed(call);
  }
  void refused(const char* op, Location where, const std::string& sentence) noexcept override {
    if (Listener* outer = this->outer()) outer->refused(op, where, sentence);
  }
  void gradient_starting(const Entry& entry, std::span<const Tensor> gradients) override {
    if (Listener* outer = this->outer()) outer->gradient_starting(entry, gradients);
  }
  void gradient_finished(const Entry& entry) noexcept override {
    if (Listener* outer = this->outer()) outer->gradient_finished(entry);
  }
  void leaf_gradient(const Tensor& leaf, const Tensor& gradient) override {
    if (Listener* outer = this->outer()) outer->leaf_gradient(leaf, gradient);
  }
  void updating(std::span<const Tensor> parameters) override {
    if (Listener* outer = this->outer()) outer->updating(parameters);
  }
  void updated(std::span<const Tensor> parameters) override {
    if (Listener* outer = this->outer()) outer->updated(parameters);
  }
  void named(const Tensor& tensor, std::string_view name) override {
    if (Listener* outer = this->outer()) outer->named(tensor, name);
  }
  void reading(const Tensor& tensor, const char* by, Location where) override {
    if (Listener* outer = this->outer()) outer->reading(tensor, by, where);
  }
  void wait_starting(const char* reason) noexcept override {
    if (auto* outer = dynamic_cast<WaitObserver*>(this->outer())) outer->wait_starting(reason);
  }
  void wait_finished() noexcept override {
    if (auto* outer = dynamic_cast<WaitObserver*>(this->outer())) outer->wait_finished();
  }

 protected:
  /// Notifies the listener of the enclosing scope.
  void pass_on(const Call& call, Location where) {
    if (Listener* outer = this->outer()) outer->finished(call, where);
  }
};

/// The innermost L among a listener and those of the scopes around it; null if there is none.
template <class L>
L* find_listener(Listener* from) {
  while (from) {
    if (auto* found = dynamic_cast<L*>(from)) return found;
    auto* scope = dynamic_cast<ListenerScope*>(from);
    from = scope ? scope->outer() : nullptr;
  }
  return nullptr;
}

}  // namespace reel::detail
