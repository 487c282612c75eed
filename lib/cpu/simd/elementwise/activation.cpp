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

template <class F, Cost cost>
void plain(const View& out, const View& x, double, double) {
  floating_unary<F, cost>(out, x);
}
template <class F, Cost cost>
void plain_gradient(const View& out, const View& d, const View& x, double, double) {
  floating_binary<F, cost>(out, d, x);
}

template <class F, Cost cost>
void with_one(const View& out, const View& x, double first, double) {
  Number a(first, x.dtype);
  run_loop(out, {&x, a.view()}, x.dtype == DType::f64 ? vector_loop_2<F, double> : vector_loop_2<F, float>,
           {.parallel_from = parallel_from(cost)});
}
template <class F, Cost cost>
void one_gradient(const View& out, const View& d, const View& x, double first, double) {
  Number a(first, x.dtype);
  run_loop(out, {&d, &x, a.view()}, x.dtype == DType::f64 ? vector_loop_3<F, double> : vector_loop_3<F, float>,
           {.parallel_from = parallel_from(cost)});
}

template <class F, Cost cost>
void with_two(const View& out, const View& x, double first, double second) {
  Number a(first, x.dtype), b(second, x.dtype);
  run_loop(out, {&x, a.view(), b.view()}, x.dtype == DType::f64 ? vector_loop_3<F, double> : vector_loop_3<F, float>,
           {.parallel_from = parallel_from(cost)});
}
template <class F, Cost cost>
void two_gradient(const View& out, const View& d, const View& x, double first, double second) {
  Number a(first, x.dtype), b(second, x.dtype);
  run_loop(out, {&d, &x, a.view(), b.view()},
           x.dtype == DType::f64 ? vector_loop_4<F, double> : vector_loop_4<F, float>,
           {.parallel_from = parallel_from(cost)});
}

template <class Row>
void add_kernels(ActivationKernels& table) {
  using F = typename Row::Formula;
  using G = typename Row::Gradient;
  constexpr Cost cost = Row::cost;
  auto& forward = table.forward[activation_place<F>];
  auto& gradient = table.gradient[activation_place<F>];
  if constexpr (Row::parameters == 0)
    forward = plain<F, cost>, gradient = plain_gradient<G, cost>;
  else if constexpr (Row::parameters == 1)
    forward = with_one<F, cost>, gradient = one_gradient<G, cost>;
  else
    forward = with_two<F, cost>, gradient = two_gradient<G, cost>;
}

template <class... Rows>
void add_all_kernels(ActivationKernels& table, KernelList<Rows...>) {
  (add_kernels<Rows>(table), ...);
}

}  // namespace

void fill_activation(KernelTable& table) {
  static constinit ActivationKernels kernels{};
  add_all_kernels(kernels, kernel_lists::Activations());
  fill_masked_softmax(kernels);
  table.activation = &kernels;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
