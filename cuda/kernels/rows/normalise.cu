#include <cstdint>
#include <optional>
#include <type_traits>

#include "../../../lib/core/dtype_dispatch.h"
#include "../../../lib/kernels/normalise.h"
#include "../../device/element.h"
#include "../../device/launch.h"
#include "../../device/moments.h"
#include "../../device/packed_row.h"
#include "../../device/split.h"
#include "../../runtime/cuda_kernels.h"
#include "../reduce/sum_columns.h"
#include "aligned_view.h"
#include "normalise_channels.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// The packs into which rows are divided: their number is that of elements divided by `lanes`.
struct RowSizes {
  std::int64_t length, packs;
  Split repeat;  // of a row's index: the remainder is that of its weights

  RowSizes(std::int64_t length, std::int64_t rows, std::int64_t repeat, int lanes)
      : length(length), packs(length / lanes), repeat(repeat, rows) {}
  REEL_DEVICE std::int64_t weights(std::int64_t row) const { return repeat(row).rest * length; }
};

// Bound: x is read once and y is written once, if the row is one chunk; weights and biases are read from the second-level
// cache for all rows but the first.
template <class T, int lanes>
struct NormaliseRows {
  T* y;
  double *mean, *variance;
  const T* x;
  const Wide<T>*weight, *bias;  // bias may be null
  RowSizes sizes;
  double epsilon;
  bool centred;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    using W = Wide<T>;
    std::int64_t row = group.index(), weights = sizes.weights(row);
    const T* from = x + row * sizes.length;
    T* to = y + row * sizes.length;
    PackLoop<lanes> loop(0, sizes.packs, group.size());
    auto kept = group.template per_thread<KeptPacks<T, lanes>>();
    auto load = [&](int thread, int k, std::int64_t p) { kept[thread].of[k] = load_pack<lanes>(from, p); };
    Moments moments = centred ? moments_of_packs<T>(group, loop, sizes.length, kept, load)
                              : moments_about_zero<T>(group, loop, sizes.length, kept, load);
    HighLow<W> centre(moments.mean);
    W scale = static_cast<W>(inverse_deviation(moments.variance(), epsilon));
    group.each([&](int thread) {
      if (thread == 0) {
        mean[row] = moments.mean;
        variance[row] = moments.variance();
      }
      loop.run(
          centred ? 2 : 1, thread, [&](int k, std::int64_t p) { load(thread, k, p); },
          [&](int k, std::int64_t p) {
            Pack<W, lanes> factors = load_pack<lanes>(weight + weights, p), added{};
            if (bias) added = load_pack<lanes>(bias + weights, p);
            Pack<T, lanes> result;
#pragma unroll
            for (int lane = 0; lane < lanes; ++lane)
              result.element[lane] =
                  stored<T>(centre.before(loaded(kept[thread].of[k].element[lane])) * scale * factors.element[lane] +
                            added.element[lane]);
            store_pack<lanes>(to, p, result);
          });
    });
  }
};

void rows(const View& y, const View& mean, const View& variance, const View& x, const View& weight, const View* bias,
          const RowForm& form) {
  if (y.numel == 0) return;
  std::int64_t length = form.length;
  with_floating(x.dtype, [&]<class T>(std::type_identity<T>) {
    with_lanes<T>(length, [&]<int lanes>(std::integral_constant<int, lanes>) {
      AlignedResult to(y, lanes);
      AlignedView from(x, lanes), weights(weight, lanes);
      std::optional<AlignedView> biases;
      if (bias) biases.emplace(*bias, lanes);
      for_each_group(mean.numel, threads_for_packs(length / lanes, lanes), 0,
                     NormaliseRows<T, lanes>{to.view().template as<T>(), mean.as<double>(), variance.as<double>(),
                                             from.view().template as<T>(), weights.view().template as<Wide<T>>(),
                                             biases ? biases->view().template as<Wide<T>>() : nullptr,
                                             RowSizes(length, mean.numel, weight.numel / length, lanes), form.epsilon,
                                             form.centred != 0});
      to.finish();
    });
  });
}

