#include <png.h>

#include <csetjmp>
#include <cstring>

#include "at_end.h"
#include "images.h"

namespace reel::detail {
namespace {

// The bytes of a file that are not read yet.
struct Input {
  const unsigned char* next;
  std::size_t left;
};

void read_bytes(png_structp png, png_bytep bytes, std::size_t count) {
  auto& input = *static_cast<Input*>(png_get_io_ptr(png));
  if (count > input.left) png_error(png, "the file is cut off");
  std::memcpy(bytes, input.next, count);
  input.next += count;
  input.left -= count;
}

void write_bytes(png_structp png, png_bytep bytes, std::size_t count) {
  auto& sink = *static_cast<ByteSink*>(png_get_io_ptr(png));
  if (!sink.append(sink.object, bytes, count)) png_error(png, "it is too long");
}

[[noreturn]] void end_with_error(png_structp png, png_const_charp reason) {
  write_message(*static_cast<ModuleMessage*>(png_get_error_ptr(png)), "is a faulty PNG file: %s", reason);
  png_longjmp(png, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

// The channels of the pixels that `convert_to_bytes` asks for.
std::uint32_t channels_of(png_structp png, png_infop info) {
  int type = png_get_color_type(png, info);
  bool has_alpha = (type & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(png, info, PNG_INFO_tRNS) != 0;
  return ((type & PNG_COLOR_MASK_COLOR) != 0 ? 3u : 1u) + (has_alpha ? 1u : 0u);
}

// Asks for 8 bits a channel: grey or colours instead of a palette, and alpha instead of a transparent colour.
void convert_to_bytes(png_structp png) {
  png_set_expand(png);
  png_set_scale_16(png);
}

// Deflate expands a byte to at most 1032.
std::uint64_t least_bytes_of(png_structp png, png_infop info) {
  std::uint64_t bits = std::uint64_t{png_get_bit_depth(png, info)} * png_get_channels(png, info);
  // Each row takes at least its bits, in an interlaced file, too.
  std::uint64_t row = (bits * png_get_image_width(png, info) + 7) / 8;
  return row * png_get_image_height(png, info) / 1032;
}

bool lacks_memory(ModuleMessage& message) {
  write_message(message, "needs more memory than there is");
  return false;
}

// Reads the header. Rows are allocated by `read_rows`, for an image that the file can hold.
bool begin_reading(png_structp png, png_infop info, Input& input, ImageSize& size) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_read_fn(png, &input, read_bytes);
  // Texts and profiles are passed over, whatever their length: −1 stands for all chunks that no pixel depends on.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_read_info(png, info);
  size.least_bytes = least_bytes_of(png, info);
  size.height = png_get_image_height(png, info);
  size.width = png_get_image_width(png, info);
  size.channels = channels_of(png, info);
  return true;
}

bool read_rows(png_structp png, png_infop info, const ImageSize& size, std::uint8_t* values) {
  if (setjmp(png_jmpbuf(png))) return false;
  convert_to_bytes(png);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  std::size_t row = std::size_t{size.width} * size.channels;
  if (png_get_rowbytes(png, info) != row) png_error(png, "its rows have another size than its header says");
  for (int pass = 0; pass < passes; ++pass)
    for (std::size_t y = 0; y < size.height; ++y) png_read_row(png, values + y * row, nullptr);
  png_read_end(png, nullptr);
  return true;
}

bool write_rows(png_structp png, png_infop info, const ImageSize& size, const std::uint8_t* values, ByteSink& sink) {
  if (setjmp(png_jmpbuf(png))) return false;
  constexpr int colours[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGBA};
  png_set_write_fn(png, &sink, write_bytes, nullptr);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_IHDR(png, info, size.width, size.height, 8, colours[size.channels - 1], PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  std::size_t row = std::size_t{size.width} * size.channels;
  for (std::size_t y = 0; y < size.height; ++y) png_write_row(png, values + y * row);
  png_write_end(png, nullptr);
  return true;
}

}  // namespace

bool png_size(const void* bytes, std::size_t count, ImageSize& size, ModuleMessage& message) noexcept {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &message, end_with_error, ignore_warning);
  if (!png) return lacks_memory(message);
  png_infop info = png_create_info_struct(png);
  AtEnd end([&] { png_destroy_read_struct(&png, info ? &info : nullptr, nullptr); });
  Input input{static_cast<const unsigned char*>(bytes), count};
  return info ? begin_reading(png, info, input, size) : lacks_memory(message);
}

bool decode_png(const void* bytes, std::size_t count, const ImageSize& size, std::uint8_t* values,
                ModuleMessage& message) noexcept {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &message, end_with_error, ignore_warning);
  if (!png) return lacks_memory(message);
  png_infop info = png_create_info_struct(png);
  AtEnd end([&] { png_destroy_read_struct(&png, info ? &info : nullptr, nullptr); });
  Input input{static_cast<const unsigned char*>(bytes), count};
  ImageSize found{};
  if (!info) return lacks_memory(message);
  if (!begin_reading(png, info, input, found)) return false;
  return read_rows(png, info, size, values);
}

bool encode_png(const ImageSize& size, const std::uint8_t* values, ByteSink sink, ModuleMessage& message) noexcept {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &message, end_with_error, ignore_warning);
  if (!png) return lacks_memory(message);
  png_infop info = png_create_info_struct(png);
  AtEnd end([&] { png_destroy_write_struct(&png, info ? &info : nullptr); });
  return info ? write_rows(png, info, size, values, sink) : lacks_memory(message);
}

}  // namespace reel::detail
