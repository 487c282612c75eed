#pragma once

#include <mutex>

namespace reel::detail {

/// A mutex that a forked process can lock: fork() waits until no thread holds it. Its holder must neither fork nor make
/// or destroy another one.
class ForkSafeMutex : public std::mutex {
 public:
  ForkSafeMutex();
  ~ForkSafeMutex();
};

}  // namespace reel::detail
