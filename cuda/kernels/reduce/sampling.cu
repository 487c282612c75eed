#include <bit>
#include <cmath>
#include <limits>

#include "../../../lib/kernels/sampling.h"
#include "../../device/number.h"
#include "../../device/random_call.h"
#include "../../device/sort_key.h"
#include "../../device/sorted_rows.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

/// Rows of probabilities (N, C).
struct Probabilities {
  const void* data;
  DType dtype;
  std::int64_t rows, classes;
  explicit Probabilities(const View& p) : data(p.data), dtype(p.dtype), rows(p.dims[0]), classes(p.dims[1]) {}
  REEL_DEVICE double at(std::int64_t i) const { return number_at<double>(dtype, data, i); }
};

// Reports rows from which no class can be drawn.
struct CheckRows {
  struct Found {
    std::int64_t positive, bad;  // the number of classes above 0, and the first with an invalid probability
  };
  Probabilities p;
  std::int64_t wanted, count;
  bool replacement;
  FaultReporter reporter;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    std::int64_t first = group.index() * p.classes;
    auto found = group.template per_thread<Found>();
    group.each([&](int thread) {
      Found own{0, none};
      for (std::int64_t c = thread; c < p.classes; c += group.size()) {
        double probability = p.at(first + c);
        own.positive += probability > 0;
        bool serves = probability >= 0 && probability - probability == 0;
        if (!serves && c < own.bad) own.bad = c;
      }
      found[thread] = own;
    });
    Found row = group.reduce(found, [](const Found& a, const Found& b) {
      return Found{a.positive + b.positive, a.bad < b.bad ? a.bad : b.bad};
    });
    group.each([&](int thread) {
      if (thread != 0) return;
      if (row.bad != none)
        reporter.report(Fault::class_probability, group.index(), 0, p.at(first + row.bad));
      else if (row.positive < wanted)
        reporter.report(replacement ? Fault::few_classes : Fault::few_classes_to_draw_once, group.index(), row.positive,
                        static_cast<double>(count));
    });
  }
};

// Cumulative sums of the classes' weights, scaled to at most 1, so that no sum overflows. One thread adds, in the order
// of the CPU: both draw equal classes.
struct SumClasses {
  static constexpr int tile = 1024;
  Probabilities p;
  double* sums;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    double *weights = group.template shared<double>(tile), *so_far = group.template shared<double>(1);
    std::int64_t first = group.index() * p.classes;
    auto largest = group.template per_thread<double>();
    group.each([&](int thread) {
      double own = 0;
      for (std::int64_t c = thread; c < p.classes; c += group.size()) {
        double probability = p.at(first + c);
        if (probability > own) own = probability;
      }
      largest[thread] = own;
      if (thread == 0) *so_far = 0;
    });
    double most = group.reduce(largest, [](double a, double b) { return a > b ? a : b; });
    for (std::int64_t start = 0; start < p.classes; start += tile) {
      auto count = static_cast<int>(p.classes - start < tile ? p.classes - start : tile);
      group.each([&](int thread) {
        for (int c = thread; c < count; c += group.size()) weights[c] = p.at(first + start + c) / most;
      });
      group.each([&](int thread) {
        if (thread != 0) return;
        double sum = *so_far;
        for (int c = 0; c < count; ++c) weights[c] = sum += weights[c];
        *so_far = sum;
      });
      group.each([&](int thread) {
        for (int c = thread; c < count; c += group.size()) sums[first + start + c] = weights[c];
      });
    }
  }
};

// Draws the class in whose interval of [0, Σ p) a random number is.
struct DrawByNumber {
  const double* sums;
  std::int64_t* out;
  std::int64_t classes, count;
  DeviceCall call;

  REEL_DEVICE void operator()(std::int64_t i) const {
    const double* row = sums + i / count * classes;
    PhiloxWords w = call.words(i);
    double sum = row[classes - 1], number = unit_double(w.word[0], w.word[1]) * sum;
    std::int64_t drawn = first_where(row, [=](double here) { return here > number; });
    // A product that is rounded up to the sum is assigned to the last class above 0.
    std::int64_t last = first_where(row, [=](double here) { return here >= sum; });
    if (last >= classes) last = classes - 1;  // only for an invalid row
    out[i] = drawn < last ? drawn : last;
  }

 private:
  template <class Holds>
  REEL_DEVICE std::int64_t first_where(const double* row, Holds holds) const {
    std::int64_t begin = 0;
    for (std::int64_t left = classes; left > 0;) {
      std::int64_t half = left / 2;
      bool before = !holds(row[begin + half]);
      begin += before ? half + 1 : 0;
      left = before ? left - half - 1 : half;
    }
    return begin;
  }
};

void draw_with_replacement(const View& out, const Probabilities& p, DeviceCall call) {
  Scratch scratch(static_cast<std::size_t>(p.rows * p.classes) * sizeof(double));
  auto* sums = scratch.as<double>();
  for_each_block(p.rows, 128, (SumClasses::tile + 2) * sizeof(double), SumClasses{p, sums});
  for_each(out.numel, DrawByNumber{sums, out.as<std::int64_t>(), p.classes, out.dims[1], call});
}

// Exponential random numbers of rate p, of which the smallest are drawn.
struct ExponentialKeys {
  Probabilities p;
  DeviceCall call;
  int bits = 64;

  REEL_DEVICE std::int64_t start(std::int64_t row) const { return row * p.classes; }
  REEL_DEVICE std::uint64_t key(std::int64_t start, std::int64_t place) const {
    PhiloxWords w = call.words(start + place);
    std::uint64_t random = (static_cast<std::uint64_t>(w.word[0]) << 32 | w.word[1]) >> 12;
    double u = (static_cast<double>(random) + 0.5) * 0x1p-52, probability = p.at(start + place);
    // The logarithm of the quotient, which would overflow for tiny probabilities.
    double number = probability > 0 ? std::log(-std::log(u)) - std::log(probability) : HUGE_VAL;
    return floating_key<DType::f64>(std::bit_cast<std::uint64_t>(number));
  }
};

struct DrawnClasses {
  std::int64_t* out;
  std::int64_t count;
  template <class Sorted>
  REEL_DEVICE void operator()(std::int64_t row, std::int64_t k, const Sorted& sorted) const {
    out[row * count + k] = sorted.place(k);
  }
};

bool multinomial(const View& out, const View& probabilities, bool replacement, RandomCall call, BadRow&) {
  Probabilities p(probabilities);
  std::int64_t count = out.dims[1], wanted = replacement && count > 1 ? 1 : count;
  for_each_block(p.rows, p.classes <= 1024 ? 64 : 256, 0, CheckRows{p, wanted, count, replacement, fault_reporter()});
  if (wanted > p.classes)  // every row is invalid
    fill_with_zeros(out.data, static_cast<std::size_t>(out.numel) * sizeof(std::int64_t));
  else if (replacement)
    draw_with_replacement(out, p, DeviceCall(call));
  else
    sort_rows(ExponentialKeys{p, DeviceCall(call)}, DrawnClasses{out.as<std::int64_t>(), count}, p.rows, p.classes,
              count);
  return true;
}

constexpr SamplingKernels sampling_kernels{.multinomial = multinomial};

}  // namespace

void fill_sampling(KernelTable& table) { table.sampling = &sampling_kernels; }

}  // namespace reel::detail::inline REEL_TARGET
