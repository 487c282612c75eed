#include "../../../lib/core/convert.h"

#include <type_traits>
#include <utility>

#include "../../device/formula_loop.h"
#include "copy.h"

// Conversions, compiled in REEL_PARTS parts: in each, REEL_PART is its number.

namespace reel::detail::inline REEL_TARGET {
namespace {

// A conversion to a half goes through an f32 that rounds to the half to which the number itself would.
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

// Conversions to the two halves differ only in how they are stored.
template <class To>
using Target = std::conditional_t<is_half_v<To>, BFloat16, To>;

// The part that converts to a dtype: that of both halves is one.
constexpr int part_of(DType to) { return static_cast<int>(to) / 2 % REEL_PARTS; }

}  // namespace

template <int part>
void convert_in_part(const View& out, const View& x);

template <>
void convert_in_part<REEL_PART>(const View& out, const View& x) {
  with_type(out.dtype, [&]<class To>(std::type_identity<To>) {
    if constexpr (part_of(dtype_of<To>()) == REEL_PART)
      with_type(x.dtype, [&]<class From>(std::type_identity<From>) {
        if constexpr (!std::is_same_v<To, From>) run_formula<To, From>(Conversion<Target<To>>(), out, {&x});
      });
  });
}

#if REEL_PART == 0
void convert_elements(const View& out, const View& x) {
  auto convert_if_in_part = [&]<int part>(std::integral_constant<int, part>) {
    if (part_of(out.dtype) == part) convert_in_part<part>(out, x);
  };
  [&]<int... part>(std::integer_sequence<int, part...>) {
    (convert_if_in_part(std::integral_constant<int, part>()), ...);
  }(std::make_integer_sequence<int, REEL_PARTS>());
}
#endif

}  // namespace reel::detail::inline REEL_TARGET
