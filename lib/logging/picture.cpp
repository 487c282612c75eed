#include "picture.h"

#include <cmath>
#include <cstddef>

#include <reel/no_record.h>
#include <reel/ops/create.h>

#include "../core/op_error.h"
#include "../ops/if_needed.h"

namespace reel::logging {

using detail::fail;

namespace {

void check_picture(const char* function, const Tensor& x, Location where) {
  if (x.rank() != 3 && x.rank() != 4)
    fail<ShapeError>(function, where, "a picture is (C, H, W), and several are (N, C, H, W); this is {}",
                     detail::describe(x));
  if (x.size(-3) < 1 || x.size(-3) > 4 || x.numel() == 0)
    fail<ShapeError>(function, where, "{} has no pixels of 1 to 4 channels; the channels come before height and width",
                     detail::describe(x));
  if (!is_floating(x.dtype()) && x.dtype() != u8 && x.dtype() != boolean)
    fail<DTypeError>(function, where, "pixels are u8, bool, or floating in [0, 1]; this is {}", detail::describe(x));
}

// The elements as u8, in row-major order on the CPU.
Tensor bytes_of_pixels(const Tensor& x) {
  Tensor here = detail::to_if_needed(x, cpu);
  if (here.dtype() == u8) return detail::contiguous_if_needed(here);
  Tensor values = detail::contiguous_if_needed(detail::to_if_needed(here, f32));
  Tensor bytes = zeros(values.shape(), {.dtype = u8});
  auto to = bytes.write<unsigned char>();
  const float* from = values.data<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    float value = from[i] * 255;
    // The order of the operands makes NaN 0.
    to[i] = static_cast<unsigned char>(std::lround(value > 0 ? std::fmin(value, 255.0f) : 0.0f));
  }
  return bytes;
}

}  // namespace

detail::Pixels picture_of(const char* function, const Tensor& x, std::int64_t gap, Location where) {
  NoRecord pause;
  Arg arg(x, where);
  check_picture(function, detail::tensor_of(function, arg), where);
  Tensor bytes = bytes_of_pixels(x);
  std::int64_t count = x.rank() == 4 ? x.size(0) : 1, channels = x.size(-3), height = x.size(-2), width = x.size(-1);
  auto columns = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  std::int64_t rows = gap > 0 ? (count + columns - 1) / columns : columns;
  detail::Pixels whole{rows * (height + gap) - gap, columns * (width + gap) - gap, channels, {}};
  whole.values.resize(static_cast<std::size_t>(whole.height * whole.width * channels));
  const unsigned char* from = bytes.data<unsigned char>();
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t row = 0; row < height; ++row) {
        std::int64_t y = i / columns * (height + gap) + row, left = i % columns * (width + gap);
        for (std::int64_t column = 0; column < width; ++column)
          whole.values[static_cast<std::size_t>((y * whole.width + left + column) * channels + c)] = *from++;
      }
  return whole;
}

}  // namespace reel::logging
