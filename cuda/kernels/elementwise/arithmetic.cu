#include "../../../lib/kernels/formulas/binary.h"

#include "../../../lib/kernels/formulas/integer.h"
#include "../../../lib/kernels/formulas/unary.h"
#include "../../device/formula_loop.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

// Bools wrap as integers do.
template <class F, class IntegerF>
void any_binary(const View& out, const View& a, const View& b) {
  if (out.dtype == DType::boolean) return run_alike<bool>(IntegerF(), out, a, b);
  run_number<F, IntegerF>(out, a, b);
}

// Bools are handled before this.
template <class F, class IntegerF>
void number_binary(const View& out, const View& a, const View& b) {
  run_number<F, IntegerF>(out, a, b);
}

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

template <class F>
void clamp_kernel(const View& out, const View& x, const View& low, const View& high) {
  run_number<F, F>(out, x, low, high);
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

}  // namespace

void fill_arithmetic(KernelTable& table) {
  namespace f = formulas;
  auto slot = [&](Binary op) -> KernelTable::BinaryKernel& { return table.binary[static_cast<int>(op)]; };
  auto plain = [&]<class F>(Binary op, F) { table.plain_binary[static_cast<int>(op)] = plain_binary<F>; };
  plain(Binary::add, f::Add());
  plain(Binary::sub, f::Sub());
  plain(Binary::mul, f::Mul());
  plain(Binary::div, f::Div());
  plain(Binary::maximum, f::Maximum());
  plain(Binary::minimum, f::Minimum());
  plain(Binary::tanh_gradient, f::TanhGradient());
  plain(Binary::sigmoid_gradient, f::SigmoidGradient());
  plain(Binary::relu_gradient, f::ReluGradient());
  slot(Binary::add) = any_binary<f::Add, f::Wrapping<f::Add>>;
  slot(Binary::sub) = number_binary<f::Sub, f::Wrapping<f::Sub>>;
  slot(Binary::mul) = any_binary<f::Mul, f::Wrapping<f::Mul>>;
  slot(Binary::div) = floating_binary<f::Div>;
  slot(Binary::maximum) = any_binary<f::Maximum, f::Maximum>;
  slot(Binary::minimum) = any_binary<f::Minimum, f::Minimum>;
  slot(Binary::floor_divide) = number_binary<f::FloorDivide, f::IntegerQuotient>;
  slot(Binary::mod) = number_binary<f::Mod, f::IntegerMod>;
  slot(Binary::pow) = number_binary<Pow, f::IntegerPow>;
  slot(Binary::logaddexp) = floating_binary<f::Logaddexp>;
  slot(Binary::tanh_gradient) = floating_binary<f::TanhGradient>;
  slot(Binary::sigmoid_gradient) = floating_binary<f::SigmoidGradient>;
  slot(Binary::relu_gradient) = floating_binary<f::ReluGradient>;
  table.clamp = clamp_kernel<f::Clamp>;
  table.lerp = lerp_kernel;
  table.multiply_add = multiply_add_kernel;
  table.plain_multiply_add = plain_multiply_add;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
