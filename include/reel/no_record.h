#pragma once

#include <reel/detail/immovable.h>

namespace reel {

/// While it lives, nothing is recorded on this thread, except by tapes that are opened within.
class NoRecord : detail::Immovable {
 public:
  /// Pauses recording on this thread.
  NoRecord();
  /// Resumes recording.
  ~NoRecord();
};

/// True if ops on tracked tensors are being recorded on this thread.
bool is_recording();

}  // namespace reel
