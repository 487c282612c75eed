#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../../core/convert.h"
#include "../../core/dtype_dispatch.h"
#include "../../core/iteration.h"
#include "../../core/threads/parallel.h"
#include "instruction_set.h"

// Without its sign, a number's bit pattern is an integer with the same order: those of NaN are above that of infinity.

namespace reel::detail::inline REEL_TARGET {
namespace {

template <class T>
using Bits =
    std::conditional_t<sizeof(T) == 2, std::int16_t, std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>>;

template <class T>
constexpr Bits<T> infinity_bits = sizeof(T) == 8   ? static_cast<Bits<T>>(0x7ff0'0000'0000'0000)
                                  : sizeof(T) == 4 ? static_cast<Bits<T>>(0x7f80'0000)
                                                   : static_cast<Bits<T>>(0x7f80);
template <>
constexpr Bits<Float16> infinity_bits<Float16> = 0x7c00;

template <class T>
Bits<T> magnitude_bits(T number) {
  Bits<T> bits;
  if constexpr (is_half_v<T>)
    bits = static_cast<Bits<T>>(number.bits);  // a loop over casts of a struct is not vectorised
  else
    bits = std::bit_cast<Bits<T>>(number);
  return static_cast<Bits<T>>(bits & std::numeric_limits<Bits<T>>::max());
}

template <class T>
Bits<T> largest_magnitude(const T* from, std::int64_t count, std::int64_t step) {
  Bits<T> largest = 0;
  if (step == 1)
    for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, magnitude_bits(from[i]));
  else
    for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, magnitude_bits(from[i * step]));
  return largest;
}

bool has_anomaly(const View& x, bool infinities_count) {
  return with_floating(x.dtype, [&]<class T>(std::type_identity<T>) {
    Bits<T> most = static_cast<Bits<T>>(infinity_bits<T> - (infinities_count ? 1 : 0));
    Iteration<1> iteration({&x});
    std::atomic<bool> found = false;
    parallel_for(x.numel, 8 * parallel_grain, [&](std::int64_t begin, std::int64_t end) {
      iteration.for_each_part(begin, end, [&](const std::int64_t* offset, std::int64_t count) {
        if (largest_magnitude(x.as<T>() + offset[0], count, iteration.strides[0][0]) > most)
          found.store(true, std::memory_order_relaxed);
      });
    });
    return found.load(std::memory_order_relaxed);
  });
}

}  // namespace

void fill_anomaly(KernelTable& table) { table.has_anomaly = has_anomaly; }

}  // namespace reel::detail::inline REEL_TARGET
