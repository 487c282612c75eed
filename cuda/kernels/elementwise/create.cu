#include <algorithm>
#include <cstring>

#include "../../../lib/core/convert.h"
#include "../../device/formula_loop.h"
#include "../../runtime/cuda_kernels.h"
#include "../../runtime/faults.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// a + b c, rounded twice, as on the CPU: the following rounding down must not depend on the device.
REEL_DEVICE double added_product(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(a, __dmul_rn(b, c));
#else
  return a + b * c;
#endif
}

template <class T>
struct IntegerRange {
  T* out;
  std::uint64_t start, step;
  // Unsigned arithmetic wraps around.
  REEL_DEVICE void operator()(std::int64_t i) const {
    out[i] = convert<T>(start + static_cast<std::uint64_t>(i) * step);
  }
};

template <class T>
struct Range {
  T* out;
  double start, step;
  REEL_DEVICE void operator()(std::int64_t i) const {
    out[i] = convert<T>(added_product(start, static_cast<double>(i), step));
  }
};

void arange(const View& out, double start, double step, std::int64_t integer_start, std::int64_t integer_step) {
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T>)
      for_each(out.numel, IntegerRange<T>{out.as<T>(), static_cast<std::uint64_t>(integer_start),
                                          static_cast<std::uint64_t>(integer_step)});
    else
      for_each(out.numel, Range<T>{out.as<T>(), start, step});
  });
}

template <class T>
struct EvenRange {
  T* out;
  double first, last, step;
  std::int64_t half, end;
  REEL_DEVICE void operator()(std::int64_t i) const {
    out[i] = convert<T>(i < half ? added_product(first, static_cast<double>(i), step)
                                 : added_product(last, static_cast<double>(i - end), step));
  }
};

void linspace(const View& out, double first, double last) {
  // With two numbers there is no step: their difference may be out of range.
  auto steps = static_cast<double>(out.numel - 1);
  double step = out.numel > 2 ? last / steps - first / steps : 0;
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_each(out.numel, EvenRange<T>{out.as<T>(), first, last, step, (out.numel + 1) / 2, out.numel - 1});
  });
}

template <class T>
struct OneHot {
  T* out;
  T one;
  std::int64_t numel, classes, index_count;
  const void* indices;
  bool wide;
  Offsets<1> offsets;
  FaultReporter reporter;

  REEL_DEVICE std::int64_t index(std::int64_t i) const {
    std::int64_t at[1];
    offsets.find(i, at);
    return wide ? static_cast<const std::int64_t*>(indices)[at[0]] : static_cast<const std::int32_t*>(indices)[at[0]];
  }
  REEL_DEVICE void operator()(std::int64_t i) const {
    if (i < numel) out[i] = index(i / classes) == i % classes ? one : T(0);
    if (i >= index_count) return;
    std::int64_t found = index(i);
    if (found < 0 || found >= classes) reporter.report(Fault::one_hot, found, classes);
  }
};

bool one_hot(const View& out, const View& indices, std::int64_t&) {
  std::uint64_t one = 0;
  if (indices.numel == 0) return true;
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    T value = convert<T>(1);
    std::memcpy(&one, &value, sizeof(T));
  });
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_each(std::max(out.numel, indices.numel),
             OneHot<T>{out.as<T>(), static_cast<T>(one), out.numel, out.dims[out.rank - 1], indices.numel, indices.data,
                       indices.dtype == DType::i64, Offsets<1>(Iteration<1>({&indices})), fault_reporter()});
  });
  return true;
}

template <class T>
struct Band {
  T* out;
  const T* x;
  std::int64_t rows, columns, low, high;
  Offsets<2> offsets;

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t above = i % columns - i / columns % rows, at[2];
    offsets.find(i, at);
    out[at[0]] = low <= above && above <= high ? x[at[1]] : T(0);
  }
};

void band(const View& out, const View& x, std::int64_t low, std::int64_t high) {
  if (out.numel == 0) return;
  std::int64_t rows = out.dims[out.rank - 2], columns = out.dims[out.rank - 1];
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_each(out.numel,
             Band<T>{out.as<T>(), x.as<const T>(), rows, columns, low, high, Offsets<2>(Iteration<2>({&out, &x}))});
  });
}

}  // namespace

void fill_create(KernelTable& table) {
  table.arange = arange;
  table.linspace = linspace;
  table.one_hot = one_hot;
  table.band = band;
}

}  // namespace reel::detail::inline REEL_TARGET
