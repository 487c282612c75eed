#include "image_codec.h"

#include <limits>

#include <reel/io/safetensors.h>

#include "../core/memory_error.h"
#include "../core/modules/module.h"
#include "../core/op_error.h"
#include "../core/printable.h"
#include "compressed.h"

namespace reel::detail {

namespace {

constexpr const char* encode_name = "io::write_image";
constexpr const char* decode_name = "io::read_image";

void check_image(const Pixels& pixels, Location where) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (pixels.height < 1 || pixels.width < 1 || pixels.height > most || pixels.width > most)
    fail<Error>(encode_name, where, "an image of {} × {} pixels cannot be a PNG file, whose sides are 1 to {}",
                pixels.height, pixels.width, most);
  if (pixels.channels < 1 || pixels.channels > 4)
    fail<Error>(encode_name, where, "an image has 1 to 4 channels, not {}", pixels.channels);
  std::size_t count = pixels.values.size(), row = static_cast<std::size_t>(pixels.width * pixels.channels);
  if (count % row != 0 || count / row != static_cast<std::size_t>(pixels.height))
    fail<Error>(encode_name, where, "an image of {} × {} × {} has not {} values", pixels.height, pixels.width,
                pixels.channels, count);
}

}  // namespace

std::string encode_png(const Pixels& pixels, Location where) {
  check_image(pixels, where);
  const auto& files = open_module<FilesTable, io::FileError>(encode_name, where);
  ImageSize size{static_cast<std::uint32_t>(pixels.height), static_cast<std::uint32_t>(pixels.width),
                 static_cast<std::uint32_t>(pixels.channels), 0};
  TextSink sink(UINT64_MAX);
  ModuleMessage message;
  if (files.encode_png(size, pixels.values.data(), sink.sink(), message)) return std::move(sink.text);
  sink.check_memory(encode_name, where);
  fail<Error>(encode_name, where, "the image {}", printable(message.text));
}

Pixels decode_image(std::string_view bytes, const std::string& path, Location where) {
  const auto& files = open_module<FilesTable, io::FileError>(decode_name, where);
  ImageSize size;
  ModuleMessage message;
  if (!files.image_size(bytes.data(), bytes.size(), size, message))
    fail<io::FileError>(decode_name, where, "'{}' {}", printable(path), printable(message.text));
  std::uint64_t count = std::uint64_t{size.height} * size.width;
  if (count > most_pixels)
    fail<io::FileError>(decode_name, where, "'{}' is an image of {} × {} pixels, more than the {} that are read",
                        printable(path), size.height, size.width, most_pixels);
  if (bytes.size() < size.least_bytes)
    fail<io::FileError>(decode_name, where,
                        "'{}' has {} bytes, which cannot hold the {} × {} pixels that it says: it is cut off or faulty",
                        printable(path), bytes.size(), size.height, size.width);
  Pixels pixels{size.height, size.width, size.channels, {}};
  with_memory_error(decode_name, where, [&] { pixels.values.resize(count * size.channels); });
  if (!files.decode_image(bytes.data(), bytes.size(), size, pixels.values.data(), message))
    fail<io::FileError>(decode_name, where, "'{}' {}", printable(path), printable(message.text));
  return pixels;
}

}  // namespace reel::detail
