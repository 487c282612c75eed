#include <reel/ops/pixel_shuffle.h>

#include <reel/ops/shape.h>

#include "../../core/context.h"
#include "../../core/op_error.h"

namespace reel {

using namespace detail;

namespace {

// x with all axes in front of the last three merged, (B, C, H, W).
Tensor images_of(const char* op, const Tensor& x, std::int64_t factor, Location where) {
  if (x.rank() < 3) fail<ShapeError>(op, where, "takes (…, C, H, W), not {}", describe(x));
  if (factor < 1 || factor > std::int64_t{1} << 30)
    fail<ShapeError>(op, where, "the factor {} is not in [1, 2³⁰]", factor);
  std::int64_t images = 1;
  for (int axis = 0; axis < x.rank() - 3; ++axis) images *= x.size(axis);
  return reshape(x, {images, x.size(-3), x.size(-2), x.size(-1)});
}

// y in x's axes but for the last three.
Tensor with_axes_of(const Tensor& x, const Tensor& y, std::int64_t channels, std::int64_t height, std::int64_t width) {
  Shape shape = x.shape();
  shape[-3] = channels;
  shape[-2] = height;
  shape[-1] = width;
  return reshape(y, shape);
}

}  // namespace

// pixel_shuffle: y_c,(h f + i),(w f + j) = x_(c f² + i f + j),h,w

Tensor pixel_shuffle(const Arg& x, std::int64_t factor) {
  const char* name = "pixel_shuffle";
  const Tensor& tensor = tensor_of(name, x);
  Location where = x.location();
  OpScope caller(where, name);
  Tensor images = images_of(name, tensor, factor, where);
  std::int64_t channels = images.size(1) / (factor * factor), height = images.size(2), width = images.size(3);
  if (channels * factor * factor != images.size(1))
    fail<ShapeError>(name, where, "the channels of {} are no multiple of the {} pixels of a square", describe(tensor),
                     factor * factor);
  Tensor pixels =
      permute(reshape(images, {images.size(0), channels, factor, factor, height, width}), {0, 1, 4, 2, 5, 3});
  return with_axes_of(tensor, copy(pixels), channels, height * factor, width * factor);
}

// pixel_unshuffle: y_(c f² + i f + j),h,w = x_c,(h f + i),(w f + j)

Tensor pixel_unshuffle(const Arg& x, std::int64_t factor) {
  const char* name = "pixel_unshuffle";
  const Tensor& tensor = tensor_of(name, x);
  Location where = x.location();
  OpScope caller(where, name);
  Tensor images = images_of(name, tensor, factor, where);
  std::int64_t channels = images.size(1), height = images.size(2) / factor, width = images.size(3) / factor;
  if (height * factor != images.size(2) || width * factor != images.size(3))
    fail<ShapeError>(name, where, "the last two sizes of {} are no multiples of {}", describe(tensor), factor);
  Tensor squares =
      permute(reshape(images, {images.size(0), channels, height, factor, width, factor}), {0, 1, 3, 5, 2, 4});
  return with_axes_of(tensor, copy(squares), channels * factor * factor, height, width);
}

}  // namespace reel
