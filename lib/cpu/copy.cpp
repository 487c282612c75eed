#include <cstring>

#include "../core/convert.h"
#include "../core/dispatch.h"
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

void copy(const View& out, const View& x) {
  if (out.dtype == x.dtype)
    return with_bits(out.dtype, [&]<class T>(std::type_identity<T>) { convert_all<T, T>(out, x); });
  with_type(out.dtype, [&]<class To>(std::type_identity<To>) {
    with_type(x.dtype, [&]<class From>(std::type_identity<From>) { convert_all<To, From>(out, x); });
  });
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
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T>)
      fill_typed(out, convert<T>(integer));
    else
      fill_typed(out, convert<T>(number));
  });
}

}  // namespace

void fill_copy(KernelTable& table) {
  table.copy = copy;
  table.fill = fill;
}

}  // namespace reel::detail
