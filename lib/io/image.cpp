#include <reel/io/image.h>

#include <reel/io/safetensors.h>
#include <reel/ops/create.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../core/storage.h"
#include "../ops/if_needed.h"
#include "atomic_file.h"
#include "elements.h"
#include "file.h"
#include "image_codec.h"

namespace reel::io {

using namespace detail;

namespace {

constexpr const char* read_image_name = "io::read_image";
constexpr const char* write_image_name = "io::write_image";

struct Colour {
  std::uint8_t red, green, blue, alpha;
};

Colour colour_of(const std::uint8_t* pixel, std::int64_t channels) {
  if (channels < 3) return {pixel[0], pixel[0], pixel[0], channels == 2 ? pixel[1] : std::uint8_t{255}};
  return {pixel[0], pixel[1], pixel[2], channels == 4 ? pixel[3] : std::uint8_t{255}};
}

// Source: ITU-R BT.601, in thousandths, rounded.
std::uint8_t grey_of(const Colour& colour) {
  return static_cast<std::uint8_t>((colour.red * 299 + colour.green * 587 + colour.blue * 114 + 500) / 1000);
}

Pixels with_channels(Pixels pixels, int channels) {
  if (channels == 0 || channels == pixels.channels) return pixels;
  Pixels made{pixels.height, pixels.width, channels, {}};
  std::int64_t count = pixels.height * pixels.width;
  made.values.reserve(static_cast<std::size_t>(count * channels));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint8_t* pixel = &pixels.values[static_cast<std::size_t>(i * pixels.channels)];
    Colour colour = colour_of(pixel, pixels.channels);
    // Grey pixels of the file stay as they are.
    if (channels == 1) {
      made.values.push_back(pixels.channels < 3 ? pixel[0] : grey_of(colour));
      continue;
    }
    made.values.insert(made.values.end(), {colour.red, colour.green, colour.blue});
    if (channels == 4) made.values.push_back(colour.alpha);
  }
  return made;
}

}  // namespace

Tensor read_image(const std::string& path, const ImageOptions& options, Location where) {
  return with_memory_error(read_image_name, where, [&] {
    CallerScope caller(where);
    if (options.channels != 0 && options.channels != 1 && options.channels != 3 && options.channels != 4)
      fail<Error>(read_image_name, where, "channels are 1, 3, 4, or 0 for those of the file, not {}", options.channels);
    Reader file(read_image_name, path, where);
    Pixels pixels = with_channels(decode_image(file.beginning(), path, where), options.channels);
    Tensor image =
        allocate(context(), {{pixels.channels, pixels.height, pixels.width}, u8, cpu}, read_image_name, where);
    auto* values = static_cast<std::uint8_t*>(image.body().data);
    std::int64_t count = pixels.height * pixels.width, channels = pixels.channels;
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t i = 0; i < count; ++i)
        values[c * count + i] = pixels.values[static_cast<std::size_t>(i * channels + c)];
    return image;
  });
}

void write_image(const std::string& path, const Tensor& image, Location where) {
  CallerScope caller(where);
  if (!image.defined()) fail<Error>(write_image_name, where, "the image is undefined");
  if (image.dtype() != u8)
    fail<DTypeError>(write_image_name, where, "takes u8, not {}: to(x * 255, u8) is it, where x is in [0, 1]",
                     describe(image));
  bool has_channels = image.rank() == 3;
  if ((image.rank() != 2 && !has_channels) || image.numel() == 0 || (has_channels && image.size(0) > 4))
    fail<ShapeError>(
        write_image_name, where,
        "takes an image of shape (channels, height, width) with 1 to 4 channels, or (height, width), not {}",
        to_string(image.shape()));
  NoRecord pause;
  Tensor packed = to_if_needed(image, cpu);
  packed = contiguous_if_needed(has_channels ? permute(packed, {1, 2, 0}) : packed);
  std::span<const std::byte> values = elements_of(packed);
  Pixels pixels{packed.size(0), packed.size(1), has_channels ? packed.size(2) : 1, {}};
  const auto* begin = reinterpret_cast<const std::uint8_t*>(values.data());
  pixels.values.assign(begin, begin + values.size());
  std::string bytes = encode_png(pixels, where);
  AtomicFile file(write_image_name, path, where);
  file.write(std::as_bytes(std::span(bytes)));
  file.commit();
}

}  // namespace reel::io
