#pragma once

#include <cstddef>
#include <memory>

#include <reel/debug/log_placement.h>

namespace reel::debug {

/// What `warn_sync` returns. Lives on the stack only.
class [[nodiscard]] SyncScope {
 public:
  explicit SyncScope(LineSink sink);
  ~SyncScope();
  SyncScope(const SyncScope&) = delete;
  SyncScope& operator=(const SyncScope&) = delete;
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

 private:
  class Warner;
  std::unique_ptr<Warner> warner_;
};

/// `auto scope = debug::warn_sync();`: while the scope lives, each time that this thread waits for a GPU is written out,
/// with the reason, the op and the caller's line: `to waits for cuda:0: the values of a tensor; at model.cpp:17`.
/// By default to stderr. Scopes nest; each hears of all.
inline SyncScope warn_sync(LineSink sink = {}) { return SyncScope(std::move(sink)); }

}  // namespace reel::debug
