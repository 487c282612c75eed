#include <cmath>

#include "../core/dispatch.h"
#include "../core/iteration.h"
#include "../core/philox.h"
#include "instruction_set.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

// Elements are numbered in row-major order; outputs are contiguous.
template <class T, class Draw>
void fill_typed(const View& out, RandomCall call, Draw draw) {
  for (std::int64_t i = 0; i < out.numel; ++i)
    out.as<T>()[i] = static_cast<T>(draw(philox(call.seed, call.call, static_cast<std::uint64_t>(i))));
}

void uniform(const View& out, RandomCall call) {
  switch (out.dtype) {
    case DType::f64:
      return fill_typed<double>(out, call, [](PhiloxWords w) { return unit_double(w.word[0], w.word[1]); });
    case DType::bf16: return fill_typed<BFloat16>(out, call, [](PhiloxWords w) { return unit_float<8>(w.word[0]); });
    case DType::f16: return fill_typed<Float16>(out, call, [](PhiloxWords w) { return unit_float<11>(w.word[0]); });
    default: return fill_typed<float>(out, call, [](PhiloxWords w) { return unit_float(w.word[0]); });
  }
}

// 1 − u lies in (0, 1], where the logarithm is finite.
void normal(const View& out, RandomCall call) {
  constexpr double turn = 6.283185307179586;
  auto draw_float = [](PhiloxWords w) {
    double radius = std::sqrt(-2 * std::log(1 - static_cast<double>(unit_float(w.word[0]))));
    return static_cast<float>(radius * std::cos(turn * static_cast<double>(unit_float(w.word[1]))));
  };
  auto draw_double = [](PhiloxWords w) {
    double radius = std::sqrt(-2 * std::log(1 - unit_double(w.word[0], w.word[1])));
    return radius * std::cos(turn * unit_double(w.word[2], w.word[3]));
  };
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, double>)
      fill_typed<T>(out, call, draw_double);
    else
      fill_typed<T>(out, call, draw_float);
  });
}

template <class T, class Wide>
void dropout_typed(const View& out, const View& x, double probability, RandomCall call) {
  Wide scale = probability < 1 ? static_cast<Wide>(1 / (1 - probability)) : Wide(0);
  // Compared as integers, so that every device draws the same mask.
  auto threshold = static_cast<std::uint64_t>(std::ceil(probability * 0x1p32));
  Iteration<2> iteration({&out, &x});
  std::uint64_t number = 0;
  iteration.for_each_row([&](const std::int64_t* offset) {
    T* to = out.as<T>() + offset[0];
    const T* from = x.as<T>() + offset[1];
    for (std::int64_t i = 0; i < iteration.dims[0]; ++i) {
      bool kept = philox(call.seed, call.call, number + static_cast<std::uint64_t>(i)).word[0] >= threshold;
      to[i] = kept ? static_cast<T>(static_cast<Wide>(from[i * iteration.strides[1][0]]) * scale) : T(Wide(0));
    }
    number += static_cast<std::uint64_t>(iteration.dims[0]);
  });
}

void dropout(const View& out, const View& x, double probability, RandomCall call) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    dropout_typed<T, std::conditional_t<std::is_same_v<T, double>, double, float>>(out, x, probability, call);
  });
}

}  // namespace

void fill_random(KernelTable& table) {
  table.uniform = uniform;
  table.normal = normal;
  table.dropout = dropout;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
