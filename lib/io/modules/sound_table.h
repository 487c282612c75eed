#pragma once

#include <cstddef>
#include <cstdint>

#include "../../core/modules/module_table.h"

namespace reel::detail {

/// The size of a sound, from the header of its file.
struct SoundSize {
  std::uint32_t channels, sample_rate;
  std::uint64_t frames;  ///< when written or read whole; `unknown_frames` if the file does not say
};

constexpr std::uint64_t unknown_frames = UINT64_MAX;

/// A file while it is read.
struct OpenSound;

/// The functions of libreel_sound.so. Functions that return bool return false after they have written a message, a predicate
/// about the file such as "is cut off".
struct SoundTable {
  static constexpr ModuleName module = {"reel_sound", "sound files", "libsndfile1", 1};

  /// Opens a WAV or FLAC file to read; the descriptor, whose position is 0, stays the caller's. Null after a message.
  OpenSound* (*open)(int descriptor, SoundSize& size, ModuleMessage& message) noexcept;
  void (*close)(OpenSound* sound) noexcept;
  /// Reads up to `frames` frames, whose channels follow each other. Returns their number, 0 at the end, −1 after a
  /// message.
  std::int64_t (*read)(OpenSound* sound, float* samples, std::uint64_t frames, ModuleMessage& message) noexcept;
  /// Writes a WAV file of samples whose channels follow each other: f32 if `has_floats`, else integers of 16 bits.
  bool (*write_wav)(const SoundSize& size, const void* samples, bool has_floats, PositionedSink sink,
                    ModuleMessage& message) noexcept;
};

}  // namespace reel::detail
