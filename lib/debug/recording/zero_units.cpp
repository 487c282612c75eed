#include "zero_units.h"

#include <algorithm>

#include "../../core/dtype_dispatch.h"

namespace reel::debug {

namespace {

// Looking for zeros ends where each unit has had another element; this is how often that is tested.
constexpr std::int64_t examples_between_tests = 8;

// seen[u] |= x[u, …] has an element other than zero. x: (units, inner)
template <class T>
void see(std::vector<std::uint8_t>& seen, const T* x, std::int64_t inner) {
  auto units = static_cast<std::int64_t>(seen.size());
  std::uint8_t* flags = seen.data();
  if (inner == 1) {
    for (std::int64_t u = 0; u < units; ++u) flags[u] |= static_cast<float>(x[u]) != 0 ? 1 : 0;
    return;
  }
  for (std::int64_t u = 0; u < units; ++u)
    if (flags[u] == 0)
      flags[u] = std::any_of(x + u * inner, x + (u + 1) * inner, [](T one) { return static_cast<float>(one) != 0; });
}

}  // namespace

int unit_axis(const Shape& shape) {
  if (shape.rank() < 2) return -1;
  return shape.rank() >= 4 ? 1 : shape.rank() - 1;
}

std::vector<std::int32_t> zero_units_of(const Tensor& x) {
  const Shape shape = x.shape();
  int axis = unit_axis(shape);
  std::int64_t units = shape[axis], inner = 1;
  for (int later = axis + 1; later < shape.rank(); ++later) inner *= shape[later];
  std::int64_t examples = x.numel() / (units * inner);
  std::vector<std::uint8_t> seen(static_cast<std::size_t>(units));
  detail::with_floating(x.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* data = x.body().as<T>();
    for (std::int64_t i = 0; i < examples; ++i) {
      see(seen, data + i * units * inner, inner);
      if (i % examples_between_tests == 0 && std::ranges::find(seen, 0) == seen.end()) return;
    }
  });
  std::vector<std::int32_t> zero;
  for (std::int64_t u = 0; u < units; ++u)
    if (seen[static_cast<std::size_t>(u)] == 0) zero.push_back(static_cast<std::int32_t>(u));
  return zero;
}

}  // namespace reel::debug
