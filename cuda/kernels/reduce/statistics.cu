#include <cmath>

#include "../../runtime/cuda_kernels.h"
#include "extreme.h"
#include "reduction.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

REEL_HOST_DEVICE bool is_finite(double x) { return x - x == 0; }

// Count, mean and Σ (x − mean)², in f64. A run's are computed about its first element: the run is short, so that
// even an outlier there costs only two digits.
struct Variance {
  struct State {
    double count, mean, squares;
  };
  struct Run {
    double count, shift, sum, squares;
  };
  using Value = double;
  double divisor;
  bool root;

  REEL_DEVICE Variance of(std::int64_t) const { return *this; }
  REEL_DEVICE Run open(Value value, std::int64_t) const { return {1, value, value - value, value - value}; }
  REEL_DEVICE void take(Run& run, Value value, std::int64_t) const {
    double away = value - run.shift;
    run.count += 1;
    run.sum += away;
    run.squares += away * away;
  }
  REEL_DEVICE State close(const Run& run) const {
    // Squares beyond the range of f64 give infinity, and not the difference of two infinities.
    bool beyond = !is_finite(run.squares) && is_finite(run.sum);
    double about_mean = beyond ? run.squares : run.squares - run.sum * (run.sum / run.count);
    return {run.count, run.shift + run.sum / run.count, about_mean < 0 ? 0 : about_mean};
  }
  REEL_DEVICE State nothing() const { return {0, 0, 0}; }
  // Source: Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing sample variances (1979).
  REEL_DEVICE State join(const State& a, const State& b) const {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    double count = a.count + b.count, apart = b.mean - a.mean, share = b.count / count;
    return {count, a.mean + apart * share, a.squares + b.squares + apart * apart * (a.count * share)};
  }
  REEL_DEVICE void finish(const State& state, std::int64_t result, const Output& out) const {
    double variance = state.squares / divisor;
    out.put(result, root ? std::sqrt(variance) : variance);
  }
};

void variance(const View& out, const View& x, double divisor, bool root) {
  if (x.numel == 0) return fill_results(out, std::numeric_limits<double>::quiet_NaN());
  reduce_floating(Variance{divisor, root}, x, ReducedAxes(out, x), {out.data, out.dtype});
}

// The largest or smallest |x|.
template <bool largest>
struct ExtremeMagnitude : Extreme<double, largest> {
  REEL_DEVICE ExtremeMagnitude of(std::int64_t) const { return *this; }
  REEL_DEVICE double open(double value, std::int64_t) const { return std::abs(value); }
  REEL_DEVICE void take(double& run, double value, std::int64_t) const { run = this->join(run, std::abs(value)); }
};

// The factor that scales a number to 1, for squares to between 1 and 2 without rounding. 0, infinity and NaN are
// returned unchanged.
REEL_DEVICE double scale_factor(double x, double power) {
  if (x == 0 || !is_finite(x)) return x;
  if (power == 2) {
    int exponent = std::ilogb(x);
    return std::ldexp(1.0, exponent < -1022 ? 1022 : exponent > 1022 ? -1022 : -exponent);
  }
  double factor = 1 / x, most = std::numeric_limits<double>::max();
  return factor < most ? factor : most;
}

// Σ |f x|^p, where f is the scale factor for the magnitude of each result, if there is one.
struct Powers {
  using Value = double;
  using Run = double;
  using State = double;
  double power;
  const double* magnitudes;
  double factor = 1;

  REEL_DEVICE Powers of(std::int64_t result) const {
    return {power, magnitudes, magnitudes ? scale_factor(magnitudes[result], power) : 1};
  }
  REEL_DEVICE Run open(Value value, std::int64_t) const { return term(value); }
  REEL_DEVICE void take(Run& run, Value value, std::int64_t) const { run += term(value); }
  REEL_DEVICE State close(Run run) const { return run; }
  REEL_DEVICE State nothing() const { return 0; }
  REEL_DEVICE State join(State a, State b) const { return a + b; }
  REEL_DEVICE void finish(State sum, std::int64_t result, const Output& out) const {
    if (power == 0 || power == 1) return out.put(result, sum);
    double scaled = power == 2 ? std::sqrt(sum) : std::pow(sum, 1 / power);
    out.put(result, factor != 0 && is_finite(factor) ? scaled / factor : factor);
  }

