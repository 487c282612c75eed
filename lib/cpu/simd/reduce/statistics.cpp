#include <cmath>
#include <limits>

#include "../instruction_set.h"
#include "../vector/block_loop.h"
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

// Sums of squares or magnitudes in f64, and of them the roots or the sums themselves.
template <class T, bool squared>
class MagnitudeSums {
 public:
  explicit MagnitudeSums(const View& out) : out_(&out), sum_(out) {}

  void start(std::int64_t at, std::int64_t first, std::int64_t width, std::int64_t fold) {
    sum_.start(at, first, width, fold);
  }
  void take(const T* rows, std::int64_t stride, std::int64_t count, std::int64_t columns, std::int64_t position) {
    double added[most_columns];
    for (std::int64_t i = 0; i < count; i += rows_together) {
      add(added, rows + i * stride, stride, std::min(rows_together, count - i), columns);
      sum_.take(added, columns, 1, columns, position);
    }
  }
  // Lines of f32, whose sums in f64 need no groups of few rows.
  void take_line(const float* x, std::int64_t count, std::int64_t times, std::int64_t stride)
    requires std::is_same_v<T, float>
  {
    double added[line_columns];
    for (; times > 0; --times, x += stride)
      for (std::int64_t i = 0; i < count; i += piece) {
        Line(x + i, std::min(piece, count - i)).store(added);
        sum_.take(added, line_columns, 1, line_columns, 0);
      }
  }
  void reduce_line(std::int64_t at, const float* x, std::int64_t count, std::int64_t)
    requires std::is_same_v<T, float>
  {
    if (count <= piece) return sum_.set(at, Line(x, count).sum());
    sum_.start(at * line_columns, 0, 1, line_columns);
    take_line(x, count, 1, 0);
    sum_.fold(at, 1, line_columns);
  }
  void fold(std::int64_t to, std::int64_t width, std::int64_t fold) { sum_.fold(to, width, fold); }
  void join(const MagnitudeSums& later, std::int64_t width) { sum_.join(later.sum_, width); }
  void finish(std::int64_t first, std::int64_t width) {
    double results[most_columns];
    sum_.results(results, width);
    if (squared)
      for (std::int64_t j = 0; j < width; ++j) results[j] = std::sqrt(results[j]);
    write_results(*out_, first, results, width);
  }

 private:
  static double term(double x) { return squared ? x * x : std::abs(x); }
  static Vector<double> plus_term(Vector<double> x, Vector<double> sum) {
    return squared ? multiply_add(x, x, sum) : sum + abs(x);
  }
  // A divisor of the elements of a tile.
  static constexpr std::int64_t piece = 1024;

  // The sums of a line's columns.
  struct Line {
    using V = Vector<double>;
    static constexpr int parts = static_cast<int>(line_columns / V::lanes);
    hn::Vec<V::Tag> sums[parts];

    Line(const float* x, std::int64_t count) {
      for (auto& sum : sums) sum = V(0).raw;
      std::int64_t whole = count / line_columns * line_columns;
      for (std::int64_t i = 0; i < whole; i += line_columns) take(x + i);
      if (whole == count) return;
      float rest[line_columns] = {};
      std::copy_n(x + whole, count - whole, rest);
      take(rest);
    }
    void take(const float* x) {
      for (int p = 0; p < parts; ++p, x += V::lanes)
        sums[p] = plus_term(hn::PromoteTo(V::Tag(), hn::LoadU(hn::Rebind<float, V::Tag>(), x)), V(sums[p])).raw;
    }
    void store(double* to) const {
      for (int p = 0; p < parts; ++p) V(sums[p]).store(to + p * V::lanes);
    }
    // In pairs, as folds add columns.
    double sum() {
      for (int half = parts / 2; half >= 1; half /= 2)
        for (int p = 0; p < half; ++p) sums[p] = (V(sums[p]) + V(sums[p + half])).raw;
      return sum_of_lanes(V(sums[0]));
    }
  };
  static void add(double* to, const T* rows, std::int64_t stride, std::int64_t count, std::int64_t columns) {
    using V = Vector<T>;
    std::int64_t j = 0;
    for (; j + V::lanes <= columns; j += V::lanes) {
      Vector<double> lower(0), upper(0);
      for (std::int64_t i = 0; i < count; ++i) {
        V x = V::load(rows + i * stride + j);
        if constexpr (std::is_same_v<T, double>) {
          lower = plus_term(x, lower);
        } else {
          lower = plus_term(lower_half(x), lower);
          if constexpr (has_halves<V>) upper = plus_term(upper_half(x), upper);
        }
      }
      lower.store(to + j);
      if constexpr (has_halves<V> && !std::is_same_v<T, double>) upper.store(to + j + Vector<double>::lanes);
    }
    if constexpr (std::is_same_v<T, double>) {
      // A partial vector, so that a square is rounded as in a whole one.
      V sum(0);
      std::int64_t rest = columns - j;
      for (std::int64_t i = 0; i < count && rest > 0; ++i) sum = plus_term(V::load(rows + i * stride + j, rest), sum);
      sum.store(to + j, rest);
    } else {
      for (; j < columns; ++j) {
        to[j] = 0;
        for (std::int64_t i = 0; i < count; ++i) to[j] += term(static_cast<double>(rows[i * stride + j]));
      }
    }
  }

