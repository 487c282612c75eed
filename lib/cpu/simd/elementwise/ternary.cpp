#include <cstdint>

#include "../../../core/dtype_dispatch.h"
#include "../../../core/threads/parallel.h"
#include "../../../kernels/formulas/binary.h"
#include "../instruction_set.h"
#include "../vector/formula_loop.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

template <class T>
void where_loop(void* out, const void* const* inputs, std::int64_t count) {
  auto* y = static_cast<T*>(out);
  auto* condition = static_cast<const bool*>(inputs[0]);
  auto* a = static_cast<const T*>(inputs[1]);
  auto* b = static_cast<const T*>(inputs[2]);
  // Masks instead of branches, which are slow if the condition has no pattern.
  for (std::int64_t i = 0; i < count; ++i)
    y[i] = static_cast<T>(b[i] ^ ((a[i] ^ b[i]) & static_cast<T>(-static_cast<T>(condition[i]))));
}

// Only bits are moved, so one instance serves all dtypes of a size.
void where_kernel(const View& out, const View& condition, const View& a, const View& b) {
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) {
    run_loop(out, {&condition, &a, &b}, where_loop<T>, {.widens = false});
  });
}

struct VectorClamp {
  template <class T>
  Vector<T> operator()(Vector<T> x, Vector<T> low, Vector<T> high) const {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
    // The processor's minimum and maximum are their second operands where one is NaN.
    Vector<T> y = hn::Min(high.raw, hn::Max(x.raw, low.raw));
    return select(high == high, select(x == x, y, x), high);
#else
    return formulas::Clamp()(x, low, high);
#endif
  }
};

void clamp_kernel(const View& out, const View& x, const View& low, const View& high) {
  if (is_floating(out.dtype))
    return run_loop(out, {&x, &low, &high},
                    out.dtype == DType::f64 ? vector_loop_3<VectorClamp, double> : vector_loop_3<VectorClamp, float>);
  with_integer(out.dtype, [&]<class T>(std::type_identity<T>) {
    run_loop(out, {&x, &low, &high}, scalar_loop_3<formulas::Clamp, T, T>);
  });
}

void lerp_kernel(const View& out, const View& a, const View& b, const View& weight) {
  run_loop(out, {&a, &b, &weight},
           out.dtype == DType::f64 ? vector_loop_3<formulas::Lerp, double> : vector_loop_3<formulas::Lerp, float>);
}

template <class T>
HWY_NOINLINE void multiply_add_rest(T* sum, const T* a, const T* b, std::int64_t count) {
  using V = Vector<T>;
  for (; count >= V::lanes; count -= V::lanes, sum += V::lanes, a += V::lanes, b += V::lanes)
    multiply_add(V::load(a), V::load(b), V::load(sum)).store(sum);
  if (count > 0) multiply_add(V::load(a, count), V::load(b, count), V::load(sum, count)).store(sum, count);
}

template <class T>
void multiply_add_typed(T* sum, const T* a, const T* b, std::int64_t count) {
  using V = Vector<T>;
  constexpr std::int64_t lanes = V::lanes;
  const std::int64_t whole = count & -4 * lanes;
  std::int64_t i = 0;
  auto at = [&](std::int64_t k) { return multiply_add(V::load(a + k), V::load(b + k), V::load(sum + k)); };
  for (; i < whole; i += 4 * lanes) {
    V first = at(i), second = at(i + lanes), third = at(i + 2 * lanes), fourth = at(i + 3 * lanes);
    first.store(sum + i);
    second.store(sum + i + lanes);
    third.store(sum + i + 2 * lanes);
    fourth.store(sum + i + 3 * lanes);
  }
  if (i < count) multiply_add_rest(sum + i, a + i, b + i, count - i);
}

template <class T>
void parallel_multiply_add(const View& sum, const View& a, const View& b) {
  auto part = [&](std::int64_t begin, std::int64_t end) {
    multiply_add_typed(sum.as<T>() + begin, a.as<T>() + begin, b.as<T>() + begin, end - begin);
  };
  if (sum.numel < parallel_from(Grain::coarse)) return part(0, sum.numel);
  parallel_for(sum.numel, parallel_grain, part);
}

void multiply_add_kernel(const View& sum, const View& a, const View& b) {
  if (sum.dtype == DType::f32)
    parallel_multiply_add<float>(sum, a, b);
  else
    parallel_multiply_add<double>(sum, a, b);
}

}  // namespace

void fill_ternary(KernelTable& table) {
  table.where = where_kernel;
  table.clamp = clamp_kernel;
  table.lerp = lerp_kernel;
  table.multiply_add = multiply_add_kernel;
  table.plain_multiply_add = multiply_add_typed<float>;
}

}  // namespace reel::detail::inline REEL_TARGET
