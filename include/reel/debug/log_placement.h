#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <reel/detail/immovable.h>
#include <reel/tensor.h>

namespace reel::debug {

/// A function that takes the lines of a log.
using LineSink = std::function<void(const std::string&)>;

/// The scope that `log_placement` opens. Lives on the stack only.
class [[nodiscard]] PlacementScope : detail::Immovable {
 public:
  /// Opens the scope: see `log_placement`.
  explicit PlacementScope(LineSink sink);
  /// Closes the scope.
  ~PlacementScope();
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

 private:
  class Log;
  std::unique_ptr<Log> log_;
};

/// `auto scope = debug::log_placement();`: while the scope lives, each op of this thread, forward and backward, is
/// logged as it runs, with its device: `cuda:0  matmul (2, 3) f32, (3, 4) f32 → (2, 4) f32; at model.cpp:17`. Without a
/// sink, to stderr.
inline PlacementScope log_placement(LineSink sink = {}) { return PlacementScope(std::move(sink)); }

}  // namespace reel::debug
