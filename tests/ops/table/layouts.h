#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <reel/reel.h>

// Tensors of equal elements that lie otherwise in memory.

namespace reel_test {

using namespace reel;

/// How a tensor of equal values lies in memory.
struct Layout {
  std::string name;
  Tensor (*apply)(const Tensor& x);
};

inline Shape reversed_axes(const Tensor& x) {
  Shape axes;
  for (int i = x.rank(); i-- > 0;) axes.push_back(i);
  return axes;
}

/// The filling of memory that must not be read.
inline Tensor poison(const Tensor& x) { return full(x.shape(), NAN, {.dtype = x.dtype()}); }

inline Tensor backwards(const Tensor& x) { return slice(x, 0, -1, std::numeric_limits<std::int64_t>::min(), -1); }

inline const Layout layouts[] = {
    {"transposed", [](const Tensor& x) { return permute(copy(permute(x, reversed_axes(x))), reversed_axes(x)); }},
    {"every other element",
     [](const Tensor& x) {
       return x.rank() == max_rank ? x : select(stack({x, poison(x)}, -1), -1, 0);
     }},
    {"every third element, from the second",
     [](const Tensor& x) {
       return x.rank() == max_rank ? x : select(stack({poison(x), x, poison(x)}, -1), -1, 1);
     }},
    {"inside a larger tensor",
     [](const Tensor& x) {
       if (x.rank() == 0) return x;
       Tensor larger = concat({poison(x), x, poison(x)}, -1);
       return slice(larger, -1, x.size(-1), 2 * x.size(-1));
     }},
    {"backwards", [](const Tensor& x) { return x.rank() == 0 ? x : backwards(copy(backwards(x))); }},
};

}  // namespace reel_test
