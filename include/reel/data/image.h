#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <reel/random.h>
#include <reel/tensor.h>

/// \file
/// Transforms of images x: (C, H, W), or several (N, C, H, W), of which each is transformed with random numbers of its
/// own. Results have the shape, dtype and device of x, and nothing is recorded: they are for data, not for layers. In a
/// Loader, give them the generator that `data::transformed` passes on:
///
///     auto augmented = data::transformed(images, [](const Tensor& x, Generator& generator) {
///       Tensor moved = data::random_shift(x, generator, {.most = 2});
///       return data::normalise(data::random_rotation(moved, generator, {.most = 10}), {0.13}, {0.31});
///     });

namespace reel::data {

/// Options of `shift`.
struct ShiftOptions {
  /// The value of pixels that come from outside the image. Default 0.
  double value = 0;
};
/// Moves images down by `down` pixels and to the right by `right`; negative ones up and to the left. Pixels that leave
/// the image are lost. Any dtype.
/// Throws: ShapeError unless x is (C, H, W) or (N, C, H, W); Error for an undefined tensor.
Tensor shift(const Tensor& x, std::int64_t down, std::int64_t right, ShiftOptions options = {},
             Location where = Location::here());

/// Options of `random_shift`.
struct RandomShiftOptions {
  std::int64_t most = 2;  ///< the most pixels in each direction, at least 0; default 2
  double value = 0;       ///< the value of pixels that come from outside the image; default 0
};
/// Moves each image by a random number of whole pixels, uniform from −most to most, along both axes. Any dtype.
/// Throws: ShapeError unless x is (C, H, W) or (N, C, H, W); Error for an undefined tensor, and for `most` below 0.
Tensor random_shift(const Tensor& x, Generator& generator, RandomShiftOptions options = {},
                    Location where = Location::here());

/// Options of `rotate`.
struct RotateOptions {
  /// The value of pixels that come from outside the image. Default 0.
  double value = 0;
};
/// Turns images counter-clockwise about their centre by an angle in degrees. A pixel of the result is interpolated
/// bilinearly between the four around its place in x; integers are rounded.
/// Throws: ShapeError unless x is (C, H, W) or (N, C, H, W); Error for an undefined tensor, and for an angle that is not
/// finite; DTypeError for bool.
/// Source: as torchvision's rotate, with bilinear interpolation.
Tensor rotate(const Tensor& x, double degrees, RotateOptions options = {}, Location where = Location::here());

/// Options of `random_rotation`.
struct RandomRotationOptions {
  double most = 10;  ///< the largest angle in degrees, at least 0; default 10
  double value = 0;  ///< the value of pixels that come from outside the image; default 0
};
/// Turns each image about its centre by a random angle, uniform from −most to most degrees, as `rotate` does.
/// Throws: ShapeError unless x is (C, H, W) or (N, C, H, W); Error for an undefined tensor, and for `most` that is below
/// 0 or not finite; DTypeError for bool.
Tensor random_rotation(const Tensor& x, Generator& generator, RandomRotationOptions options = {},
                       Location where = Location::here());

/// Mirrors images: the left side becomes the right one. Any dtype.
/// Throws: ShapeError unless x is (C, H, W) or (N, C, H, W); Error for an undefined tensor.
Tensor horizontal_flip(const Tensor& x, Location where = Location::here());

/// Options of `random_horizontal_flip`.
struct RandomFlipOptions {
  double probability = 0.5;  ///< of being mirrored, in [0, 1]; default 0.5
};
/// Mirrors each image with a probability. Any dtype.
/// Throws: ShapeError unless x is (C, H, W) or (N, C, H, W); Error for an undefined tensor, and for a probability
/// outside [0, 1].
Tensor random_horizontal_flip(const Tensor& x, Generator& generator, RandomFlipOptions options = {},
                              Location where = Location::here());

/// Normalises the channels of images: y = (x − mean) / deviation, with a mean and a deviation for each channel, or one
/// for all. x is floating.
/// Throws: ShapeError unless x is (C, H, W) or (N, C, H, W) and there are 1 or C means and deviations; Error for an
/// undefined tensor, and for a deviation of 0; DTypeError unless floating.
Tensor normalise(const Tensor& x, const std::vector<double>& mean, const std::vector<double>& deviation,
                 Location where = Location::here());

}  // namespace reel::data
