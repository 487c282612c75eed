#include <cmath>
#include <limits>

#include "../instruction_set.h"
#include "../vector/vector_exponential.h"
#include "extreme_columns.h"
#include "sum_columns.h"

// Reductions Σ f(x, a), where the number a of each result comes from an earlier pass: a mean, or a largest element.

namespace reel::detail::inline REEL_TARGET {
namespace {

template <class A>
struct Mapping {
  const View& out;
  /// One number for each result; null if none is needed.
  const A* given;
  /// to[i columns + j] = f(rows[i stride + j], given[j])
  void (*map)(A* to, const A* rows, std::int64_t stride, std::int64_t count, std::int64_t columns, const A* given,
              double power);
  /// Computes the results from the sums.
  void (*finish)(A* sums, const A* given, std::int64_t count, const Mapping& mapping);
  double power = 0;
  double divisor = 1;
};

template <class A>
class MappedSum {
 public:
  explicit MappedSum(const Mapping<A>& mapping) : mapping_(&mapping), sum_(mapping.out) {}

  void start(std::int64_t at, std::int64_t first, std::int64_t width, std::int64_t fold) {
    at_ = at;
    sum_.start(at, first, width, fold);
    if (!mapping_->given) return;
    for (std::int64_t g = 0; g < fold; ++g) std::copy_n(mapping_->given + first, width, given_ + at + g * width);
  }
  void take(const A* rows, std::int64_t stride, std::int64_t count, std::int64_t columns, std::int64_t position) {
    A mapped[tile_elements];
    std::int64_t height = tile_elements / columns / rows_together * rows_together;
    for (std::int64_t i = 0; i < count; i += height) {
      std::int64_t here = std::min(height, count - i);
      mapping_->map(mapped, rows + i * stride, stride, here, columns, given_ + at_, mapping_->power);
      sum_.take(mapped, columns, here, columns, position);
    }
  }
  void fold(std::int64_t to, std::int64_t width, std::int64_t fold) {
    sum_.fold(to, width, fold);
    if (fold > 1) std::copy_n(given_ + at_, width, given_ + to);
  }
  void join(const MappedSum& later, std::int64_t width) { sum_.join(later.sum_, width); }
  void finish(std::int64_t first, std::int64_t width) {
    A results[most_columns];
    sum_.results(results, width);
    mapping_->finish(results, given_, width, *mapping_);
    write_results(mapping_->out, first, results, width);
  }

 private:
  const Mapping<A>* mapping_;
  std::int64_t at_ = 0;
  A given_[most_columns];
  SumColumns<A> sum_;
};

// One number for each result, kept for the second pass.
template <class A>
class Scratch {
 public:
  explicit Scratch(const View& out) : view_(out) {
    if (out.numel > few) many_.resize(static_cast<std::size_t>(out.numel));
    view_.data = out.numel > few ? many_.data() : few_;
    view_.dtype = dtype_of<A>();
  }
  const View& view() const { return view_; }
  A* data() const { return view_.as<A>(); }
  template <class F>
  void for_each(F f) const {
    for (std::int64_t i = 0; i < view_.numel; ++i) data()[i] = f(data()[i]);
  }

