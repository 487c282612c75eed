#include <reel/io/audio.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include <reel/io/safetensors.h>
#include <reel/no_record.h>
#include <reel/ops/shape.h>

#include "../core/memory_error.h"
#include "../core/modules/module.h"
#include "../core/op_error.h"
#include "../core/printable.h"
#include "../core/storage.h"
#include "../ops/if_needed.h"
#include "elements.h"
#include "file.h"
#include "modules/sound_table.h"
#include "positioned_file.h"

namespace reel::io {

using namespace detail;

namespace {

constexpr const char* read_audio_name = "io::read_audio";
constexpr const char* write_wav_name = "io::write_wav";

// libsndfile's own limit.
constexpr std::size_t most_channels = 1024;

class SoundFile {
 public:
  SoundFile(const std::string& path, Location where) : path_(path), where_(where), file_(read_audio_name, path, where) {
    check_kind();
    table_ = &open_module<SoundTable, FileError>(read_audio_name, where);
    ModuleMessage message;
    open_ = {table_->open(file_.descriptor(), size_, message), Close{table_}};
    if (!open_) refuse("{}", printable(message.text));
    if (size_.channels > most_channels) refuse("has {} channels", size_.channels);
    // A program that is killed leaves the sizes that it has begun with.
    if (size_.frames == 0 && said_bytes_ < file_.size())
      refuse("says that it has no frames, and has {} bytes: it was not finished", file_.size());
  }

  Audio read(std::int64_t most_samples) {
    auto most = static_cast<std::uint64_t>(most_samples) / size_.channels;
    bool is_known = size_.frames != unknown_frames, is_wav = said_bytes_ != UINT64_MAX;
    // A WAV file that is too short for what it says is cut off, whatever the limit.
    if (is_known && size_.frames > most && (!is_wav || size_.frames <= file_.size() / size_.channels))
      refuse_length(most_samples);
    // Memory grows with what is there, whatever the file says.
    while (read_piece())
      if (frames_ > most) refuse_length(most_samples);
    if (is_known && frames_ != size_.frames)
      refuse("says that it has {} frames, and has {}: it is cut off or faulty", size_.frames, frames_);
    return {tensor(), size_.sample_rate};
  }

 private:
  struct Close {
    const SoundTable* table;
    void operator()(OpenSound* sound) const { table->close(sound); }
  };
  // Samples whose channels follow each other.
  using Piece = std::vector<float>;
  static constexpr std::size_t piece_samples = std::size_t{1} << 14;

  template <class... T>
  [[noreturn]] void refuse(fmt::format_string<T...> words, T&&... values) const {
    fail<FileError>(read_audio_name, where_, "'{}' {}", printable(path_),
                    fmt::format(words, std::forward<T>(values)...));
  }
  [[noreturn]] void refuse_length(std::int64_t most_samples) const {
    refuse("has more than {} samples in {} channels; set .most_samples to read it", most_samples, size_.channels);
  }

  // libsndfile reads other formats, too, in which it is less reliable.
  void check_kind() {
    std::string kind = text(0, 4);
    bool is_wav = kind == "RIFF" || kind == "RIFX";
    if (kind != "fLaC" && !(is_wav && text(8, 4) == "WAVE")) refuse("is neither a WAV nor a FLAC file");
    if (!is_wav) return;
    is_reversed_ = kind == "RIFX";
    said_bytes_ = number(4, 4) + 8;
    check_encoding();
  }

  // Source: Microsoft and IBM, Multimedia Programming Interface and Data Specifications 1.0 (1991), "WAVE"; of an
  // extensible format, Microsoft, "Multiple Channel Audio Data and WAVE Files" (2001).
  void check_encoding() const {
    constexpr std::uint64_t integers = 1, floats = 3, a_law = 6, mu_law = 7, extensible = 0xfffe;
    constexpr int most_chunks = 100;
    std::uint64_t at = 12;
    for (int i = 0; i < most_chunks && at < file_.size(); ++i) {
      std::uint64_t contents = at + 8, count = number(at + 4, 4);
      if (text(at, 4) == "fmt ") {
        std::uint64_t encoding = number(contents, 2);
        if (encoding == extensible) encoding = number(contents + 24, 2);
        if (encoding == integers || encoding == floats || encoding == a_law || encoding == mu_law) return;
        refuse("has samples of the encoding {}, which is not read: `sox` or `ffmpeg` makes integers of 16 bits of them",
               encoding);
      }
      at = contents + count + count % 2;
    }
    refuse("does not say how its samples are encoded: it is cut off or faulty");
  }

