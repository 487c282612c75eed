#include <reel/debug/listen.h>

#include <memory>

#include "../core/context.h"
#include "../core/invoke.h"

namespace reel::debug {

class Listen::Forward : public detail::Listener {
 public:
  Forward(std::function<void(const OpEvent&)> f, detail::Context& context)
      : f_(std::move(f)), context_(context), outer_(context.listener) {
    context.listener = this;
    context.set(detail::Context::intercepted, true);
  }
  ~Forward() override {
    context_.listener = outer_;
    context_.set(detail::Context::intercepted, outer_ || context_.lane);
  }
  void finished(const detail::Call& call, Location where) override {
    // What a listener does is not listened to.
    context_.set(detail::Context::intercepted, false);
    struct Resume {
      detail::Context& context;
      ~Resume() { context.set(detail::Context::intercepted, true); }
    } resume{context_};
    f_({call.op.name, where, call.inputs, call.outputs});
    if (outer_) outer_->finished(call, where);
  }

 private:
  std::function<void(const OpEvent&)> f_;
  detail::Context& context_;
  detail::Listener* outer_;
};

Listen::Listen(std::function<void(const OpEvent&)> f)
    : forward_(std::make_unique<Forward>(std::move(f), detail::context())) {}

Listen::~Listen() = default;

}  // namespace reel::debug
