#pragma once

#include <reel/ops/shape.h>
#include <reel/tensor.h>

#include "../core/op_error.h"

namespace reel::detail {

/// The shape of samples: `sample_shape`, then `batch_shape`.
inline Shape shape_of_samples(const Shape& sample_shape, const Shape& batch_shape, Location where) {
  Shape shape = sample_shape;
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

}  // namespace reel::detail
