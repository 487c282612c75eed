#pragma once

#include <cstddef>
#include <memory>

#include <reel/debug/log_placement.h>
#include <reel/detail/immovable.h>

namespace reel::debug {

/// The scope that `warn_sync` opens. Lives on the stack only.
class [[nodiscard]] SyncScope : detail::Immovable {
 public:
  /// Opens the scope: see `warn_sync`.
  explicit SyncScope(LineSink sink);
  /// Closes the scope.
  ~SyncScope();
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

 private:
  class Warner;
  std::unique_ptr<Warner> warner_;
};

/// `auto scope = debug::warn_sync();`: while the scope lives, each wait of this thread for a GPU is logged, with the
/// reason, the op and the caller's line: `to waits for cuda:0: the values of a tensor; at model.cpp:17`. Without a
/// sink, to stderr. Scopes nest; each is notified of every wait.
inline SyncScope warn_sync(LineSink sink = {}) { return SyncScope(std::move(sink)); }

}  // namespace reel::debug
