#pragma once

#include "core/context.h"
#include "dispatch/invoke.h"

namespace reel_test {

/// Sets this thread's interceptor during its lifetime.
class InterceptorScope {
 public:
  explicit InterceptorScope(reel::detail::Interceptor& interceptor)
      : context_(reel::detail::context()), before_(context_.interceptor) {
    context_.interceptor = &interceptor;
    context_.set(reel::detail::Context::intercepted, true);
  }
  ~InterceptorScope() {
    context_.interceptor = before_;
    context_.set(reel::detail::Context::intercepted, before_ || context_.listener);
  }
  InterceptorScope(const InterceptorScope&) = delete;
  InterceptorScope& operator=(const InterceptorScope&) = delete;

 private:
  reel::detail::Context& context_;
  reel::detail::Interceptor* before_;
};

}  // namespace reel_test
