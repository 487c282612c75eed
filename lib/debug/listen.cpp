#include <reel/debug/listen.h>

#include <memory>

#include "../dispatch/invoke.h"
#include "listener_scope.h"

namespace reel::debug {

class Listen::Forward : public ListenerScope {
 public:
  explicit Forward(std::function<void(const OpEvent&)> f) : ListenerScope(detail::context()), f_(std::move(f)) {}

  void finished(const detail::Call& call, Location where) override {
    Unobserved unobserved(detail::context());
    f_({call.op.name, where, call.inputs, call.outputs});
    pass_on(call, where);
  }

 private:
  std::function<void(const OpEvent&)> f_;
};

Listen::Listen(std::function<void(const OpEvent&)> f) : forward_(std::make_unique<Forward>(std::move(f))) {}

Listen::~Listen() = default;

}  // namespace reel::debug