 private:
  static constexpr std::int64_t few = 64;
  A few_[few];
  std::vector<A> many_;
  View view_;
};

template <class A, class F>
void map_rows(A* __restrict to, const A* rows, std::int64_t stride, std::int64_t count, std::int64_t columns, F f) {
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t j = 0; j < columns; ++j) to[i * columns + j] = f(rows[i * stride + j], j);
}

void squared_deviations(double* to, const double* rows, std::int64_t stride, std::int64_t count, std::int64_t columns,
                        const double* mean, double) {
  map_rows(to, rows, stride, count, columns, [=](double x, std::int64_t j) { return (x - mean[j]) * (x - mean[j]); });
}

// In f64, so that the squares of large f32 numbers with small differences keep their precision.
void variance(const View& out, const View& x, double divisor, bool root) {
  if (x.numel == 0) return fill_results(out, std::numeric_limits<double>::quiet_NaN());
  ReductionPlan plan(out, x);
  Reader<double> reader(x);
  Scratch<double> mean(out);
  plan.run<SumColumns<double>>(reader, mean.view());
  auto length = static_cast<double>(plan.length());
  mean.for_each([=](double sum) { return sum / length; });
  auto finish = [](double* sums, const double*, std::int64_t count, const Mapping<double>& mapping) {
    for (std::int64_t j = 0; j < count; ++j) {
      sums[j] /= mapping.divisor;
      if (mapping.power == 0.5) sums[j] = std::sqrt(sums[j]);
    }
  };
  plan.run<MappedSum<double>>(reader,
                              Mapping<double>{out, mean.data(), squared_deviations, finish, root ? 0.5 : 1.0, divisor});
}

void powers(double* to, const double* rows, std::int64_t stride, std::int64_t count, std::int64_t columns,
            const double* factor, double power) {
  if (power == 0)
    return map_rows(to, rows, stride, count, columns, [](double x, std::int64_t) { return x != 0 ? 1.0 : 0.0; });
  if (power == 1) return map_rows(to, rows, stride, count, columns, [](double x, std::int64_t) { return std::abs(x); });
  map_rows(to, rows, stride, count, columns,
           [=](double x, std::int64_t j) { return std::pow(std::abs(x) * factor[j], power); });
}

void squares(double* to, const double* rows, std::int64_t stride, std::int64_t count, std::int64_t columns,
             const double* factor, double) {
  map_rows(to, rows, stride, count, columns, [=](double x, std::int64_t j) {
    double scaled = x * factor[j];
    return scaled * scaled;
  });
}

// The factor that scales a number to 1, for squares to between 1 and 2 without rounding. 0, infinity and NaN are
// returned unchanged.
double scale_factor(double x, double power) {
  if (x == 0 || !std::isfinite(x)) return x;
  if (power == 2) return std::ldexp(1.0, std::clamp(-std::ilogb(x), -1022, 1022));
  return std::min(1 / x, std::numeric_limits<double>::max());
}

// Numbers are scaled before their powers are summed: by the largest magnitude, for negative powers by the smallest. No
// power is then far above 1, and none that matters underflows.
void norm(const View& out, const View& x, double power) {
  if (x.numel == 0) return fill_results(out, 0);
  ReductionPlan plan(out, x);
  Reader<double> reader(x);
  using Finish = void (*)(double* sums, const double* factor, std::int64_t count, const Mapping<double>& mapping);
  if (power == 0 || power == 1) {
    Finish finish = [](double*, const double*, std::int64_t, const Mapping<double>&) {};
    return plan.run<MappedSum<double>>(reader, Mapping<double>{out, nullptr, powers, finish, power});
  }
  auto extreme = [&](const View& to) {
    if (power > 0)
      plan.run<ExtremeColumns<double, true, true>>(reader, to);
    else
      plan.run<ExtremeColumns<double, false, true>>(reader, to);
  };
  if (std::isinf(power)) return extreme(out);
  Scratch<double> factor(out);
  // The square of an f32 number is within the range of f64.
  if (power == 2 && x.dtype != DType::f64)
    std::fill_n(factor.data(), out.numel, 1.0);
  else
    extreme(factor.view());
  factor.for_each([=](double magnitude) { return scale_factor(magnitude, power); });
  Finish finish = [](double* sums, const double* f, std::int64_t count, const Mapping<double>& mapping) {
    for (std::int64_t j = 0; j < count; ++j) {
      bool regular = f[j] != 0 && std::isfinite(f[j]);
      double scaled = mapping.power == 2 ? std::sqrt(sums[j]) : std::pow(sums[j], 1 / mapping.power);
      sums[j] = regular ? scaled / f[j] : f[j];
    }
  };
  plan.run<MappedSum<double>>(reader,
                              Mapping<double>{out, factor.data(), power == 2 ? squares : powers, finish, power});
}

template <class A>
void exponentials(A* to, const A* rows, std::int64_t stride, std::int64_t count, std::int64_t columns, const A* shift,
                  double) {
  using V = Vector<A>;
  for (std::int64_t i = 0; i < count; ++i, rows += stride, to += columns) {
    std::int64_t j = 0;
    for (; j + V::lanes <= columns; j += V::lanes) exp(V::load(rows + j) - V::load(shift + j)).store(to + j);
    if (j == columns) continue;
    A rest[V::lanes] = {};
    for (std::int64_t k = j; k < columns; ++k) rest[k - j] = rows[k] - shift[k];
    exp(V::load(rest)).store(rest);
    for (std::int64_t k = j; k < columns; ++k) to[k] = rest[k - j];
  }
}

// y = m + log Σ e^(x − m), where m is the largest element, or 0 if that is infinite.
template <class A>
void logsumexp_of(const View& out, const View& x) {
  ReductionPlan plan(out, x);
  Reader<A> reader(x);
  Scratch<A> shift(out);
  plan.run<ExtremeColumns<A, true>>(reader, shift.view());
  shift.for_each([](A largest) { return std::isinf(largest) ? A(0) : largest; });
  auto finish = [](A* sums, const A* m, std::int64_t count, const Mapping<A>&) {
    for (std::int64_t j = 0; j < count; ++j)
      sums[j] = static_cast<A>(static_cast<double>(m[j]) + std::log(static_cast<double>(sums[j])));
  };
  plan.run<MappedSum<A>>(reader, Mapping<A>{out, shift.data(), exponentials<A>, finish});
}

void logsumexp(const View& out, const View& x) {
  if (x.numel == 0) return fill_results(out, -std::numeric_limits<double>::infinity());
  return x.dtype == DType::f64 ? logsumexp_of<double>(out, x) : logsumexp_of<float>(out, x);
}

}  // namespace

void fill_statistics(KernelTable& table) {
  table.variance = [](const View& out, const View& x, double divisor, bool root) {
    in_memory_order(out, x, [=](const View& y, const View& sorted) { variance(y, sorted, divisor, root); });
  };
  table.norm = [](const View& out, const View& x, double power) {
    in_memory_order(out, x, [=](const View& y, const View& sorted) { norm(y, sorted, power); });
  };
  table.reduce[static_cast<int>(Reduction::logsumexp)] = [](const View& out, const View& x) {
    in_memory_order(out, x, logsumexp);
  };
}

}  // namespace reel::detail::inline REEL_TARGET
