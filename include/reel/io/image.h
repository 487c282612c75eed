#pragma once

#include <string>

#include <reel/location.h>
#include <reel/tensor.h>

namespace reel::io {

/// Options of `read_image`.
struct ImageOptions {
  /// The channels of the result: 1 grey, 3 RGB, 4 RGB and alpha; 0 (default) those of the file: 1, 2 (grey and alpha), 3
  /// or 4. Grey becomes three equal colours; colours become grey as 0.299 R + 0.587 G + 0.114 B; alpha is left out, or
  /// 255 where the file has none.
  int channels = 0;
};

/// Reads an image from a PNG or JPEG file: u8 of shape (channels, height, width). Palettes become colours, a transparent
/// colour an alpha channel, and 16 bits a channel 8. An image has at most 2²⁸ pixels, and no more than its file can
/// hold.
/// Throws: FileError if the file cannot be read, is no PNG or JPEG, is cut off or faulty, or is a JPEG of four colours;
/// Error for other `channels`; MemoryError if there is not enough memory.
Tensor read_image(const std::string& path, const ImageOptions& options = {}, Location where = Location::here());

/// Writes an image to a PNG file. `image`: u8 of shape (channels, height, width) with 1 (grey), 2 (grey and alpha), 3
/// (RGB) or 4 channels (RGB and alpha), or (height, width). A reader, even after a power cut, finds the old file or the
/// new one whole.
/// Throws: FileError, with the system's message, if the file cannot be written; DTypeError for another dtype;
/// ShapeError for other shapes.
void write_image(const std::string& path, const Tensor& image, Location where = Location::here());

}  // namespace reel::io
