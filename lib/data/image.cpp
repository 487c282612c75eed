#include <reel/data/image.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <reel/no_record.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/pad.h>
#include <reel/ops/random.h>
#include <reel/ops/shape.h>

#include "../core/op_error.h"

namespace reel::data {

using detail::describe;
using detail::fail;

namespace {

void check_images(const char* name, const Tensor& x, Location where) {
  if (!x.defined()) fail<Error>(name, where, "x is an undefined tensor");
  if (x.rank() != 3 && x.rank() != 4)
    fail<ShapeError>(name, where, "x, {}, must be images (C, H, W) or (N, C, H, W)", describe(x));
}

// The part of an axis of `size` that stays when it is moved by `by` steps, and the number of steps added on both sides.
struct Moved {
  Moved(std::int64_t size, std::int64_t by) {
    // By more than its size an axis is empty, and −by may not be an integer.
    by = std::clamp(by, -size, size);
    before = std::max<std::int64_t>(by, 0);
    after = std::max<std::int64_t>(-by, 0);
    begin = after;
    end = size - before;
  }
  std::int64_t begin, end, before, after;
};

Tensor shifted(const Tensor& x, std::int64_t down, std::int64_t right, double value) {
  int rows = x.rank() - 2, columns = x.rank() - 1;
  Moved vertical(x.size(rows), down), horizontal(x.size(columns), right);
  Tensor kept = slice(slice(x, rows, vertical.begin, vertical.end), columns, horizontal.begin, horizontal.end);
  std::vector<PadWidth> widths(static_cast<std::size_t>(x.rank()));
  widths[static_cast<std::size_t>(rows)] = {vertical.before, vertical.after};
  widths[static_cast<std::size_t>(columns)] = {horizontal.before, horizontal.after};
  return pad(kept, widths, {.value = value});
}

// The source of each pixel of a rotated plane (H, W), and how much of its four neighbours it has.
void rotate_plane(const double* from, double* to, std::int64_t height, std::int64_t width, double degrees,
                  double value) {
  double angle = degrees * std::numbers::pi / 180, sine = std::sin(angle), cosine = std::cos(angle);
  double middle_row = static_cast<double>(height - 1) / 2, middle_column = static_cast<double>(width - 1) / 2;
  auto at = [&](std::int64_t row, std::int64_t column) {
    bool is_inside = row >= 0 && row < height && column >= 0 && column < width;
    return is_inside ? from[row * width + column] : value;
  };
  for (std::int64_t row = 0; row < height; ++row) {
    for (std::int64_t column = 0; column < width; ++column) {
      double y = static_cast<double>(row) - middle_row, x = static_cast<double>(column) - middle_column;
      // Rows grow downwards, so that a counter-clockwise angle has this sign.
      double source_row = cosine * y + sine * x + middle_row, source_column = cosine * x - sine * y + middle_column;
      double top = std::floor(source_row), left = std::floor(source_column);
      double below = source_row - top, beside = source_column - left;
      auto r = static_cast<std::int64_t>(top), c = static_cast<std::int64_t>(left);
      to[row * width + column] = (1 - below) * ((1 - beside) * at(r, c) + beside * at(r, c + 1)) +
                                 below * ((1 - beside) * at(r + 1, c) + beside * at(r + 1, c + 1));
    }
  }
}

// x (C, H, W) rotated, in the dtype and on the device of x.
Tensor rotated(const Tensor& x, double degrees, double value) {
  // f64 has all values of f32 and i32.
  Tensor from = contiguous(to(to(x, cpu), f64));
  Tensor result = zeros(from.shape(), {.dtype = f64, .device = cpu});
  std::int64_t plane = x.size(1) * x.size(2);
  {
    auto pixels = result.write<double>();
    for (std::int64_t channel = 0; channel < x.size(0); ++channel)
      rotate_plane(from.data<double>() + channel * plane, pixels.data() + channel * plane, x.size(1), x.size(2),
                   degrees, value);
  }
  return to(to(is_floating(x.dtype()) ? result : round(result), x.dtype()), x.device());
}

// Applies f to each image: to x itself, or to each of several.
template <class F>
Tensor for_each_image(const Tensor& x, F f) {
  if (x.rank() == 3) return f(x);
  std::vector<Tensor> images;
  for (std::int64_t i = 0; i < x.size(0); ++i) images.push_back(f(select(x, 0, i)));
  return images.empty() ? x : stack(images);
}

// A random number in [0, 1).
double uniform(Generator& generator) { return rand({}, {.dtype = f64, .device = cpu, .generator = &generator}).item(); }

}  // namespace

Tensor shift(const Tensor& x, std::int64_t down, std::int64_t right, ShiftOptions options, Location where) {
  NoRecord pause;
  CallerScope caller(where);
  check_images("data::shift", x, where);
  return shifted(x, down, right, options.value);
}

Tensor random_shift(const Tensor& x, Generator& generator, RandomShiftOptions options, Location where) {
  NoRecord pause;
  CallerScope caller(where);
  check_images("data::random_shift", x, where);
  if (options.most < 0) fail<Error>("data::random_shift", where, "most is {}, but must be at least 0", options.most);
  auto draw = [&] {
    double count = 2 * static_cast<double>(options.most) + 1;
    return static_cast<std::int64_t>(std::floor(uniform(generator) * count)) - options.most;
  };
  return for_each_image(x, [&](const Tensor& image) {
    std::int64_t down = draw(), right = draw();
    return shifted(image, down, right, options.value);
  });
}

Tensor rotate(const Tensor& x, double degrees, RotateOptions options, Location where) {
  NoRecord pause;
  CallerScope caller(where);
  check_images("data::rotate", x, where);
  if (x.dtype() == DType::boolean) fail<DTypeError>("data::rotate", where, "x is bool, which cannot be interpolated");
  if (!std::isfinite(degrees)) fail<Error>("data::rotate", where, "the angle is {}", degrees);
  return for_each_image(x, [&](const Tensor& image) { return rotated(image, degrees, options.value); });
}

Tensor random_rotation(const Tensor& x, Generator& generator, RandomRotationOptions options, Location where) {
  NoRecord pause;
  CallerScope caller(where);
  check_images("data::random_rotation", x, where);
  if (x.dtype() == DType::boolean)
    fail<DTypeError>("data::random_rotation", where, "x is bool, which cannot be interpolated");
  if (!(options.most >= 0 && std::isfinite(options.most)))
    fail<Error>("data::random_rotation", where, "most is {}, but must be at least 0 and finite", options.most);
  return for_each_image(x, [&](const Tensor& image) {
    return rotated(image, (2 * uniform(generator) - 1) * options.most, options.value);
  });
}

Tensor horizontal_flip(const Tensor& x, Location where) {
  NoRecord pause;
  CallerScope caller(where);
  check_images("data::horizontal_flip", x, where);
  return contiguous(flip(x, -1));
}

Tensor random_horizontal_flip(const Tensor& x, Generator& generator, RandomFlipOptions options, Location where) {
  NoRecord pause;
  CallerScope caller(where);
  check_images("data::random_horizontal_flip", x, where);
  if (!(options.probability >= 0 && options.probability <= 1))
    fail<Error>("data::random_horizontal_flip", where, "the probability is {}, but must be in [0, 1]",
                options.probability);
  return for_each_image(
      x, [&](const Tensor& image) { return uniform(generator) < options.probability ? flip(image, -1) : image; });
}

Tensor normalise(const Tensor& x, const std::vector<double>& mean, const std::vector<double>& deviation,
                 Location where) {
  constexpr const char* name = "data::normalise";
  NoRecord pause;
  CallerScope caller(where);
  check_images(name, x, where);
  if (!is_floating(x.dtype()))
    fail<DTypeError>(name, where, "x, {}, must be floating; convert it with to(x, f32) / 255", describe(x));
  std::int64_t channels = x.size(x.rank() - 3);
  auto per_channel = [&](const char* what, const std::vector<double>& values) {
    if (values.size() != 1 && std::ssize(values) != channels)
      fail<ShapeError>(name, where, "there are {} {}s for {} channels", values.size(), what, channels);
    return to(to(tensor(values, {std::ssize(values), 1, 1}), x.dtype()), x.device());
  };
  for (double value : deviation)
    if (value == 0) fail<Error>(name, where, "a deviation is 0");
  return (x - per_channel("mean", mean)) / per_channel("deviation", deviation);
}

}  // namespace reel::data
