#include <cstdint>
#include <type_traits>

#include "../../../lib/kernels/formulas/binary.h"
#include "../../device/formula_loop.h"
#include "../../device/plain_view.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

struct Choice {
  template <class T>
  REEL_DEVICE T operator()(bool condition, T a, T b) const {
    return condition ? a : b;
  }
};

// Only bits are moved, so one instance serves all dtypes of a size.
void where_kernel(const View& out, const View& condition, const View& a, const View& b) {
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) {
    run_formula<T, bool, T, T>(Choice(), out, {&condition, &a, &b});
  });
}

void clamp_kernel(const View& out, const View& x, const View& low, const View& high) {
  run_number<formulas::Clamp, formulas::Clamp>(out, x, low, high);
}

void lerp_kernel(const View& out, const View& a, const View& b, const View& weight) {
  run_floating(formulas::Lerp(), out, a, b, weight);
}

struct MultiplyAdd {
  template <class V>
  REEL_DEVICE V operator()(V sum, V a, V b) const {
    return a * b + sum;
  }
};

void multiply_add_kernel(const View& sum, const View& a, const View& b) {
  if (sum.dtype == DType::f32)
    run_alike<float>(MultiplyAdd(), sum, sum, a, b);
  else
    run_alike<double>(MultiplyAdd(), sum, sum, a, b);
}

void plain_multiply_add(float* sum, const float* a, const float* b, std::int64_t count) {
  multiply_add_kernel(*PlainView(sum, count), *PlainView(a, count), *PlainView(b, count));
}

}  // namespace

void fill_ternary(KernelTable& table) {
  table.where = where_kernel;
  table.clamp = clamp_kernel;
  table.lerp = lerp_kernel;
  table.multiply_add = multiply_add_kernel;
  table.plain_multiply_add = plain_multiply_add;
}

}  // namespace reel::detail::inline REEL_TARGET