  const View* out_;
  SumColumns<double> sum_;
};

// The logarithms and powers have more digits than f32, but not those of f64.
template <bool single>
void powers(double* to, const double* rows, std::int64_t stride, std::int64_t count, std::int64_t columns,
            const double* factor, double power) {
  if (power == 0)
    return map_rows(to, rows, stride, count, columns, [](double x, std::int64_t) { return x != 0 ? 1.0 : 0.0; });
  if constexpr (!single)
    return map_rows(to, rows, stride, count, columns,
                    [=](double x, std::int64_t j) { return std::pow(std::abs(x) * factor[j], power); });
  using V = Vector<double>;
  V exponent(power), tiny(std::numeric_limits<double>::min());
  for (std::int64_t i = 0; i < count; ++i, rows += stride, to += columns)
    for (std::int64_t j = 0; j < columns; j += V::lanes) {
      std::int64_t here = std::min(V::lanes, columns - j);
      V x = abs(V::load(rows + j, here)) * V::load(factor + j, here);
      V y = exp_for_f32(exponent * log_for_f32(V(hn::Max(x.raw, tiny.raw))));
      select(x == V(0), V(0), y).store(to + j, here);  // a small power of `tiny` is large
    }
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

template <class T>
void extreme_magnitude(const ReductionPlan& plan, const View& out, const View& x, bool largest) {
  Reader<T> reader(x);
  if (largest)
    plan.run<ExtremeColumns<T, true, true>>(reader, out);
  else
    plan.run<ExtremeColumns<T, false, true>>(reader, out);
}

// Numbers are scaled before their powers are summed: by the largest magnitude, for negative powers by the smallest. No
// power is then far above 1, and none that matters underflows.
void scaled_norm(const ReductionPlan& plan, const View& out, const View& x, double power) {
  Scratch<double> factor(out);
  if (power != 0) extreme_magnitude<double>(plan, factor.view(), x, power > 0);
  factor.for_each([=](double magnitude) { return power == 0 ? 1 : scale_factor(magnitude, power); });
  auto finish = [](double* sums, const double* f, std::int64_t count, const Mapping<double>& mapping) {
    for (std::int64_t j = 0; j < count && mapping.power != 0; ++j) {
      bool regular = f[j] != 0 && std::isfinite(f[j]);
      double scaled = mapping.power == 2 ? std::sqrt(sums[j]) : std::pow(sums[j], 1 / mapping.power);
      sums[j] = regular ? scaled / f[j] : f[j];
    }
  };
  auto map = power == 2 ? squares : x.dtype == DType::f64 ? powers<false> : powers<true>;
  plan.run<MappedSum<double>>(Reader<double>(x), Mapping<double>{out, factor.data(), map, finish, power});
}

template <class T>
void norm_of(const View& out, const View& x, double power) {
  ReductionPlan plan(out, x);
  if (std::isinf(power)) return extreme_magnitude<T>(plan, out, x, power > 0);
  if (power == 1) return plan.run<MagnitudeSums<T, false>>(Reader<T>(x), out);
  if (power != 2) return scaled_norm(plan, out, x, power);
  plan.run<MagnitudeSums<T, true>>(Reader<T>(x), out);
  // The square of an f32 number is within the range of f64; that of an f64 number may not be.
  if constexpr (std::is_same_v<T, double>) {
    auto is_exact = [](double root) { return root >= 0x1p-450 && root <= 0x1p500; };
    double* roots = out.as<double>();
    if (std::all_of(roots, roots + out.numel, is_exact)) return;
    Scratch<double> scaled(out);
    scaled_norm(plan, scaled.view(), x, power);
    for (std::int64_t i = 0; i < out.numel; ++i)
      if (!is_exact(roots[i])) roots[i] = scaled.data()[i];
  }
}

template <class T>
void magnitudes(void* out, const void* const* inputs, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) static_cast<T*>(out)[i] = std::abs(static_cast<const T*>(inputs[0])[i]);
}

void norm(const View& out, const View& x, double power) {
  if (x.numel == 0) return fill_results(out, 0);
  if (reduces_single_elements(out, x) && power != 0)
    return run_loop(out, {&x}, x.dtype == DType::f64 ? magnitudes<double> : magnitudes<float>);
  return x.dtype == DType::f64 ? norm_of<double>(out, x, power) : norm_of<float>(out, x, power);
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
