#include <algorithm>

#include "../../../core/threads/parallel.h"
#include "../vector/formula_loop.h"
#include "../vector/vector_division.h"
#include "../vector/vector_exponential.h"
#include "../vector/vector_trigonometric.h"
#include "elementwise.h"

namespace reel::detail {
inline namespace REEL_TARGET {
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
         b.numel == out.numel && out.numel < parallel_from(Cost::cheap);
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
  BlockLoopOptions options{.parallel_from = parallel_from(Row::cost)};
  if constexpr (Row::operands == Operands::numbers_and_bools)
    if (out.dtype == DType::boolean) return run_loop(out, {&a, &b}, scalar_loop_2<IntegerF, bool, bool>, options);
  if constexpr (Row::operands != Operands::floating)
    if (!is_floating(out.dtype)) return integer_loop<IntegerF>(out, a, b, options);
  if constexpr (Row::cost == Cost::cheap)
    out.dtype == DType::f64 ? run_cheap<F, double>(out, a, b, options) : run_cheap<F, float>(out, a, b, options);
  else
    floating_binary<F, Row::cost>(out, a, b);
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

// If a single number is the exponent, frequent ones are computed without logarithms.
template <class Row>
void pow_kernel(const View& out, const View& a, const View& b) {
  if (b.numel == 1 && is_floating(b.dtype)) {
    double power = only_element(b);
    if (power == 2) return floating_unary<formulas::Square, Cost::cheap>(out, a);
    if (power == 3) return floating_unary<formulas::Cube, Cost::cheap>(out, a);
    if (power == 0.5) return floating_unary<formulas::RootPower, Cost::cheap>(out, a);
    if (power == -1) return floating_unary<formulas::Reciprocal, Cost::cheap>(out, a);
  }
  binary_loop<Row>(out, a, b);
}

template <class... Rows>
void fill_binary_kernels(KernelTable& table, KernelList<Rows...>) {
  auto fill = [&]<class Row>(Row) {
    using F = typename Row::Formula;
    KernelTable::BinaryKernel& kernel = table.binary[binary_place<F>];
    if constexpr (Row::cost == Cost::cheap) {
      kernel = cheap_binary<Row>;
      table.plain_binary[binary_place<F>] = run_unrolled<F, float>;
    } else if constexpr (std::is_same_v<F, formulas::Pow>) {
      kernel = pow_kernel<Row>;
    } else {
      kernel = binary_loop<Row>;
    }
  };
  (fill(Rows()), ...);
}

template <class Row>
void integer_binary(const View& out, const View& a, const View& b) {
  using F = typename Row::Formula;
  BlockLoopOptions options{.parallel_from = parallel_from(Row::cost)};
  if constexpr (Row::operands == Operands::integers_and_bools)
    if (out.dtype == DType::boolean) return run_loop(out, {&a, &b}, scalar_loop_2<F, bool, bool>, options);
  integer_loop<F>(out, a, b, options);
}

template <class... Rows>
void fill_integer_kernels(KernelTable& table, KernelList<Rows...>) {
  ((table.binary[binary_place<typename Rows::Formula>] = integer_binary<Rows>), ...);
}

template <class F>
void any_ternary(const View& out, const View& a, const View& b, const View& c) {
  if (is_floating(out.dtype))
    return run_loop(out, {&a, &b, &c}, out.dtype == DType::f64 ? vector_loop_3<F, double> : vector_loop_3<F, float>);
  with_integer(out.dtype, [&]<class T>(std::type_identity<T>) { run_loop(out, {&a, &b, &c}, scalar_loop_3<F, T, T>); });
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
  if (sum.numel < parallel_from(Cost::cheap)) return part(0, sum.numel);
  parallel_for(sum.numel, parallel_grain, part);
}

void multiply_add_kernel(const View& sum, const View& a, const View& b) {
  if (sum.dtype == DType::f32)
    parallel_multiply_add<float>(sum, a, b);
  else
    parallel_multiply_add<double>(sum, a, b);
}

}  // namespace

void fill_arithmetic(KernelTable& table) {
  fill_binary_kernels(table, kernel_lists::BinaryArithmetic());
  fill_integer_kernels(table, kernel_lists::Bitwise());
  table.clamp = any_ternary<formulas::Clamp>;
  table.lerp = lerp_kernel;
  table.multiply_add = multiply_add_kernel;
  table.plain_multiply_add = multiply_add_typed<float>;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
