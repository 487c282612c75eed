#pragma once

#include <reel/tensor.h>

#include "../core/convert.h"
#include "../core/dtype_dispatch.h"

namespace reel::detail {

/// The value of a number converted to an integer dtype.
inline std::int64_t integer_of(const Arg& value, DType dtype) {
  if (value.kind() != Arg::Kind::floating) return value.integer();
  if (dtype == DType::boolean) return convert<bool>(value.number());
  return with_integer(dtype,
                      [&]<class T>(std::type_identity<T>) -> std::int64_t { return convert<T>(value.number()); });
}

}  // namespace reel::detail
