#include <sndfile.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <new>

#include "sound_table.h"

namespace reel::detail {

struct OpenSound {
  SNDFILE* file;
  int channels;
};

namespace {

// libsndfile keeps what it says of a file that it cannot open in one place.
std::mutex& opening_mutex() {
  static std::mutex mutex;
  return mutex;
}

struct CloseFile {
  void operator()(SNDFILE* file) const { sf_close(file); }
};
using Closed = std::unique_ptr<SNDFILE, CloseFile>;

void write_failure(ModuleMessage& message, const char* predicate, SNDFILE* file) {
  const char* words = sf_strerror(file);
  std::size_t size = std::strlen(words);
  if (size > 0 && words[size - 1] == '.') --size;
  std::snprintf(message.text, sizeof message.text, "%s: %.*s", predicate,
                static_cast<int>(std::min<std::size_t>(size, 120)), words);
}

// The bytes of a sample in a WAV file; 0 for encodings in blocks, whose decoders are known to have faults.
unsigned sample_bytes(int format) {
  switch (format & SF_FORMAT_SUBMASK) {
    case SF_FORMAT_PCM_U8:
    case SF_FORMAT_ULAW:
    case SF_FORMAT_ALAW: return 1;
    case SF_FORMAT_PCM_16: return 2;
    case SF_FORMAT_PCM_24: return 3;
    case SF_FORMAT_PCM_32:
    case SF_FORMAT_FLOAT: return 4;
    case SF_FORMAT_DOUBLE: return 8;
    default: return 0;
  }
}

// The bytes that a WAV file says its samples have, of which libsndfile only gives those that are there.
std::uint64_t said_bytes(SNDFILE* file) {
  SF_CHUNK_INFO data{};
  std::memcpy(data.id, "data", 4);
  data.id_size = 4;
  SF_CHUNK_ITERATOR* found = sf_get_chunk_iterator(file, &data);
  if (!found || sf_get_chunk_size(found, &data) != SF_ERR_NO_ERROR) return 0;
  return data.datalen;
}

bool describe(SNDFILE* file, const SF_INFO& info, SoundSize& size, ModuleMessage& message) {
  size = {static_cast<std::uint32_t>(info.channels), static_cast<std::uint32_t>(info.samplerate),
          static_cast<std::uint64_t>(info.frames)};
  if (info.channels < 1 || info.samplerate < 1 || info.frames < 0) {
    std::snprintf(message.text, sizeof message.text, "has %d channels of %d samples a second", info.channels,
                  info.samplerate);
    return false;
  }
  if ((info.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_FLAC) {
    if (info.frames > std::numeric_limits<std::int64_t>::max() / 2) size.frames = unknown_frames;
    return true;
  }
  unsigned bytes = sample_bytes(info.format);
  if (bytes == 0) {
    std::snprintf(message.text, sizeof message.text,
                  "has an encoding that is not read: convert it to 16 bits, for instance with `sox` or `ffmpeg`");
    return false;
  }
  size.frames = said_bytes(file) / (std::uint64_t{bytes} * size.channels);
  if (size.frames < static_cast<std::uint64_t>(info.frames)) {
    std::snprintf(message.text, sizeof message.text, "says that it has %llu frames, and has more: it was not finished",
                  static_cast<unsigned long long>(size.frames));
    return false;
  }
  return true;
}

OpenSound* open_sound(int descriptor, SoundSize& size, ModuleMessage& message) noexcept {
  SF_INFO info{};
  std::unique_lock lock(opening_mutex());
  Closed file(sf_open_fd(descriptor, SFM_READ, &info, SF_FALSE));
  if (!file.get()) write_failure(message, "is no readable WAV or FLAC file", nullptr);
  lock.unlock();
  if (!file.get() || !describe(file.get(), info, size, message)) return nullptr;
  auto* made = new (std::nothrow) OpenSound{file.get(), info.channels};
  if (!made)
    std::snprintf(message.text, sizeof message.text, "needs more memory than there is");
  else
    file.release();
  return made;
}

void close_sound(OpenSound* sound) noexcept {
  sf_close(sound->file);
  delete sound;
}

std::int64_t read_sound(OpenSound* sound, float* samples, std::uint64_t frames, ModuleMessage& message) noexcept {
  sf_count_t count = sf_readf_float(sound->file, samples, static_cast<sf_count_t>(frames));
  if (count < 0 || sf_error(sound->file) != SF_ERR_NO_ERROR) {
    write_failure(message, "cannot be decoded", sound->file);
    return -1;
  }
  return count;
}

// A file as libsndfile writes it.
struct SoundOutput {
  PositionedSink sink;
  sf_count_t position = 0, end = 0;
};

SoundOutput& output_of(void* data) { return *static_cast<SoundOutput*>(data); }

sf_count_t seek_output(sf_count_t offset, int from, void* data) {
  SoundOutput& output = output_of(data);
  sf_count_t base = from == SEEK_SET ? 0 : from == SEEK_CUR ? output.position : output.end;
  if (base + offset < 0) return -1;
  return output.position = base + offset;
}

sf_count_t write_output(const void* bytes, sf_count_t count, void* data) {
  SoundOutput& output = output_of(data);
  if (!output.sink.write(output.sink.object, static_cast<std::uint64_t>(output.position), bytes,
                         static_cast<std::size_t>(count)))
    return 0;
  output.position += count;
  output.end = std::max(output.end, output.position);
  return count;
}

bool write_wav(const SoundSize& size, const void* samples, bool has_floats, PositionedSink sink,
               ModuleMessage& message) noexcept {
  SF_INFO info{};
  info.channels = static_cast<int>(size.channels);
  info.samplerate = static_cast<int>(size.sample_rate);
  info.format = SF_FORMAT_WAV | (has_floats ? SF_FORMAT_FLOAT : SF_FORMAT_PCM_16);
  SF_VIRTUAL_IO functions{[](void* data) { return output_of(data).end; }, seek_output,
                          [](void*, sf_count_t, void*) { return sf_count_t{0}; }, write_output,
                          [](void* data) { return output_of(data).position; }};
  SoundOutput output{sink};
  std::unique_lock lock(opening_mutex());
  Closed file(sf_open_virtual(&functions, SFM_WRITE, &info, &output));
  if (!file.get()) write_failure(message, "cannot be begun", nullptr);
  lock.unlock();
  if (!file.get()) return false;
  // It holds the time.
  sf_command(file.get(), SFC_SET_ADD_PEAK_CHUNK, nullptr, SF_FALSE);
  auto frames = static_cast<sf_count_t>(size.frames);
  sf_count_t written = has_floats ? sf_writef_float(file.get(), static_cast<const float*>(samples), frames)
                                  : sf_writef_short(file.get(), static_cast<const short*>(samples), frames);
  if (written != frames) {
    write_failure(message, "cannot be written", file.get());
    return false;
  }
  if (sf_close(file.release()) == SF_ERR_NO_ERROR) return true;
  std::snprintf(message.text, sizeof message.text, "cannot be finished");
  return false;
}

}  // namespace
}  // namespace reel::detail

extern "C" [[gnu::visibility("default")]] const void* reel_module_table(std::uint32_t version,
                                                                        std::size_t bytes) noexcept {
  using namespace reel::detail;
  static const SoundTable table{open_sound, close_sound, read_sound, write_wav};
  return table_if_compatible(table, version, bytes);
}
