#include <cmath>
#include <limits>
#include <type_traits>

#include "../../../core/dtype_dispatch.h"
#include "../elementwise/elementwise.h"
#include "../instruction_set.h"
#include "axis_strips.h"
#include "row_exponentials.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// The largest element of each column. A column without one that takes part has 0, so that no difference is NaN.
template <class S, class T>
HWY_INLINE auto shift_of(const S& strip, StripData<T> x, bool masked) {
  auto shift = strip.largest(x);
  if (masked)
    for (auto& v : shift.of) v = select(v == decltype(v + v)(-infinity<double>), decltype(v + v)(0), v);
  return shift;
}

// A sum to divide by. Without terms the results are 0, or their logarithms −∞.
template <class Values>
HWY_INLINE Values divisor_of(Values sum, bool masked) {
  if (masked)
    for (auto& v : sum.of) v = select(v == decltype(v + v)(0), decltype(v + v)(1), v);
  return sum;
}

// y = e^(x − m) / Σ e^(x − m), where m is the largest element.
struct Softmax {
  template <class S, class W, class T>
  static HWY_INLINE void run(const S& strip, StripData<W> y, StripData<T> x, bool masked) {
    auto shift = shift_of(strip, x, masked);
    auto sum = strip.sum([=](auto at) {
      auto e = exp_below(at.padded(at.load(x), shift[at.slot]) - shift[at.slot]);
      at.store(y, e);
      return e;
    });
    auto scale = strip.map(divisor_of(sum, masked), [](auto s) { return decltype(s)(1) / s; });
    strip.each([=](auto at) { at.store(y, at.load(y) * scale[at.slot]); });
  }
};

// y = x − m − log Σ e^(x − m)
struct LogSoftmax {
  template <class S, class W, class T>
  static HWY_INLINE void run(const S& strip, StripData<W> y, StripData<T> x, bool masked) {
    auto shift = shift_of(strip, x, masked);
    auto sum = strip.sum([=](auto at) { return exp_below(at.padded(at.load(x), shift[at.slot]) - shift[at.slot]); });
    auto rest = strip.map(divisor_of(sum, masked), [](auto s) {
      using std::log;
      return log(s);
    });
    strip.each([=](auto at) { at.store(y, at.load(x) - shift[at.slot] - rest[at.slot]); });
  }
};

template <class Op>
struct Plain {
  template <class T>
  static void run(const View& out, const View& x) {
    for_each_strip<T>(out, {&x}, [](const auto& strip, auto y, const auto& from, std::int64_t) {
      Op::run(strip, y, from[0].template as<T>(), false);
    });
  }
};

// Masked elements are treated as −∞.
template <class Op>
struct Masked {
  template <class T>
  static void run(const View& out, const View& x, const View& mask) {
    for_each_strip<T>(out, {&x, &mask}, [](const auto& strip, auto y, const auto& from, std::int64_t) {
      auto given = from[0].template as<T>();
      auto takes_part = from[1].template as<bool>();
      strip.each([=](auto at) {
        const T* element = at.in(given);
        const bool* flag = at.in(takes_part);
        auto* seen = at.in(y);
        for (std::int64_t i = 0; i < at.count(); ++i)
          seen[i] = flag[i] ? static_cast<Wide<T>>(element[i]) : -infinity<Wide<T>>;
      });
      Op::run(strip, y, y, true);
    });
  }
};

template <class Op>
struct FromGradient {
  template <class T>
  static void run(const View& out, const View& d, const View& y) {
    for_each_strip<T>(out, {&d, &y}, [](const auto& strip, auto to, const auto& from, std::int64_t) {
      Op::run(strip, to, from[0].template as<T>(), from[1].template as<T>());
    });
  }
};

// dx = y (d − Σ d y)
struct SoftmaxGradient {
  template <class S, class W, class T>
  static HWY_INLINE void run(const S& strip, StripData<W> to, StripData<T> d, StripData<T> y) {
    auto sum = strip.sum([=](auto at) { return at.load(d) * at.load(y); });
    strip.each([=](auto at) { at.store(to, at.load(y) * (at.load(d) - sum[at.slot])); });
  }
};

// dx = d − e^y Σ d
struct LogSoftmaxGradient {
  template <class S, class W, class T>
  static HWY_INLINE void run(const S& strip, StripData<W> to, StripData<T> d, StripData<T> y) {
    auto sum = strip.sum([=](auto at) { return at.load(d); });
    strip.each([=](auto at) { at.store(to, at.load(d) - exp(at.load(y)) * sum[at.slot]); });
  }
};

template <class Op, class... Views>
void floating(const View& out, const Views&... views) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) { Op::template run<T>(out, views...); });
}

}  // namespace

void fill_masked_softmax(ActivationKernels& table) {
  table.masked_softmax = floating<Masked<Softmax>, View, View>;
  table.masked_log_softmax = floating<Masked<LogSoftmax>, View, View>;
}

void fill_softmax(KernelTable& table) {
  table.softmax = floating<Plain<Softmax>, View>;
  table.log_softmax = floating<Plain<LogSoftmax>, View>;
  table.softmax_gradient = floating<FromGradient<SoftmaxGradient>, View, View>;
  table.log_softmax_gradient = floating<FromGradient<LogSoftmaxGradient>, View, View>;
}

}  // namespace reel::detail::inline REEL_TARGET
