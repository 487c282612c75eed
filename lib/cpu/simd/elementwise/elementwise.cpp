#include <algorithm>
#include <type_traits>
#include <utility>

#include "../../../kernels/activation.h"
#include "../../../kernels/formulas/activation.h"
#include "../../../kernels/formulas/binary.h"
#include "../../../kernels/formulas/comparison.h"
#include "../../../kernels/formulas/row_parts.h"
#include "../../../kernels/formulas/special.h"
#include "../../../kernels/formulas/unary.h"
#include "../instruction_set.h"
#include "../vector/formula_loop.h"
#include "../vector/vector_division.h"
#include "../vector/vector_exponential.h"
#include "../vector/vector_special.h"
#include "../vector/vector_trigonometric.h"
#include "elementwise.h"

// The kernels of the lists of elementwise kernels, compiled in REEL_PARTS parts: in each, REEL_PART is its number.

namespace reel::detail::inline REEL_TARGET {
namespace {

struct WideDigamma {
  Vector<float> operator()(Vector<float> x) const { return in_double(x, *this); }
  Vector<double> operator()(Vector<double> x) const {
    if (hn::AllTrue(Vector<double>::Tag(), x > Vector<double>(0))) return formulas::DigammaOfPositive()(x);
    return formulas::Digamma()(x);
  }
};

}  // namespace

// Too many digits are lost for f32 throughout.
template <>
struct VectorFormula<formulas::Digamma> {
  using type = WideDigamma;
};

namespace {

template <class F, class T>
HWY_NOINLINE void run_rest(T* y, const T* a, const T* b, std::int64_t count) {
  const void* inputs[] = {a, b};
  vector_loop_2<F, T>(y, inputs, count);
}

// An unrolled loop, for formulas that take less time than a general loop's overhead.
template <class F, class T>
void run_unrolled(T* y, const T* a, const T* b, std::int64_t count) {
  using V = Vector<T>;
  constexpr std::int64_t lanes = V::lanes;
  const std::int64_t whole = count & -4 * lanes;
  std::int64_t i = 0;
  for (; i < whole; i += 4 * lanes) {
    V first = F()(V::load(a + i), V::load(b + i));
    V second = F()(V::load(a + i + lanes), V::load(b + i + lanes));
    V third = F()(V::load(a + i + 2 * lanes), V::load(b + i + 2 * lanes));
    V fourth = F()(V::load(a + i + 3 * lanes), V::load(b + i + 3 * lanes));
    first.store(y + i);
    second.store(y + i + lanes);
    third.store(y + i + 2 * lanes);
    fourth.store(y + i + 3 * lanes);
  }
  if (i < count) run_rest<F, T>(y + i, a + i, b + i, count - i);
}

template <class F, class T>
void unrolled_loop(void* out, const void* const* inputs, std::int64_t count) {
  run_unrolled<F>(static_cast<T*>(out), static_cast<const T*>(inputs[0]), static_cast<const T*>(inputs[1]), count);
}

// The loop of a formula whose first or second operand (`repeated`: 0, 1) is a single element.
template <class F, class T, int repeated>
void repeated_loop(void* out, const void* const* inputs, std::int64_t count) {
  using V = Vector<T>;
  constexpr std::int64_t lanes = V::lanes;
  auto* y = static_cast<T*>(out);
  auto* x = static_cast<const T*>(inputs[1 - repeated]);
  V number = V::repeat(*static_cast<const T*>(inputs[repeated]));
  auto apply = [&](V v) { return repeated == 0 ? F()(number, v) : F()(v, number); };
  const std::int64_t whole = count & -4 * lanes;
  std::int64_t i = 0;
  for (; i < whole; i += 4 * lanes) {
    V first = apply(V::load(x + i)), second = apply(V::load(x + i + lanes));
    V third = apply(V::load(x + i + 2 * lanes)), fourth = apply(V::load(x + i + 3 * lanes));
    first.store(y + i);
    second.store(y + i + lanes);
    third.store(y + i + 2 * lanes);
    fourth.store(y + i + 3 * lanes);
  }
  for (; i < count; i += lanes) {
    std::int64_t left = std::min(lanes, count - i);
    apply(V::load(x + i, left)).store(y + i, left);
  }
}

template <class F, class T>
void run_cheap(const View& out, const View& a, const View& b, BlockLoopOptions options) {
  options.repeated[0] = repeated_loop<F, T, 0>;
  options.repeated[1] = repeated_loop<F, T, 1>;
  run_loop(out, {&a, &b}, unrolled_loop<F, T>, options);
}

// Returns true if the operands need no broadcasting, conversion or strides.
HWY_INLINE bool is_plain(const View& out, const View& a, const View& b) {
  return out.dtype == DType::f32 && out.contiguous && a.contiguous && b.contiguous && a.numel == out.numel &&
         b.numel == out.numel && out.numel < parallel_from(Grain::coarse);
}

template <class F>
void integer_loop(const View& out, const View& a, const View& b, BlockLoopOptions options) {
  with_integer(out.dtype, [&]<class T>(std::type_identity<T>) {
    run_loop(out, {&a, &b}, scalar_loop_2<F, T, T>, options);
  });
}

template <class Row>
HWY_NOINLINE void binary_loop(const View& out, const View& a, const View& b) {
  using F = typename Row::Formula;
  using IntegerF = typename Row::IntegerFormula;
  BlockLoopOptions options{.parallel_from = parallel_from(Row::grain)};
  if constexpr (Row::operands == Operands::numbers_and_bools)
    if (out.dtype == DType::boolean) return run_loop(out, {&a, &b}, scalar_loop_2<IntegerF, bool, bool>, options);
  if constexpr (Row::operands != Operands::floating)
    if (!is_floating(out.dtype)) return integer_loop<IntegerF>(out, a, b, options);
  if constexpr (Row::grain == Grain::coarse)
    out.dtype == DType::f64 ? run_cheap<F, double>(out, a, b, options) : run_cheap<F, float>(out, a, b, options);
  else
    floating_binary<F, Row::grain>(out, a, b);
}

template <class Row>
void cheap_binary(const View& out, const View& a, const View& b) {
  if (is_plain(out, a, b)) [[likely]]
    run_unrolled<typename Row::Formula>(out.as<float>(), a.as<float>(), b.as<float>(), out.numel);
  else
    binary_loop<Row>(out, a, b);
}

double only_element(const View& x) {
  double number = 0;
  with_floating(x.dtype, [&]<class T>(std::type_identity<T>) { number = static_cast<double>(*x.as<T>()); });
  return number;
}

// Frequent exponents give the bits that they give where a single number is the exponent.
struct PowOfEach {
  template <class V>
  V operator()(V a, V b) const {
    V y = formulas::Pow()(a, b);
    y = select(b == V(2), formulas::Square()(a), y);
    y = select(b == V(3), formulas::Cube()(a), y);
    y = select(b == V(0.5), formulas::RootPower()(a), y);
    return select(b == V(-1), formulas::Reciprocal()(a), y);
  }
};
template <class Row>
struct RowOfEach : Row {
  using Formula = PowOfEach;
};

// If a single number is the exponent, frequent ones are computed without logarithms.
template <class Row>
void pow_kernel(const View& out, const View& a, const View& b) {
  if (b.numel == 1 && is_floating(b.dtype)) {
    double power = only_element(b);
    if (power == 2) return floating_unary<formulas::Square, Grain::coarse>(out, a);
    if (power == 3) return floating_unary<formulas::Cube, Grain::coarse>(out, a);
    if (power == 0.5) return floating_unary<formulas::RootPower, Grain::coarse>(out, a);
    if (power == -1) return floating_unary<formulas::Reciprocal, Grain::coarse>(out, a);
  }
  binary_loop<RowOfEach<Row>>(out, a, b);
}

template <class Row>
void integer_binary(const View& out, const View& a, const View& b) {
  using F = typename Row::Formula;
  BlockLoopOptions options{.parallel_from = parallel_from(Row::grain)};
  if constexpr (Row::operands == Operands::integers_and_bools)
    if (out.dtype == DType::boolean) return run_loop(out, {&a, &b}, scalar_loop_2<F, bool, bool>, options);
  integer_loop<F>(out, a, b, options);
}

template <class Row>
void add_binary_kernel(KernelTable& table) {
  using F = typename Row::Formula;
  KernelTable::BinaryKernel& kernel = table.binary[binary_place<F>];
  if constexpr (Row::operands == Operands::compared) {
    kernel = comparison<F>;
  } else if constexpr (Row::operands == Operands::integers || Row::operands == Operands::integers_and_bools) {
    kernel = integer_binary<Row>;
  } else if constexpr (Row::grain == Grain::coarse) {
    kernel = cheap_binary<Row>;
    table.plain_binary[binary_place<F>] = run_unrolled<F, float>;
  } else if constexpr (std::is_same_v<F, formulas::Pow>) {
    kernel = pow_kernel<Row>;
  } else {
    kernel = binary_loop<Row>;
  }
}

// The last inputs are parameters: a single number each.
template <class F, class T, int input_count, int parameter_count>
void parameter_loop(void* out, const void* const* inputs, std::int64_t count) {
  using V = Vector<T>;
  auto from = [=](int input, std::int64_t i) { return static_cast<const T*>(inputs[input]) + i; };
  [=]<int... k, int... p>(std::integer_sequence<int, k...>, std::integer_sequence<int, p...>) {
    auto* y = static_cast<T*>(out);
    const V parameters[] = {V::repeat(*from(input_count + p, 0))...};
    std::int64_t i = 0;
    for (; i + V::lanes <= count; i += V::lanes) F()(V::load(from(k, i))..., parameters[p]...).store(y + i);
    if (std::int64_t left = count - i) F()(V::load(from(k, i), left)..., parameters[p]...).store(y + i, left);
  }(std::make_integer_sequence<int, input_count>(), std::make_integer_sequence<int, parameter_count>());
}

// A number as an operand that is broadcast, in the type in which x is computed.
class Number : Immovable {
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
  const View* view() const { return &view_; }

