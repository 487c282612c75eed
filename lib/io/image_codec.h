#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <reel/location.h>

namespace reel::detail {

/// An image of 8 bits a channel: `values` has height × width × channels of them, the channels of a pixel side by side.
struct Pixels {
  std::int64_t height, width, channels;  ///< channels: 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha
  std::vector<std::uint8_t> values;
};

/// The most pixels of an image that `decode_image` reads.
constexpr std::uint64_t most_pixels = std::uint64_t{1} << 28;

/// A PNG file of the image. Throws: Error if the sizes are not positive, too large for PNG, or do not fit the values;
/// FileError without libreel_files.so; MemoryError.
std::string encode_png(const Pixels& pixels, Location where);

/// Decodes a PNG or JPEG file. Palettes become colours, a transparent colour becomes an alpha channel, and 16 bits a
/// channel become 8. `path` names the file in messages.
/// Throws: FileError for other files, those that are cut off or faulty, images that the file is too short for or that
/// have more than `most_pixels`, and JPEG of four colours; MemoryError.
Pixels decode_image(std::string_view bytes, const std::string& path, Location where);

}  // namespace reel::detail
