#include "distribution.h"

#include <cmath>
#include <limits>

#include <reel/no_record.h>
#include <reel/ops.h>

#include "../dispatch/autocast.h"
#include "../ops/if_needed.h"

namespace reel::detail {

namespace {

Tensor parameter_of(const char* name, const Arg& given, const Arg& other) {
  if (given.is_tensor()) {
    const Tensor& tensor = tensor_of(name, given);
    check_floating(name, tensor, given.location());
    return tensor;
  }
  if (!other.is_tensor()) return full({}, given.number());
  const Tensor& like = tensor_of(name, other);
  check_floating(name, like, other.location());
  return full({}, given.number(), {.dtype = like.dtype(), .device = like.device()});
}

}  // namespace

Shape without_last(const Shape& shape, int count) {
  return Shape(std::span<const std::int64_t>(shape.begin(), static_cast<std::size_t>(shape.rank() - count)));
}

std::array<Tensor, 2> parameters_of(const char* name, const char* first_name, const Arg& first, const char* second_name,
                                    const Arg& second) {
  Tensor a = parameter_of(name, first, second), b = parameter_of(name, second, first);
  if (a.dtype() != b.dtype())
    fail<DTypeError>(name, first.location(), "{} {} and {} {} must have one dtype", first_name, describe(a),
                     second_name, describe(b));
  check_same_device(name, a, b, first.location());
  Shape shape = broadcast_of(name, a.shape(), b.shape(), first.location());
  return {expand(a, shape), expand(b, shape)};
}

void check_positive(const char* name, const char* parameter, const Tensor& x, Location where) {
  if (x.numel() == 0) return;
  NoRecord pause;
  double least = value_to_check<double>(min(x));
  if (!(least > 0)) fail<Error>(name, where, "the {} must be above 0, not {}", parameter, least);
}

void check_support(const char* name, const Tensor& condition, const char* support, Location where) {
  NoRecord pause;
  if (!value_to_check<bool>(all(condition))) fail<Error>(name, where, "a value is not {}", support);
}

double smallest_normal(DType dtype) {
  if (dtype == DType::f64) return std::numeric_limits<double>::min();
  return dtype == DType::f16 ? 0x1p-14 : static_cast<double>(std::numeric_limits<float>::min());
}

double spacing_at_one(DType dtype) {
  int bits = dtype == DType::f64 ? 52 : dtype == DType::f32 ? 23 : dtype == DType::f16 ? 10 : 7;
  return std::ldexp(1.0, -bits);
}

Tensor inside_unit_interval(const Tensor& x, DType dtype) {
  return clamp(to_if_needed(x, dtype), smallest_normal(dtype), 1 - spacing_at_one(dtype) / 2);
}

Tensor rounded_once(const Tensor& y, DType dtype) { return to_if_needed(y, autocast_dtype(Precision::full, dtype)); }

}  // namespace reel::detail
