#include "arithmetic.h"

#include "../../runtime/cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

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
  multiply_add_kernel(*Plain(sum, count), *Plain(a, count), *Plain(b, count));
}

}  // namespace

void fill_arithmetic(KernelTable& table) {
  fill_binary_kernels(table, RowsWithout<kernel_lists::BinaryArithmetic, AnyOf<Quotients, Powers, Limits>>());
  fill_quotients(table);
  fill_powers(table);
  fill_limits(table);
  fill_bits(table);
  table.lerp = lerp_kernel;
  table.multiply_add = multiply_add_kernel;
  table.plain_multiply_add = plain_multiply_add;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
