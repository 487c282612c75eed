#include "../../runtime/cuda_kernels.h"
#include "extreme.h"
#include "reduction.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// Integers are computed as unsigned, so that overflow wraps around.

template <class Number>
struct Sum {
  using Value = Number;
  using Run = Number;
  using State = Number;
  REEL_DEVICE Sum of(std::int64_t) const { return *this; }
  REEL_DEVICE Run open(Value value, std::int64_t) const { return value; }
  REEL_DEVICE void take(Run& run, Value value, std::int64_t) const { run += value; }
  REEL_DEVICE State close(Run run) const { return run; }
  REEL_DEVICE State nothing() const { return 0; }
  REEL_DEVICE State join(State a, State b) const { return a + b; }
  REEL_DEVICE void finish(State sum, std::int64_t result, const Output& out) const { out.put(result, sum); }
};

template <class Number>
struct Product {
  using Value = Number;
  using Run = Number;
  using State = Number;
  REEL_DEVICE Product of(std::int64_t) const { return *this; }
  REEL_DEVICE Run open(Value value, std::int64_t) const { return value; }
  REEL_DEVICE void take(Run& run, Value value, std::int64_t) const { run *= value; }
  REEL_DEVICE State close(Run run) const { return run; }
  REEL_DEVICE State nothing() const { return 1; }
  REEL_DEVICE State join(State a, State b) const { return a * b; }
  REEL_DEVICE void finish(State product, std::int64_t result, const Output& out) const { out.put(result, product); }
};

Output output_of(const View& out) { return {out.data, out.dtype}; }

void sum(const View& out, const View& x) {
  if (x.numel == 0) return fill_results(out, 0);
  ReducedAxes axes(out, x);
  if (!is_floating(x.dtype)) return reduce(Sum<std::uint64_t>(), Integers(axes, x), output_of(out));
  if (x.dtype == DType::f64) return reduce(Sum<double>(), Elements<double>(axes, x), output_of(out));
  reduce_floating(Sum<float>(), x, axes, output_of(out));
}

void prod(const View& out, const View& x) {
  if (x.numel == 0) return fill_results(out, 1);
  ReducedAxes axes(out, x);
  if (!is_floating(x.dtype)) return reduce(Product<std::uint64_t>(), Integers(axes, x), output_of(out));
  // In f64, so that intermediate products of f32 neither overflow nor underflow.
  reduce_floating(Product<double>(), x, axes, output_of(out));
}

// For empty inputs only `any` and `all` are called.
template <bool largest>
void extreme(const View& out, const View& x) {
  if (x.numel == 0) return fill_results(out, largest ? 0 : 1);
  ReducedAxes axes(out, x);
  if (!is_floating(x.dtype)) return reduce(Extreme<std::int64_t, largest>(), Integers(axes, x), output_of(out));
  if (x.dtype == DType::f64) return reduce(Extreme<double, largest>(), Elements<double>(axes, x), output_of(out));
  reduce_floating(Extreme<float, largest>(), x, axes, output_of(out));
}

}  // namespace

void fill_reduce(KernelTable& table) {
  table.reduce[static_cast<int>(Reduction::sum)] = sum;
  table.reduce[static_cast<int>(Reduction::prod)] = prod;
  table.reduce[static_cast<int>(Reduction::max)] = extreme<true>;
  table.reduce[static_cast<int>(Reduction::min)] = extreme<false>;
}

}  // namespace reel::detail::inline REEL_TARGET
