#include <cstdint>
#include <type_traits>

#include "../../../lib/core/dtype_dispatch.h"
#include "../../../lib/kernels/normalise.h"
#include "../../device/element.h"
#include "../../device/launch.h"
#include "../../device/moments.h"
#include "../../runtime/cuda_kernels.h"
#include "../reduce/sum_columns.h"
#include "normalise_channels.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

template <class T>
struct NormaliseRows {
  T* y;
  double *mean, *variance;
  const T* x;
  const Wide<T>*weight, *bias;  // bias may be null
  std::int64_t length, repeat;
  double epsilon;
  bool centred;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    using W = Wide<T>;
    std::int64_t row = group.index();
    const T* from = x + row * length;
    T* to = y + row * length;
    auto given = [&](std::int64_t i) { return loaded(from[i]); };
    Moments moments = centred ? moments_of<W>(group, 0, length, given) : moments_about_zero<W>(group, 0, length, given);
    Split<W> centre(moments.mean);
    W scale = static_cast<W>(inverse_deviation(moments.variance(), epsilon));
    const W* weights = weight + row % repeat * length;
    const W* biases = bias ? bias + row % repeat * length : nullptr;
    group.each([&](int thread) {
      if (thread == 0) {
        mean[row] = moments.mean;
        variance[row] = moments.variance();
      }
      for (std::int64_t i = thread; i < length; i += group.size())
        to[i] = stored<T>(centre.before(given(i)) * scale * weights[i] + (biases ? biases[i] : W(0)));
    });
  }
};

void rows(const View& y, const View& mean, const View& variance, const View& x, const View& weight, const View* bias,
          const RowForm& form) {
  if (y.numel == 0) return;
  with_floating(x.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_group(mean.numel, threads_for_row(form.length), 0,
                   NormaliseRows<T>{y.as<T>(), mean.as<double>(), variance.as<double>(), x.as<T>(),
                                    weight.as<Wide<T>>(), bias ? bias->as<Wide<T>>() : nullptr, form.length,
                                    weight.numel / form.length, form.epsilon, form.centred != 0});
  });
}

// dx = (w d − mean(w d) − x̂ mean(w d x̂)) / √(variance + ε)
template <class T>
struct RowGradient {
  T* dx;
  const T *d, *x;
  const Wide<T>* weight;
  const double *mean, *variance;
  std::int64_t length, repeat;
  double epsilon;
  bool centred;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    using W = Wide<T>;
    std::int64_t row = group.index(), begin = row * length;
    const W* weights = weight + row % repeat * length;
    Split<W> centre(mean[row]);
    W inverse = static_cast<W>(inverse_deviation(variance[row], epsilon));
    auto weighted = [&](std::int64_t i) { return loaded(d[begin + i]) * weights[i]; };
    auto away = [&](std::int64_t i) { return centre.before(loaded(x[begin + i])); };
    Sums<2> sums = sums_of<W, 2>(group, 0, length, [&](std::int64_t i, W(&sums)[2]) {
      W given = weighted(i);
      sums[0] += given;
      sums[1] += given * away(i);
    });
    auto n = static_cast<double>(length), scale = static_cast<double>(inverse);
    W all = static_cast<W>(centred ? sums.of[0] / n : 0), slope = static_cast<W>(-sums.of[1] / n * scale * scale);
    group.each([&](int thread) {
      for (std::int64_t i = thread; i < length; i += group.size())
        dx[begin + i] = stored<T>((away(i) * slope + (weighted(i) - all)) * inverse);
    });
  }
};

template <class W>
struct RowScale {
  Split<W> centre;
  W inverse;
};

template <class W>
struct FindRowScales {
  RowScale<W>* scales;
  const double *mean, *variance;
  double epsilon;
  REEL_DEVICE void operator()(std::int64_t row) const {
    scales[row] = {Split<W>(mean[row]), static_cast<W>(inverse_deviation(variance[row], epsilon))};
  }
};

// The terms d x̂ and d, for rows that span all weights.
template <class T>
struct ParameterTerms {
  const T *d, *x;
  const RowScale<Wide<T>>* scales;
  std::int64_t width, length, repeat;

  REEL_DEVICE void operator()(std::int64_t row, std::int64_t column, Wide<T> (&values)[2]) const {
    const RowScale<Wide<T>> scale = scales[repeat == 1 ? row : row * repeat + column / length];
    Wide<T> given = loaded(d[row * width + column]);
    values[0] = given * (scale.centre.before(loaded(x[row * width + column])) * scale.inverse);
    values[1] = given;
  }
};

// The gradients of weight and bias; those that are not needed are null.
template <class W>
struct ParameterGradients {
  W *dweight, *dbias;
  REEL_DEVICE void operator()(std::int64_t, int k, std::int64_t column, double sum) const {
    W* to = k == 0 ? dweight : dbias;
    if (to) to[column] = static_cast<W>(sum);
  }
};

void rows_gradient(const View& dx, const View& dweight, const View& dbias, const View& d, const View& x,
                   const View& weight, const View& mean, const View& variance, const RowForm& form) {
  std::int64_t n = form.length, width = weight.numel;
  if (width == 0) return;
  with_floating(x.dtype, [&]<class T>(std::type_identity<T>) {
    using W = Wide<T>;
    std::int64_t repeat = width / n;
    if (dx.numel > 0)
      for_each_group(mean.numel, threads_for_row(n), 0,
                     RowGradient<T>{dx.as<T>(), d.as<T>(), x.as<T>(), weight.as<W>(), mean.as<double>(),
                                    variance.as<double>(), n, repeat, form.epsilon, form.centred != 0});
    if (dweight.numel + dbias.numel == 0) return;
    Scratch scales(static_cast<std::size_t>(mean.numel) * sizeof(RowScale<W>) + 1);
    for_each(mean.numel,
             FindRowScales<W>{scales.as<RowScale<W>>(), mean.as<double>(), variance.as<double>(), form.epsilon});
    sum_columns<W, 2>(
        ParameterTerms<T>{d.as<T>(), x.as<T>(), scales.as<RowScale<W>>(), width, n, repeat},
        ParameterGradients<W>{dweight.numel > 0 ? dweight.as<W>() : nullptr, dbias.numel > 0 ? dbias.as<W>() : nullptr},
        mean.numel / repeat, width);
  });
}

}  // namespace

void fill_normalise(KernelTable& table) {
  static constexpr NormaliseKernels kernels{.rows = rows,
                                            .rows_gradient = rows_gradient,
                                            .channels = normalise_channels,
                                            .channels_gradient = normalise_channels_gradient};
  table.normalise = &kernels;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
