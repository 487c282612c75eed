#pragma once

#include <reel/tensor.h>

#include "../core/convert.h"

namespace reel::detail {

/// The value of a number converted to an integer dtype.
inline std::int64_t integer_of(const Arg& value, DType dtype) {
  if (value.kind() != Arg::Kind::floating) return value.integer();
  switch (dtype) {
    case DType::i32: return convert<std::int32_t>(value.number());
    case DType::u8: return convert<std::uint8_t>(value.number());
    case DType::boolean: return convert<bool>(value.number());
    default: return convert<std::int64_t>(value.number());
  }
}

}  // namespace reel::detail
