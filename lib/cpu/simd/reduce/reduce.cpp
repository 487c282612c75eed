#include "../elementwise/elementwise.h"
#include "../instruction_set.h"
#include "extreme_columns.h"
#include "sum_columns.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

template <class A>
struct Product {
  // Integers are multiplied as unsigned, so that overflow wraps around.
  using Number = std::conditional_t<std::is_integral_v<A>, std::uint64_t, A>;
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
    Number* __restrict into = product + at;
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t j = 0; j < columns; ++j) into[j] *= static_cast<Number>(rows[i * stride + j]);
  }
  void fold(std::int64_t to, std::int64_t width, std::int64_t fold) {
    Number* here = product + at;
    for (std::int64_t half = fold / 2 * width; half >= width; half /= 2)
      for (std::int64_t j = 0; j < half; ++j) here[j] *= here[j + half];
    if (fold > 1) std::copy_n(here, width, product + to);
  }
  void join(const Product& later, std::int64_t width) {
    for (std::int64_t j = 0; j < width; ++j) product[j] *= later.product[j];
  }
  void finish(std::int64_t first, std::int64_t width) {
    A results[most_columns];
    for (std::int64_t j = 0; j < width; ++j) results[j] = static_cast<A>(product[j]);
    write_results(out, first, results, width);
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
  // In f64, so that intermediate products of f32 neither overflow nor underflow.
  reduce<double, Product<double>>(out, x);
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