// dx = (w d − mean(w d) − x̂ mean(w d x̂)) / √(variance + ε). Bound: d and x are read once and dx is written once, if the
// row is one chunk.
template <class T, int lanes>
struct RowGradient {
  T* dx;
  const T *d, *x;
  const Wide<T>* weight;
  const double *mean, *variance;
  RowSizes sizes;
  double epsilon;
  bool centred;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    using W = Wide<T>;
    std::int64_t row = group.index(), begin = row * sizes.length, weights = sizes.weights(row);
    HighLow<W> centre(mean[row]);
    W inverse = static_cast<W>(inverse_deviation(variance[row], epsilon));
    PackLoop<lanes> loop(0, sizes.packs, group.size());
    auto of_d = group.template per_thread<KeptPacks<T, lanes>>(),
         of_x = group.template per_thread<KeptPacks<T, lanes>>();
    auto load = [&](int thread, int k, std::int64_t p) {
      of_d[thread].of[k] = load_pack<lanes>(d + begin, p);
      of_x[thread].of[k] = load_pack<lanes>(x + begin, p);
    };
    auto factors = [&](std::int64_t p) { return load_pack<lanes>(weight + weights, p); };
    auto away = [&](int thread, int k, int lane) { return centre.before(loaded(of_x[thread].of[k].element[lane])); };
    Sums<2> sums = sums_of_packs<W, 2>(group, 0, loop, load, [&](int thread, int k, std::int64_t p, W(&sums)[2]) {
      Pack<W, lanes> by = factors(p);
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane) {
        W given = loaded(of_d[thread].of[k].element[lane]) * by.element[lane];
        sums[0] += given;
        sums[1] += given * away(thread, k, lane);
      }
    });
    auto n = static_cast<double>(sizes.length), scale = static_cast<double>(inverse);
    W all = static_cast<W>(centred ? sums.of[0] / n : 0), slope = static_cast<W>(-sums.of[1] / n * scale * scale);
    group.each([&](int thread) {
      loop.run(
          1, thread, [&](int k, std::int64_t p) { load(thread, k, p); },
          [&](int k, std::int64_t p) {
            Pack<W, lanes> by = factors(p);
            Pack<T, lanes> result;
#pragma unroll
            for (int lane = 0; lane < lanes; ++lane) {
              W given = loaded(of_d[thread].of[k].element[lane]) * by.element[lane];
              result.element[lane] = stored<T>((away(thread, k, lane) * slope + (given - all)) * inverse);
            }
            store_pack<lanes>(dx + begin, p, result);
          });
    });
  }
};

template <class W>
struct RowScale {
  HighLow<W> centre;
  W inverse;
};

template <class W>
struct FindRowScales {
  RowScale<W>* scales;
  const double *mean, *variance;
  double epsilon;
  REEL_DEVICE void operator()(std::int64_t row) const {
    scales[row] = {HighLow<W>(mean[row]), static_cast<W>(inverse_deviation(variance[row], epsilon))};
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

template <class T>
void row_gradient(const View& dx, const View& d, const View& x, const View& weight, const View& mean,
                  const View& variance, const RowForm& form) {
  std::int64_t length = form.length;
  with_lanes<T>(length, [&]<int lanes>(std::integral_constant<int, lanes>) {
    AlignedResult to(dx, lanes);
    AlignedView of_d(d, lanes), of_x(x, lanes), weights(weight, lanes);
    for_each_group(mean.numel, threads_for_packs(length / lanes, lanes), 0,
                   RowGradient<T, lanes>{
                       to.view().template as<T>(), of_d.view().template as<T>(), of_x.view().template as<T>(),
                       weights.view().template as<Wide<T>>(), mean.as<double>(), variance.as<double>(),
                       RowSizes(length, mean.numel, weight.numel / length, lanes), form.epsilon, form.centred != 0});
    to.finish();
  });
}

void rows_gradient(const View& dx, const View& dweight, const View& dbias, const View& d, const View& x,
                   const View& weight, const View& mean, const View& variance, const RowForm& form) {
  std::int64_t n = form.length, width = weight.numel;
  if (width == 0) return;
  with_floating(x.dtype, [&]<class T>(std::type_identity<T>) {
    using W = Wide<T>;
    std::int64_t repeat = width / n;
    if (dx.numel > 0) row_gradient<T>(dx, d, x, weight, mean, variance, form);
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

}  // namespace reel::detail::inline REEL_TARGET
