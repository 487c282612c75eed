#pragma once

#include <array>

#include <reel/ops/shape.h>
#include <reel/tensor.h>

#include "../core/op_error.h"

namespace reel::detail {

/// log(2π) / 2
inline constexpr double half_log_2pi = 0.91893853320467274178;
/// γ, the mean of the standard Gumbel distribution
inline constexpr double euler_mascheroni = 0.57721566490153286061;

/// The shape of samples: `sample_shape`, then `batch_shape`. Throws: ShapeError for a negative size.
inline Shape shape_of_samples(const Shape& sample_shape, const Shape& batch_shape, Location where) {
  Shape shape = sample_shape;
  for (std::int64_t size : sample_shape)
    if (size < 0) fail<ShapeError>("sample", where, "the sample shape {} has a negative size", to_string(sample_shape));
  for (std::int64_t size : batch_shape) shape.push_back(size, where);
  return shape;
}

/// The shape that two shapes broadcast to. Throws: ShapeError if they do not.
inline Shape broadcast_of(const char* name, const Shape& a, const Shape& b, Location where) {
  Shape shape;
  if (!broadcast(a, b, shape))
    fail<ShapeError>(name, where, "the shapes {} and {} do not broadcast", to_string(a), to_string(b));
  return shape;
}

/// A shape without its last `count` axes.
Shape without_last(const Shape& shape, int count = 1);

/// Two parameters, tensors or numbers, as tensors of the shape that they broadcast to. A number has the dtype and
/// device of the other parameter, if that is a tensor; two numbers are f32 on the default device.
/// Throws: DTypeError unless both have one floating dtype; ShapeError if they do not broadcast.
std::array<Tensor, 2> parameters_of(const char* name, const char* first_name, const Arg& first, const char* second_name,
                                    const Arg& second);

/// Throws: Error unless all elements are above 0. Reads from the device.
void check_positive(const char* name, const char* parameter, const Tensor& x, Location where);

/// Throws: Error unless all elements of `condition` are true. Reads from the device.
void check_support(const char* name, const Tensor& condition, const char* support, Location where);

/// The smallest normal number of a floating dtype.
double smallest_normal(DType dtype);

/// The distance from 1 to the next number of a floating dtype.
double spacing_at_one(DType dtype);

/// Samples in [0, 1] as numbers of a dtype within (0, 1), where densities and their gradients are finite.
Tensor inside_unit_interval(const Tensor& x, DType dtype);

/// A result that was computed from `widened` operands, rounded once to their dtype; within an autocast scope not at all.
Tensor rounded_once(const Tensor& y, DType dtype);

}  // namespace reel::detail
