#include <cstring>

#include "../core/convert.h"
#include "../core/iteration.h"
#include "cpu_kernels.h"

namespace reel::detail {
namespace {

template <class To, class From>
void convert_all(const View& out, const View& x) {
  Iteration<2> iteration({&out, &x});
  std::int64_t to_step = iteration.strides[0][0], from_step = iteration.strides[1][0];
  iteration.for_each_row([&](const std::int64_t* offset) {
    To* to = out.as<To>() + offset[0];
    const From* from = x.as<From>() + offset[1];
    if constexpr (std::is_same_v<To, From>)
      if (to_step == 1 && from_step == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(iteration.dims[0]) * sizeof(To));
        return;
      }
    for (std::int64_t i = 0; i < iteration.dims[0]; ++i) to[i * to_step] = convert<To>(from[i * from_step]);
  });
}

template <class To>
void convert_from_any(const View& out, const View& x) {
  switch (x.dtype) {
    case DType::f32: return convert_all<To, float>(out, x);
    case DType::f64: return convert_all<To, double>(out, x);
    case DType::bf16: return convert_all<To, BFloat16>(out, x);
    case DType::f16: return convert_all<To, Float16>(out, x);
    case DType::i32: return convert_all<To, std::int32_t>(out, x);
    case DType::i64: return convert_all<To, std::int64_t>(out, x);
    case DType::u8: return convert_all<To, std::uint8_t>(out, x);
    case DType::boolean: return convert_all<To, bool>(out, x);
  }
}

void copy(const View& out, const View& x) {
  if (out.dtype == x.dtype) {
    // Only bits are moved.
    switch (size_of(out.dtype)) {
      case 1: return convert_all<std::uint8_t, std::uint8_t>(out, x);
      case 2: return convert_all<std::uint16_t, std::uint16_t>(out, x);
      case 4: return convert_all<std::uint32_t, std::uint32_t>(out, x);
      default: return convert_all<std::uint64_t, std::uint64_t>(out, x);
    }
  }
  switch (out.dtype) {
    case DType::f32: return convert_from_any<float>(out, x);
    case DType::f64: return convert_from_any<double>(out, x);
    case DType::bf16: return convert_from_any<BFloat16>(out, x);
    case DType::f16: return convert_from_any<Float16>(out, x);
    case DType::i32: return convert_from_any<std::int32_t>(out, x);
    case DType::i64: return convert_from_any<std::int64_t>(out, x);
    case DType::u8: return convert_from_any<std::uint8_t>(out, x);
    case DType::boolean: return convert_from_any<bool>(out, x);
  }
}

template <class T>
void fill_typed(const View& out, T value) {
  if (out.contiguous) {
    T* to = out.as<T>();
    for (std::int64_t i = 0; i < out.numel; ++i) to[i] = value;
    return;
  }
  Iteration<1> iteration({&out});
  iteration.for_each_row([&](const std::int64_t* offset) {
    for (std::int64_t i = 0; i < iteration.dims[0]; ++i) out.as<T>()[offset[0] + i * iteration.strides[0][0]] = value;
  });
}

void fill(const View& out, double number, std::int64_t integer) {
  switch (out.dtype) {
    case DType::f32: return fill_typed(out, static_cast<float>(number));
    case DType::f64: return fill_typed(out, number);
    case DType::bf16: return fill_typed(out, convert<BFloat16>(number));
    case DType::f16: return fill_typed(out, convert<Float16>(number));
    case DType::i32: return fill_typed(out, static_cast<std::int32_t>(integer));
    case DType::i64: return fill_typed(out, integer);
    case DType::u8: return fill_typed(out, static_cast<std::uint8_t>(integer));
    case DType::boolean: return fill_typed(out, integer != 0);
  }
}

}  // namespace

void fill_copy(KernelTable& table) {
  table.copy = copy;
  table.fill = fill;
}

}  // namespace reel::detail
