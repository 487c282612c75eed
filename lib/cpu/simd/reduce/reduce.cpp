#include "../elementwise/elementwise.h"
#include "../instruction_set.h"
#include "extreme_columns.h"
#include "sum_columns.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

template <class A>
struct Product {
  // Integers are multiplied as unsigned, so that overflow wraps around; f32 in f64, so that intermediate products neither
  // overflow nor underflow.
  using Number = std::conditional_t<std::is_integral_v<A>, std::uint64_t, double>;
  using Result = std::conditional_t<std::is_integral_v<A>, A, double>;
  const View& out;
  std::int64_t at = 0;
  Number product[most_columns];

  explicit Product(const View& out) : out(out) {}
  void start(std::int64_t from, std::int64_t, std::int64_t width, std::int64_t fold) {
    at = from;
    std::fill_n(product + at, width * fold, Number(1));
  }
  [[gnu::noinline]] void take(const A* __restrict rows, std::int64_t stride, std::int64_t count, std::int64_t columns,
                              std::int64_t) {
    std::int64_t i = 0;
    for (; i + 4 <= count; i += 4) multiply<4>(product + at, rows + i * stride, stride, columns);
    for (; i < count; ++i) multiply<1>(product + at, rows + i * stride, stride, columns);
  }
  [[gnu::noinline]] void take_line(const A* x, std::int64_t count, std::int64_t times, std::int64_t stride) {
    for (; times > 0; --times, x += stride) multiply_line(product + at, x, count);
  }
  [[gnu::noinline]] void reduce_line(std::int64_t to, const A* x, std::int64_t count, std::int64_t) {
    Number columns[line_columns];
    std::fill_n(columns, line_columns, Number(1));
    multiply_line(columns, x, count);
    product[to] = folded(columns, 1, line_columns);
  }
  void fold(std::int64_t to, std::int64_t width, std::int64_t fold) {
    folded(product + at, width, fold);
    if (fold > 1) std::copy_n(product + at, width, product + to);
  }
  void join(const Product& later, std::int64_t width) {
    for (std::int64_t j = 0; j < width; ++j) product[j] *= later.product[j];
  }
  void finish(std::int64_t first, std::int64_t width) {
    Result results[most_columns];
    for (std::int64_t j = 0; j < width; ++j) results[j] = static_cast<Result>(product[j]);
    write_results(out, first, results, width);
  }

 private:
  using V = Vector<A>;

  // Joins rows with each other first, so that not every product waits for the one before it.
  template <int rows>
  HWY_INLINE static void multiply(Number* __restrict into, const A* __restrict x, std::int64_t stride,
                                  std::int64_t columns) {
    auto number = [=](std::int64_t i, std::int64_t j) { return static_cast<Number>(x[i * stride + j]); };
    for (std::int64_t j = 0; j < columns; ++j)
      into[j] *= rows == 4 ? number(0, j) * number(1, j) * (number(2, j) * number(3, j)) : number(0, j);
  }
  HWY_INLINE static void multiply_line(Number* into, const A* x, std::int64_t count) {
    for (; count >= 4 * line_columns; count -= 4 * line_columns, x += 4 * line_columns)
      multiply<4>(into, x, line_columns, line_columns);
    for (; count >= line_columns; count -= line_columns, x += line_columns)
      multiply<1>(into, x, line_columns, line_columns);
    if (count == 0) return;
    A last[line_columns];
    for (std::int64_t j = 0; j < line_columns; j += V::lanes) {
      std::int64_t here = std::clamp<std::int64_t>(count - j, 0, V::lanes);
      auto is_there = hn::FirstN(typename V::Tag(), static_cast<std::size_t>(here));
      V(hn::IfThenElse(is_there, V::load(x + j, here).raw, V::repeat(1).raw)).store(last + j);
    }
    multiply<1>(into, last, line_columns, line_columns);
  }
  HWY_INLINE static Number folded(Number* columns, std::int64_t width, std::int64_t fold) {
    for (std::int64_t half = fold / 2 * width; half >= width; half /= 2)
      for (std::int64_t j = 0; j < half; ++j) columns[j] *= columns[j + half];
    return columns[0];
  }
};

template <class Wide, class Op>
void reduce(const View& out, const View& x) {
  in_memory_order(out, x, [](const View& results, const View& sorted) {
    ReductionPlan(results, sorted).run<Op>(Reader<Wide>(sorted), results);
  });
}

void sum(const View& out, const View& x) {
  if (reduces_single_elements(out, x)) return copy_elements(out, x);
  if (x.numel == 0) return fill_results(out, 0);
  if (!is_floating(x.dtype)) return reduce<std::int64_t, SumColumns<std::int64_t>>(out, x);
  if (x.dtype == DType::f64) return reduce<double, SumColumns<double>>(out, x);
  reduce<float, SumColumns<float>>(out, x);
}

void prod(const View& out, const View& x) {
  if (reduces_single_elements(out, x)) return copy_elements(out, x);
  if (x.numel == 0) return fill_results(out, 1);
  if (!is_floating(x.dtype)) return reduce<std::int64_t, Product<std::int64_t>>(out, x);
  if (x.dtype == DType::f64) return reduce<double, Product<double>>(out, x);
  reduce<float, Product<float>>(out, x);
}

// For empty inputs only `any` and `all` are called.
template <bool largest>
void extreme(const View& out, const View& x) {
  if (reduces_single_elements(out, x)) return copy_elements(out, x);
  if (x.numel == 0) return fill_results(out, largest ? 0 : 1);
  if (!is_floating(x.dtype)) return reduce<std::int64_t, ExtremeColumns<std::int64_t, largest>>(out, x);
  if (x.dtype == DType::f64) return reduce<double, ExtremeColumns<double, largest>>(out, x);
  reduce<float, ExtremeColumns<float, largest>>(out, x);
}

}  // namespace

void fill_reduce(KernelTable& table) {
  table.reduce[static_cast<int>(Reduction::sum)] = sum;
  table.reduce[static_cast<int>(Reduction::prod)] = prod;
  table.reduce[static_cast<int>(Reduction::max)] = extreme<true>;
  table.reduce[static_cast<int>(Reduction::min)] = extreme<false>;
}

}  // namespace reel::detail::inline REEL_TARGET
