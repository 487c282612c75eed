#include <reel/tensor.h>

#include "op_error.h"

namespace reel {

using namespace detail;

void Tensor::throw_undefined(Location where) {
  fail<Error>("tensor", where, "it is undefined: it was never given a value");
}

Shape Tensor::shape() const {
  const Body& b = body();
  return Shape({b.dims, static_cast<std::size_t>(b.rank)});
}

Shape Tensor::strides() const {
  const Body& b = body();
  return Shape({b.strides, static_cast<std::size_t>(b.rank)});
}

std::int64_t Tensor::size(int axis, Location where) const {
  return body(where).dims[check_axis("size", axis, *this, where)];
}

void Arg::refuse_axis(int axis) const {
  fail<ShapeError>("size", location_, "axis {} does not exist in the number {}, which has no axes", axis, number());
}

}  // namespace reel
