#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include <reel/detail/view.h>

#include "../../core/convert.h"

// Rows of a tensor along an axis at a list of indices, which are in [−size, size). `listed` has the axes of `indices`
// in place of that axis. Large lists are divided among threads, and give equal bits for any number of them.

namespace reel::detail {

/// listed[…, j, …] = x[…, indices[j], …]
void read_rows(const View& listed, const View& x, const View& indices, int axis);
/// out[…, indices[j], …] = listed[…, j, …]; of equal indices the last one wins.
void write_rows(const View& out, const View& listed, const View& indices, int axis);
/// out[…, indices[j], …] += listed[…, j, …], in the order of j. Halves are added to an `out` of f32.
void add_rows(const View& out, const View& listed, const View& indices, int axis);

/// a + b; integers wrap around.
template <class T>
T plus(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return static_cast<T>(a + b);
}

/// Calls add(out), with an f32 copy in place of a contiguous `out` of halves, which is rounded once afterwards.
template <class Add>
void with_wide_sums(const View& out, Add add) {
  auto in_f32 = [&]<class Half>(Half* elements) {
    std::vector<float> sums(elements, elements + out.numel);
    View wide = out;
    wide.data = sums.data();
    wide.dtype = DType::f32;
    add(wide);
    for (std::size_t i = 0; i < sums.size(); ++i) elements[i] = Half(sums[i]);
  };
  if (out.dtype == DType::bf16)
    in_f32(out.as<BFloat16>());
  else if (out.dtype == DType::f16)
    in_f32(out.as<Float16>());
  else
    add(out);
}

}  // namespace reel::detail
