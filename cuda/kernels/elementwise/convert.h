#pragma once

#include "../../../lib/core/convert.h"

#include "../../device/formula_loop.h"
#include "copy.h"

namespace reel::detail {
inline namespace REEL_TARGET {

// Each of the files convert.cu and convert_integers.cu compiles the conversions to some dtypes.
void convert_to_integers(const View& out, const View& x);

/// A conversion to a half goes through an f32 that rounds to the half to which the number itself would.
template <class To>
struct Conversion {
  template <class From>
  REEL_DEVICE Wide<To> operator()(From x) const {
    if constexpr (!is_half_v<To>)
      return convert<To>(x);
    else if constexpr (std::is_same_v<From, double>)
      return rounded_to_odd(x);
    else if constexpr (std::is_integral_v<From> && sizeof(From) >= 4)
      return rounded_to_odd(static_cast<std::int64_t>(x));
    else
      return static_cast<float>(x);
  }
};

/// Conversions to the two halves differ only in how they are stored.
template <class To>
using Target = std::conditional_t<is_half_v<To>, BFloat16, To>;

template <class To>
void convert_elements_to(const View& out, const View& x) {
  with_type(x.dtype, [&]<class From>(std::type_identity<From>) {
    if constexpr (!std::is_same_v<To, From>) run_formula<To, From>(Conversion<Target<To>>(), out, {&x});
  });
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