 private:
  REEL_DEVICE double term(double x) const {
    double scaled = x * factor;
    if (power == 2) return scaled * scaled;
    if (power == 1) return std::abs(x);
    if (power == 0) return x != 0 ? 1 : 0;
    return std::pow(std::abs(scaled), power);
  }
};

void extreme_magnitude(double power, const View& x, const ReducedAxes& axes, const Output& out) {
  if (power > 0)
    reduce_floating(ExtremeMagnitude<true>(), x, axes, out);
  else
    reduce_floating(ExtremeMagnitude<false>(), x, axes, out);
}

// Numbers are scaled before their powers are summed: by the largest magnitude, for negative powers by the smallest. No
// power is then far above 1, and none that matters underflows.
void norm(const View& out, const View& x, double power) {
  if (x.numel == 0) return fill_results(out, 0);
  ReducedAxes axes(out, x);
  Output to{out.data, out.dtype};
  if (std::isinf(power)) return extreme_magnitude(power, x, axes, to);
  // The square of an f32 number is within the range of f64.
  if (power == 0 || power == 1 || (power == 2 && x.dtype != DType::f64))
    return reduce_floating(Powers{power, nullptr}, x, axes, to);
  Scratch scratch(static_cast<std::size_t>(out.numel) * sizeof(double));
  auto* magnitudes = scratch.as<double>();
  extreme_magnitude(power, x, axes, {magnitudes, DType::f64});
  reduce_floating(Powers{power, magnitudes}, x, axes, to);
}

// log Σ e^x from the largest x so far, clamped to the largest finite number, and Σ e^(x − largest).
template <class A>
struct LogSumExp {
  struct State {
    A largest, sum;
  };
  using Value = A;
  using Run = State;
  static constexpr A most = std::numeric_limits<A>::max();

  REEL_DEVICE LogSumExp of(std::int64_t) const { return *this; }
  REEL_DEVICE Run open(Value value, std::int64_t) const {
    Run run = nothing();
    take(run, value, 0);
    return run;
  }
  REEL_DEVICE void take(Run& run, Value value, std::int64_t) const {
    A finite = value > most ? most : value;
    if (finite > run.largest) {
      run.sum *= std::exp(run.largest - finite);
      run.largest = finite;
    }
    run.sum += std::exp(value - run.largest);
  }
  REEL_DEVICE State close(const Run& run) const { return run; }
  REEL_DEVICE State nothing() const { return {-most, 0}; }
  REEL_DEVICE State join(const State& a, const State& b) const {
    A largest = a.largest > b.largest ? a.largest : b.largest;
    return {largest, a.sum * std::exp(a.largest - largest) + b.sum * std::exp(b.largest - largest)};
  }
  REEL_DEVICE void finish(const State& state, std::int64_t result, const Output& out) const {
    out.put(result, static_cast<A>(static_cast<double>(state.largest) + std::log(static_cast<double>(state.sum))));
  }
};

void logsumexp(const View& out, const View& x) {
  if (x.numel == 0) return fill_results(out, -std::numeric_limits<double>::infinity());
  ReducedAxes axes(out, x);
  Output to{out.data, out.dtype};
  if (x.dtype == DType::f64) return reduce(LogSumExp<double>(), Elements<double>(axes, x), to);
  reduce_floating(LogSumExp<float>(), x, axes, to);
}

}  // namespace

void fill_statistics(KernelTable& table) {
  table.variance = variance;
  table.norm = norm;
  table.reduce[static_cast<int>(Reduction::logsumexp)] = logsumexp;
}

}  // namespace reel::detail::inline REEL_TARGET
