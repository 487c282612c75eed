#pragma once

#include <cstdint>
#include <string>

#include <reel/location.h>
#include <reel/tensor.h>

/// \file
/// Sound in files, read and written by the library libsndfile of the system, which libreel_sound.so is linked with.

namespace reel::io {

/// A sound: its samples and how many of them make a second.
struct Audio {
  Tensor samples;                ///< f32 of shape (channels, frames), in [−1, 1]; left before right
  std::int64_t sample_rate = 0;  ///< frames in a second, in Hz
  /// Its length in seconds: frames / sample_rate.
  double seconds() const;
};

/// Options of `read_audio`.
struct AudioOptions {
  /// The most samples, in all channels together, that are read of a file; one with more is refused. At least 0; default
  /// 2²⁸, which is 1 GiB.
  std::int64_t most_samples = std::int64_t{1} << 28;
};

/// Reads a sound from a WAV file of 8, 16, 24 or 32 bits, floating-point numbers, µ-law or A-law, or from a FLAC file:
/// f32 of shape (channels, frames). An integer k of b bits becomes k / 2^(b−1), which is in [−1, 1); one of 8 bits, which
/// WAV files have without a sign, (k − 128) / 128. Floating-point numbers are as the file has them, also beyond [−1, 1].
/// May be called by several threads.
///
///     io::Audio audio = io::read_audio("clip.wav");
///     Tensor mono = mean(audio.samples, {0});
///
/// Throws: FileError if the file cannot be read, is neither WAV nor FLAC, has another encoding, is faulty, is cut off or
/// has fewer frames than it says, or has more samples than `most_samples`; FileError without libreel_sound.so; Error for
/// a negative `most_samples`; MemoryError if there is not enough memory.
Audio read_audio(const std::string& path, const AudioOptions& options = {}, Location where = Location::here());

/// How `write_wav` stores samples.
enum class SampleFormat : std::uint8_t {
  pcm16,  ///< integers of 16 bits
  f32,    ///< floating-point numbers of 32 bits
};

/// Options of `write_wav`.
struct WavOptions {
  /// How samples are stored. With SampleFormat::pcm16 (default) x becomes the integer nearest to 2¹⁵ x; x < −1 and x ≥ 1
  /// become the least and the largest one.
  SampleFormat format = SampleFormat::pcm16;
};

/// Writes a sound to a WAV file, which depends on nothing but the arguments. `samples`: f32 of shape (channels, frames)
/// with 1 to 1024 channels, or (frames); `sample_rate`: frames in a second, in Hz, at least 1. A reader, even after a power
/// cut, finds the old file or the new one whole.
/// Throws: FileError, with the system's message, if the file cannot be written, and without libreel_sound.so; DTypeError
/// for another dtype; ShapeError for other shapes, and for more than 2³¹ bytes; Error for a sample that is no number and
/// for other rates.
void write_wav(const std::string& path, const Tensor& samples, std::int64_t sample_rate, const WavOptions& options = {},
               Location where = Location::here());

}  // namespace reel::io
