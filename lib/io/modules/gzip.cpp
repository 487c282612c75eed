#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include "at_end.h"
#include "files_table.h"

namespace reel::detail {
namespace {

constexpr int gzip_format = 16;  // added to the window's size: a gzip file instead of a zlib stream

// A stream of zlib over bytes in memory, which counts what is left of them in 64 bits.
class Stream {
 public:
  Stream(const void* bytes, std::size_t count) : left_(count) {
    zlib.next_in = static_cast<Bytef*>(const_cast<void*>(bytes));
  }
  void refill() {
    auto more =
        static_cast<uInt>(std::min<std::size_t>(left_, std::numeric_limits<uInt>::max() - std::size_t{zlib.avail_in}));
    zlib.avail_in += more;
    left_ -= more;
  }
  std::size_t left() const { return left_ + zlib.avail_in; }
  bool all_is_passed() const { return left_ == 0; }
  z_stream zlib{};

 private:
  std::size_t left_;
};

using Buffer = std::array<Bytef, std::size_t{1} << 15>;

void fill(z_stream& stream, Buffer& buffer) {
  stream.next_out = buffer.data();
  stream.avail_out = static_cast<uInt>(buffer.size());
}

// Decompresses one member, whose end is followed by the next one or by zeros, with which tapes are padded.
bool inflate_member(Stream& stream, std::size_t count, Buffer& buffer, ByteSink sink, ModuleMessage& message) {
  for (;;) {
    stream.refill();
    fill(stream.zlib, buffer);
    int status = inflate(&stream.zlib, Z_NO_FLUSH);
    std::size_t made = buffer.size() - stream.zlib.avail_out;
    if (made > 0 && !sink.append(sink.object, buffer.data(), made)) {
      write_message(message, "is too long");
      return false;
    }
    if (status == Z_STREAM_END) return true;
    if (status == Z_MEM_ERROR) {
      write_message(message, "needs more memory to be decompressed than there is");
      return false;
    }
    if (status == Z_OK && (made > 0 || stream.left() > 0)) continue;
    if (stream.left() == 0)
      write_message(message, "is cut off: its compressed data end without an end mark");
    else
      write_message(message, "has faulty compressed data at byte %zu: %s", count - stream.left(),
                    stream.zlib.msg ? stream.zlib.msg : "no progress");
    return false;
  }
}

bool gunzip(const void* bytes, std::size_t count, ByteSink sink, ModuleMessage& message) noexcept {
  Stream stream(bytes, count);
  if (inflateInit2(&stream.zlib, MAX_WBITS + gzip_format) != Z_OK) {
    write_message(message, "needs more memory to be decompressed than there is");
    return false;
  }
  AtEnd end([&] { inflateEnd(&stream.zlib); });
  Buffer buffer;
  for (;;) {
    if (!inflate_member(stream, count, buffer, sink, message)) return false;
    const auto* rest = static_cast<const Bytef*>(stream.zlib.next_in);
    std::size_t left = stream.left();
    if (std::all_of(rest, rest + left, [](Bytef byte) { return byte == 0; })) return true;
    if (left < 2 || rest[0] != 0x1f || rest[1] != 0x8b) {
      write_message(message, "goes on at byte %zu, after the end of its compressed data", count - left);
      return false;
    }
    inflateReset(&stream.zlib);
  }
}

bool gzip(const void* bytes, std::size_t count, ByteSink sink, ModuleMessage& message) noexcept {
  Stream stream(bytes, count);
  constexpr int memory_level = 8;  // zlib's default
  if (deflateInit2(&stream.zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + gzip_format, memory_level,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    write_message(message, "needs more memory to be compressed than there is");
    return false;
  }
  AtEnd end([&] { deflateEnd(&stream.zlib); });
  Buffer buffer;
  for (int status = Z_OK; status != Z_STREAM_END;) {
    stream.refill();
    fill(stream.zlib, buffer);
    status = deflate(&stream.zlib, stream.all_is_passed() ? Z_FINISH : Z_NO_FLUSH);
    if (!sink.append(sink.object, buffer.data(), buffer.size() - stream.zlib.avail_out)) {
      write_message(message, "is too long");
      return false;
    }
  }
  return true;
}

}  // namespace

void fill_gzip(FilesTable& table) {
  table.gunzip = gunzip;
  table.gzip = gzip;
}

}  // namespace reel::detail
