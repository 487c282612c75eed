#include "waiting.h"

#include "../context.h"

namespace reel::detail {

constinit std::atomic<void (*)()> throw_if_interrupted{};

ObservedWait::ObservedWait(const char* reason) noexcept : observer_(dynamic_cast<WaitObserver*>(context().listener)) {
  if (observer_) observer_->wait_starting(reason);
}

}  // namespace reel::detail
