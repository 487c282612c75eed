#include "../../device/formula_loop.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

// Frequent exponents are computed without logarithms. If a single number is the exponent, no warp diverges.
struct Pow {
  template <class V>
  REEL_DEVICE V operator()(V a, V b) const {
    if (b == V(2)) return formulas::Square()(a);
    if (b == V(3)) return formulas::Cube()(a);
    if (b == V(0.5)) return formulas::RootPower()(a);
    if (b == V(-1)) return formulas::Reciprocal()(a);
    return formulas::Pow()(a, b);
  }
};

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

// A view of contiguous f32 elements.
class Plain {
 public:
  Plain(const float* data, std::int64_t count)
      : count_(count), view_{const_cast<float*>(data), &count_, &step_, count, 1, DType::f32, true} {}
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;
  const View& operator*() const { return view_; }

 private:
  static constexpr std::int64_t step_ = 1;
  std::int64_t count_;
  View view_;
};

template <class F>
void plain_binary(float* out, const float* a, const float* b, std::int64_t count) {
  run_alike<float>(F(), *Plain(out, count), *Plain(a, count), *Plain(b, count));
}

void plain_multiply_add(float* sum, const float* a, const float* b, std::int64_t count) {
  multiply_add_kernel(*Plain(sum, count), *Plain(a, count), *Plain(b, count));
}

template <class... Rows>
void fill_binary_kernels(KernelTable& table, KernelList<Rows...>) {
  auto fill = [&]<class Row>(Row) {
    using F = typename Row::Formula;
    table.binary[binary_place<F>] = row_kernel<Row>;
    if constexpr (Row::cost == Cost::cheap) table.plain_binary[binary_place<F>] = plain_binary<F>;
  };
  (fill(Rows()), ...);
}

template <class... Rows>
void fill_integer_kernels(KernelTable& table, KernelList<Rows...>) {
  ((table.binary[binary_place<typename Rows::Formula>] = row_kernel<Rows>), ...);
}

}  // namespace

template <>
struct DeviceFormula<formulas::Pow> {
  using type = Pow;
};

void fill_arithmetic(KernelTable& table) {
  fill_binary_kernels(table, kernel_lists::BinaryArithmetic());
  fill_integer_kernels(table, kernel_lists::Bitwise());
  table.clamp = clamp_kernel;
  table.lerp = lerp_kernel;
  table.multiply_add = multiply_add_kernel;
  table.plain_multiply_add = plain_multiply_add;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
