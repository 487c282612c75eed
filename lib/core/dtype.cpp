#include <reel/dtype.h>

#include <bit>
#include <utility>

#include "dtype_dispatch.h"

namespace reel {

using detail::find_dtype, detail::number_kind, detail::NumberKind;

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_floating(a) != is_floating(b)) return is_floating(a) ? a : b;
  if (is_floating(a)) {
    if (a == DType::f64 || b == DType::f64) return DType::f64;
    return DType::f32;  // f32 with a half, or the two halves
  }
  if (a == DType::boolean) return b;
  if (b == DType::boolean) return a;
  if (number_kind(a) == number_kind(b)) return size_of(a) > size_of(b) ? a : b;
  if (number_kind(a) == NumberKind::unsigned_integer) std::swap(a, b);
  if (size_of(a) > size_of(b)) return a;
  return find_dtype(NumberKind::signed_integer, 2 * size_of(b)).value_or(DType::i64);
}

BFloat16::BFloat16(float value) {
  auto word = std::bit_cast<std::uint32_t>(value);
  if ((word & 0x7fffffff) > 0x7f800000)
    bits = static_cast<std::uint16_t>((word >> 16) | 0x40);  // a NaN stays a NaN
  else
    bits = static_cast<std::uint16_t>((word + 0x7fff + ((word >> 16) & 1)) >> 16);
}

BFloat16::operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

Float16::Float16(float value) {
  auto word = std::bit_cast<std::uint32_t>(value);
  std::uint32_t sign = (word >> 16) & 0x8000;
  std::uint32_t magnitude = word & 0x7fffffff;
  std::uint32_t half;
  if (magnitude > 0x7f800000) {
    half = 0x7e00;
  } else if (magnitude >= 0x47800000) {  // 65536 and more
    half = 0x7c00;
  } else if (magnitude < 0x38800000) {  // subnormal in binary16: let the float adder round
    float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f);
  } else {
    half = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  }
  bits = static_cast<std::uint16_t>(sign | half);
}

Float16::operator float() const {
  std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  std::uint32_t rest = bits & 0x7fff;
  float magnitude;
  if (rest >= 0x7c00)
    magnitude = std::bit_cast<float>((rest << 13) | 0x7f800000);
  else if (rest < 0x400)  // subnormal; built from its bits, it would be flushed on a thread that flushes denormals
    magnitude = static_cast<float>(rest) * 0x1p-24f;
  else
    magnitude = std::bit_cast<float>((rest << 13) + 0x38000000);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
}

}  // namespace reel
