#include "../../../kernels/formulas/activation.h"

#include "../instruction_set.h"
#include "../vector/formula_loop.h"
#include "../vector/vector_special.h"
#include "activation.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

template <class F, class T>
void vector_loop_4(void* out, const void* const* inputs, std::int64_t count) {
  using V = Vector<T>;
  auto* y = static_cast<T*>(out);
  auto from = [&](int k, std::int64_t i) { return static_cast<const T*>(inputs[k]) + i; };
  std::int64_t i = 0;
  for (; i + V::lanes <= count; i += V::lanes)
    F()(V::load(from(0, i)), V::load(from(1, i)), V::load(from(2, i)), V::load(from(3, i))).store(y + i);
  if (std::int64_t left = count - i) F()
  (V::load(from(0, i), left), V::load(from(1, i), left), V::load(from(2, i), left), V::load(from(3, i), left))
      .store(y + i, left);
}

// A number as an operand that is broadcast, in the type in which x is computed.
class Number {
 public:
  Number(double number, DType dtype) : wide_(number), single_(static_cast<float>(number)) {
    bool is_wide = dtype == DType::f64;
    view_ = {is_wide ? static_cast<void*>(&wide_) : &single_,
             nullptr,
             nullptr,
             1,
             0,
             is_wide ? DType::f64 : DType::f32,
             true};
  }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  const View* view() const { return &view_; }

 private:
  double wide_;
  float single_;
  View view_;
};

template <class F, std::int64_t parallel_from>
void plain(const View& out, const View& x, double, double) {
  floating_unary<F, parallel_from>(out, x);
}
template <class F, std::int64_t parallel_from>
void plain_gradient(const View& out, const View& d, const View& x, double, double) {
  floating_binary<F, parallel_from>(out, d, x);
}

template <class F, std::int64_t parallel_from>
void with_one(const View& out, const View& x, double first, double) {
  Number a(first, x.dtype);
  run_loop(out, {&x, a.view()}, x.dtype == DType::f64 ? vector_loop_2<F, double> : vector_loop_2<F, float>,
           {.parallel_from = parallel_from});
}
template <class F, std::int64_t parallel_from>
void one_gradient(const View& out, const View& d, const View& x, double first, double) {
  Number a(first, x.dtype);
  run_loop(out, {&d, &x, a.view()}, x.dtype == DType::f64 ? vector_loop_3<F, double> : vector_loop_3<F, float>,
           {.parallel_from = parallel_from});
}

template <class F, std::int64_t parallel_from>
void with_two(const View& out, const View& x, double first, double second) {
  Number a(first, x.dtype), b(second, x.dtype);
  run_loop(out, {&x, a.view(), b.view()}, x.dtype == DType::f64 ? vector_loop_3<F, double> : vector_loop_3<F, float>,
           {.parallel_from = parallel_from});
}
template <class F, std::int64_t parallel_from>
void two_gradient(const View& out, const View& d, const View& x, double first, double second) {
  Number a(first, x.dtype), b(second, x.dtype);
  run_loop(out, {&d, &x, a.view(), b.view()},
           x.dtype == DType::f64 ? vector_loop_4<F, double> : vector_loop_4<F, float>,
           {.parallel_from = parallel_from});
}

constexpr ActivationKernels elementwise_kernels() {
  namespace f = formulas;
  ActivationKernels table{};
  auto set = [&](Activation activation, auto forward, auto gradient) {
    table.forward[static_cast<int>(activation)] = forward;
    table.gradient[static_cast<int>(activation)] = gradient;
  };
  set(Activation::leaky_relu, with_one<f::LeakyRelu, cheap>, one_gradient<f::LeakyReluGradient, cheap>);
  set(Activation::gelu, plain<f::Gelu, dear>, plain_gradient<f::GeluGradient, dear>);
  set(Activation::tanh_gelu, plain<f::TanhGelu, dear>, plain_gradient<f::TanhGeluGradient, dear>);
  set(Activation::silu, plain<f::Silu, dear>, plain_gradient<f::SiluGradient, dear>);
  set(Activation::elu, with_two<f::Elu, dear>, two_gradient<f::EluGradient, dear>);
  set(Activation::softplus, with_two<f::Softplus, dear>, two_gradient<f::SoftplusGradient, dear>);
  set(Activation::hardtanh, with_two<f::Clamp, cheap>, two_gradient<f::HardtanhGradient, cheap>);
  return table;
}

}  // namespace

void fill_activation(KernelTable& table) {
  static constinit ActivationKernels kernels = elementwise_kernels();
  fill_masked_softmax(kernels);
  table.activation = &kernels;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
