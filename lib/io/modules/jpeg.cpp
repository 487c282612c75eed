// jpeglib.h uses what stdio.h declares.
#include <cstdio>

#include <jpeglib.h>

#include <csetjmp>

#include "at_end.h"
#include "images.h"

namespace reel::detail {
namespace {

// A progressive file may say in a few bytes each that the whole image is to be passed over again.
constexpr int most_scans = 100;

// Handler of libjpeg's failures; `base` comes first, so that a pointer to it is one to this.
struct Failure {
  jpeg_error_mgr base;
  std::jmp_buf exit;
  ModuleMessage* message;
};

[[noreturn]] void end_with_error(j_common_ptr jpeg) {
  auto& failure = *reinterpret_cast<Failure*>(jpeg->err);
  char reason[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, reason);
  write_message(*failure.message, "is a faulty JPEG file: %s", reason);
  std::longjmp(failure.exit, 1);
}

// Level −1: the data are corrupt, and grey would be put in their place.
void refuse_corrupt(j_common_ptr jpeg, int level) {
  if (level < 0) end_with_error(jpeg);
}

void count_scans(j_common_ptr jpeg) {
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= most_scans) return;
  auto& failure = *reinterpret_cast<Failure*>(jpeg->err);
  write_message(*failure.message, "is a JPEG file of more than %d scans", most_scans);
  std::longjmp(failure.exit, 1);
}

void use(jpeg_decompress_struct& jpeg, Failure& failure, ModuleMessage& message) {
  jpeg.err = jpeg_std_error(&failure.base);
  failure.base.error_exit = end_with_error;
  failure.base.emit_message = refuse_corrupt;
  failure.message = &message;
}

// In a file of one scan a block of 8 × 8 takes at least two bits: one for the first value, one for the end. In a
// progressive file the scan of the first values takes at least one; the ends of many blocks may have a code together.
std::uint64_t least_bytes_of(const jpeg_decompress_struct& jpeg) {
  if (jpeg.arith_code) return 0;
  std::uint64_t blocks = std::uint64_t{(jpeg.image_width + 7) / 8} * ((jpeg.image_height + 7) / 8);
  return blocks * (jpeg.progressive_mode ? 1 : 2) / 8;
}

bool begin_reading(jpeg_decompress_struct& jpeg, Failure& failure, const void* bytes, std::size_t count,
                   ImageSize& size) {
  if (setjmp(failure.exit)) return false;
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, static_cast<const unsigned char*>(bytes), count);
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = jpeg.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  size = {jpeg.image_height, jpeg.image_width, jpeg.num_components == 1 ? 1u : 3u, least_bytes_of(jpeg)};
  return true;
}

bool read_rows(jpeg_decompress_struct& jpeg, Failure& failure, jpeg_progress_mgr& progress, const ImageSize& size,
               std::uint8_t* values) {
  if (setjmp(failure.exit)) return false;
  progress.progress_monitor = count_scans;
  jpeg.progress = &progress;
  jpeg_start_decompress(&jpeg);
  std::size_t row = std::size_t{size.width} * size.channels;
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW line = values + jpeg.output_scanline * row;
    jpeg_read_scanlines(&jpeg, &line, 1);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

bool has_four_colours(const jpeg_decompress_struct& jpeg, ModuleMessage& message) {
  if (jpeg.num_components == 1 || jpeg.num_components == 3) return false;
  write_message(message, "is a JPEG file of %d components, as printers use them: convert it to RGB",
                jpeg.num_components);
  return true;
}

}  // namespace

bool jpeg_size(const void* bytes, std::size_t count, ImageSize& size, ModuleMessage& message) noexcept {
  jpeg_decompress_struct jpeg{};
  Failure failure;
  use(jpeg, failure, message);
  AtEnd end([&] { jpeg_destroy_decompress(&jpeg); });
  return begin_reading(jpeg, failure, bytes, count, size) && !has_four_colours(jpeg, message);
}

bool decode_jpeg(const void* bytes, std::size_t count, const ImageSize& size, std::uint8_t* values,
                 ModuleMessage& message) noexcept {
  jpeg_decompress_struct jpeg{};
  Failure failure;
  use(jpeg, failure, message);
  AtEnd end([&] { jpeg_destroy_decompress(&jpeg); });
  jpeg_progress_mgr progress{};
  ImageSize found{};
  return begin_reading(jpeg, failure, bytes, count, found) && read_rows(jpeg, failure, progress, size, values);
}

}  // namespace reel::detail
