#pragma once

#include <atomic>

#include <reel/detail/immovable.h>

namespace reel::detail {

/// A listener that is notified of how long its thread waits for other threads, or for a device.
class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  /// `reason`: what the thread waits for, a text that is never freed.
  virtual void wait_starting(const char* reason) noexcept = 0;
  virtual void wait_finished() noexcept = 0;
};

/// While it lives, this thread waits; to be made only where it does.
class ObservedWait : Immovable {
 public:
  explicit ObservedWait(const char* reason) noexcept;
  ~ObservedWait() {
    if (observer_) observer_->wait_finished();
  }

 private:
  WaitObserver* observer_;
};

/// Throws if the program has been asked to end: to be called now and then by what waits for a person. Set by the layer
/// that handles signals; null before.
extern std::atomic<void (*)()> throw_if_interrupted;

}  // namespace reel::detail