 private:
  double wide_;
  float single_;
  View view_;
};

template <class F, Grain grain, int count, class... Inputs>
void run_with_parameters(const View& out, const ActivationParameters& parameters, DType dtype,
                         const Inputs&... inputs) {
  constexpr int input_count = static_cast<int>(sizeof...(inputs));
  [&]<int... k>(std::integer_sequence<int, k...>) {
    run_loop(out, {&inputs..., Number(parameters[k], dtype).view()...},
             dtype == DType::f64 ? parameter_loop<F, double, input_count, count>
                                 : parameter_loop<F, float, input_count, count>,
             {.parallel_from = parallel_from(grain)});
  }(std::make_integer_sequence<int, count>());
}

template <class Row>
void add_activation_kernels(ActivationKernels& table) {
  using F = typename Row::Formula;
  using G = typename Row::Gradient;
  table.forward[activation_place<F>] = [](const View& out, const View& x, const ActivationParameters& parameters) {
    if constexpr (Row::parameters == 0)
      floating_unary<F, Row::grain>(out, x);
    else
      run_with_parameters<F, Row::grain, Row::parameters>(out, parameters, x.dtype, x);
  };
  table.gradient[activation_place<F>] = [](const View& out, const View& d, const View& x,
                                           const ActivationParameters& parameters) {
    if constexpr (Row::gradient_parameters == 0)
      floating_binary<G, Row::grain>(out, d, x);
    else
      run_with_parameters<G, Row::grain, Row::gradient_parameters>(out, parameters, x.dtype, d, x);
  };
}

}  // namespace

template <>
void fill_elementwise_part<REEL_PART>(KernelTable& table, ActivationKernels& activation) {
  for_each_row<REEL_PART, REEL_PARTS>(formulas::UnaryRows(), [&]<class Row>(Row) {
    table.unary[unary_place<typename Row::Formula>] = unary_kernel<Row>();
  });
  for_each_row<REEL_PART, REEL_PARTS>(formulas::BinaryRows(), [&]<class Row>(Row) { add_binary_kernel<Row>(table); });
  for_each_row<REEL_PART, REEL_PARTS>(formulas::ActivationRows(),
                                      [&]<class Row>(Row) { add_activation_kernels<Row>(activation); });
}

#if REEL_PART == 0
void fill_elementwise(KernelTable& table) {
  static constinit ActivationKernels activation{};
  [&]<int... part>(std::integer_sequence<int, part...>) {
    (fill_elementwise_part<part>(table, activation), ...);
  }(std::make_integer_sequence<int, REEL_PARTS>());
  fill_masked_softmax(activation);
  table.activation = &activation;
}
#endif

}  // namespace reel::detail::inline REEL_TARGET
