#include "images.h"

#include <cstring>

#include "files_table.h"

namespace reel::detail {
namespace {

constexpr unsigned char png_signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr unsigned char jpeg_signature[] = {0xff, 0xd8, 0xff};

template <std::size_t N>
bool begins_with(const void* bytes, std::size_t count, const unsigned char (&signature)[N]) {
  return count >= N && std::memcmp(bytes, signature, N) == 0;
}

bool image_size(const void* bytes, std::size_t count, ImageSize& size, ModuleMessage& message) noexcept {
  if (begins_with(bytes, count, png_signature)) return png_size(bytes, count, size, message);
  if (begins_with(bytes, count, jpeg_signature)) return jpeg_size(bytes, count, size, message);
  write_message(message, "is neither a PNG nor a JPEG file");
  return false;
}

bool decode_image(const void* bytes, std::size_t count, const ImageSize& size, std::uint8_t* values,
                  ModuleMessage& message) noexcept {
  return begins_with(bytes, count, png_signature) ? decode_png(bytes, count, size, values, message)
                                                  : decode_jpeg(bytes, count, size, values, message);
}

}  // namespace

void fill_images(FilesTable& table) {
  table.image_size = image_size;
  table.decode_image = decode_image;
  table.encode_png = encode_png;
}

}  // namespace reel::detail