  // Some bytes of the file, or those that it has of them.
  std::string text(std::uint64_t from, std::size_t count) const {
    std::uint64_t left = file_.size() - std::min(from, file_.size());
    std::string bytes(std::min<std::uint64_t>(count, left), '\0');
    file_.read(from, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }
  std::uint64_t number(std::uint64_t from, std::size_t count) const {
    std::string bytes = text(from, count);
    if (bytes.size() < count) refuse("is cut off in its header");
    if (!is_reversed_) std::reverse(bytes.begin(), bytes.end());
    std::uint64_t value = 0;
    for (char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
    return value;
  }

  // Returns false at the end.
  bool read_piece() {
    std::size_t channels = size_.channels;
    Piece piece(piece_samples / channels * channels);
    ModuleMessage message;
    std::int64_t count = table_->read(open_.get(), piece.data(), piece.size() / channels, message);
    if (count < 0) refuse("{}", printable(message.text));
    piece.resize(static_cast<std::size_t>(count) * channels);
    frames_ += static_cast<std::uint64_t>(count);
    if (count > 0) pieces_.push_back(std::move(piece));
    return count > 0;
  }

  // Releases the pieces.
  Tensor tensor() {
    auto frames = static_cast<std::size_t>(frames_), channels = std::size_t{size_.channels};
    Tensor samples =
        allocate(context(), {{size_.channels, static_cast<std::int64_t>(frames_)}, f32, cpu}, read_audio_name, where_);
    auto* to = static_cast<float*>(samples.body().data);
    for (Piece& piece : pieces_) {
      std::size_t count = piece.size() / channels;
      for (std::size_t c = 0; c < channels; ++c)
        for (std::size_t i = 0; i < count; ++i) to[c * frames + i] = piece[i * channels + c];
      to += count;
      Piece().swap(piece);
    }
    return samples;
  }

  const std::string& path_;
  Location where_;
  Reader file_;
  const SoundTable* table_ = nullptr;
  SoundSize size_{};
  bool is_reversed_ = false;               // numbers have their highest byte first
  std::uint64_t said_bytes_ = UINT64_MAX;  // the size that a WAV file says that it has
  std::unique_ptr<OpenSound, Close> open_{nullptr, Close{nullptr}};
  std::vector<Piece> pieces_;
  std::uint64_t frames_ = 0;
};

std::int16_t integer_of(float sample) {
  using Limits = std::numeric_limits<std::int16_t>;
  return static_cast<std::int16_t>(
      std::clamp(std::nearbyint(sample * 32768.0F), float{Limits::min()}, float{Limits::max()}));
}

void check_samples(const Tensor& samples, std::int64_t sample_rate, std::int64_t bytes, Location where) {
  if (!samples.defined()) fail<Error>(write_wav_name, where, "the samples are undefined");
  if (samples.dtype() != f32)
    fail<DTypeError>(write_wav_name, where, "takes f32, not {}: to(x, f32) is it", describe(samples));
  bool has_channels = samples.rank() == 2;
  std::int64_t channels = has_channels ? samples.size(0) : 1;
  if ((samples.rank() != 1 && !has_channels) || channels < 1 || channels > static_cast<std::int64_t>(most_channels))
    fail<ShapeError>(write_wav_name, where,
                     "takes samples of shape (channels, frames) with 1 to {} channels, or (frames), not {}",
                     most_channels, to_string(samples.shape()));
  constexpr std::int64_t most_bytes = (std::int64_t{1} << 32) - (1 << 16);
  if (samples.numel() > most_bytes / bytes)
    fail<ShapeError>(write_wav_name, where, "a WAV file holds less than 4 GiB, and samples of {} have {} bytes",
                     to_string(samples.shape()), samples.numel() * bytes);
  // The header has the bytes of a second.
  std::int64_t most_rate = std::numeric_limits<std::int32_t>::max() / (channels * bytes);
  if (sample_rate < 1 || sample_rate > most_rate)
    fail<Error>(write_wav_name, where, "sample_rate is {}, but must be from 1 to {}", sample_rate, most_rate);
}

}  // namespace

double Audio::seconds() const {
  return sample_rate > 0 && samples.defined() ? static_cast<double>(samples.size(-1)) / static_cast<double>(sample_rate)
                                              : 0;
}

Audio read_audio(const std::string& path, const AudioOptions& options, Location where) {
  return with_memory_error(read_audio_name, where, [&] {
    CallerScope caller(where);
    if (options.most_samples < 0)
      fail<Error>(read_audio_name, where, "most_samples is {}, but must be at least 0", options.most_samples);
    return SoundFile(path, where).read(options.most_samples);
  });
}

void write_wav(const std::string& path, const Tensor& samples, std::int64_t sample_rate, const WavOptions& options,
               Location where) {
  with_memory_error(write_wav_name, where, [&] {
    CallerScope caller(where);
    bool has_floats = options.format == SampleFormat::f32;
    check_samples(samples, sample_rate, has_floats ? sizeof(float) : sizeof(std::int16_t), where);
    NoRecord pause;
    Tensor packed = to_if_needed(samples, cpu);
    packed = contiguous_if_needed(packed.rank() == 2 ? transpose(packed) : packed);
    wait_for(packed, where);
    std::span floats(static_cast<const float*>(packed.body().data), static_cast<std::size_t>(packed.numel()));
    if (!std::all_of(floats.begin(), floats.end(), [](float x) { return std::isfinite(x); }))
      fail<Error>(write_wav_name, where, "a sample is infinite or no number");
    std::vector<std::int16_t> integers;
    if (!has_floats) {
      integers.resize(floats.size());
      std::transform(floats.begin(), floats.end(), integers.begin(), integer_of);
    }
    bool has_channels = samples.rank() == 2;
    SoundSize size{has_channels ? static_cast<std::uint32_t>(samples.size(0)) : 1,
                   static_cast<std::uint32_t>(sample_rate), static_cast<std::uint64_t>(samples.size(-1))};
    const auto& table = open_module<SoundTable, FileError>(write_wav_name, where);
    AtomicFile file(write_wav_name, path, where);
    PositionedFile target{file};
    ModuleMessage message;
    const void* stored = has_floats ? static_cast<const void*>(floats.data()) : integers.data();
    bool done = table.write_wav(size, stored, has_floats, target.sink(), message);
    if (target.failure) std::rethrow_exception(target.failure);
    if (!done) fail<FileError>(write_wav_name, where, "'{}' {}", printable(path), printable(message.text));
    file.commit();
  });
}

}  // namespace reel::io
