#include <cmath>
#include <memory>

#include "../../../core/dtype_dispatch.h"
#include "../../../core/threads/parallel.h"
#include "../../../kernels/normalise.h"
#include "../instruction_set.h"
#include "../vector/fetch.h"
#include "moments.h"
#include "normalise_channels.h"
#include "short_rows.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

std::int64_t rows_at_once(std::int64_t length) { return std::max<std::int64_t>(parallel_grain / length, 1); }

template <class T>
Moments moments_of_row(const T* x, const RowForm& form) {
  Moments moments;
  Wide<T> buffer[piece];
  for_each_piece(form.length, [&](std::int64_t start, std::int64_t count) {
    const Wide<T>* here = read_piece(x + start, count, buffer);
    if (form.centred)
      moments.add(here, count);
    else
      moments.add_about_zero(here, count);
  });
  return moments;
}

template <class W>
constexpr W zeros[piece] = {};

// The weights or biases of the elements of rows: one for each, or for each channel if the view has it with stride 0.
template <class W>
class RowParameter {
 public:
  explicit RowParameter(const View* view) : data_(view ? view->as<W>() : nullptr) {
    if (view && view->rank == 2 && view->strides[1] == 0) each_ = view->dims[1];
  }
  // Up to a piece of numbers from `place` on, one for each element.
  const W* from(std::int64_t place) const { return data_ ? data_ + place : zeros<W>; }
  bool has_channels() const { return each_ > 1; }
  W of_channel(std::int64_t place) const { return data_ ? data_[place / each_] : W(0); }
  // The number of elements from `place` on that belong to one channel.
  std::int64_t left_in_channel(std::int64_t place) const { return each_ - place % each_; }

 private:
  const W* data_;
  std::int64_t each_ = 1;
};

// Normalises short rows, one for each lane of a vector. `own`: each row has weights and biases of its own.
template <class T>
void normalise_short_rows(T* to, double* mean, double* variance, const T* from, const Wide<T>* weights,
                          const Wide<T>* biases, bool own, const RowForm& form, Results<T>& results) {
  using W = Wide<T>;
  using V = Vector<W>;
  using Rows = ShortRows<W>;
  Rows rows(form.length), own_weights(form.length), own_biases(form.length);
  rows.read(from);
  rows.find_moments(form.centred != 0, mean, variance);
  W inverse[Rows::count];
  for (std::int64_t l = 0; l < Rows::count; ++l)
    inverse[l] = static_cast<W>(inverse_deviation(variance[l], form.epsilon));
  V scale = V::load(inverse);
  if (own) {
    own_weights.read(weights);
    own_biases.read(biases);
  }
  rows.map(mean, [&](std::int64_t i, V away) {
    V weight = own ? own_weights.element(i) : V::repeat(weights[i]);
    return multiply_add(away * scale, weight, own ? own_biases.element(i) : V::repeat(biases[i]));
  });
  rows.write(to, results);
}

template <class T>
void normalise_rows(const View& y, const View& mean, const View& variance, const View& x, const View& weight,
                    const View* bias, const RowForm& form) {
  using W = Wide<T>;
  using V = Vector<W>;
  using Rows = ShortRows<W>;
  std::int64_t n = form.length;
  if (y.numel == 0) return;
  std::int64_t repeat = weight.numel / n;
  RowParameter<W> weights(&weight), biases(bias);
  parallel_for(mean.numel, rows_at_once(n), [&](std::int64_t begin, std::int64_t end) {
    W buffer[piece];
    Results<T> results(y.numel);
    for (std::int64_t row = begin; row < end; ++row) {
      const T* from = x.as<T>() + row * n;
      std::int64_t place = repeat == 1 ? 0 : row % repeat * n;
      if (n <= Rows::longest && row + Rows::count <= end && (repeat == 1 || row % repeat + Rows::count <= repeat)) {
        normalise_short_rows(y.as<T>() + row * n, mean.as<double>() + row, variance.as<double>() + row, from,
                             weights.from(place), biases.from(place), repeat > 1, form, results);
        row += Rows::count - 1;
        continue;
      }
      Moments moments = moments_of_row(from, form);
      mean.as<double>()[row] = moments.mean();
      variance.as<double>()[row] = moments.variance();
      Split<W> centre(moments.mean());
      V scale = V::repeat(static_cast<W>(inverse_deviation(moments.variance(), form.epsilon)));
      for_each_piece(n, [&](std::int64_t start, std::int64_t count) {
        const W* here = read_piece(from + start, count, buffer);
        if (row + 1 < end) fetch(from + n + start, count);
        if (weights.has_channels() || biases.has_channels()) {
          results.put(y.as<T>() + row * n + start, count, [&](W* to, auto way) {
            for (std::int64_t i = 0, run; i < count; i += run) {
              std::int64_t first = place + start + i;
              run = std::min(count - i, std::max(weights.left_in_channel(first), biases.left_in_channel(first)));
              V w = V::repeat(weights.of_channel(first)), b = V::repeat(biases.of_channel(first));
              auto each = [&](std::int64_t j, auto load, auto store) {
                store(multiply_add(centre.before(load(here + i + j)) * scale, w, b), to + i + j);
              };
              // Only aligned addresses can be written past the caches.
              i % V::lanes == 0 ? for_each_vector<W>(run, each, way) : for_each_vector<W>(run, each);
            }
          });
          return;
        }
        const W *weights_here = weights.from(place + start), *biases_here = biases.from(place + start);
        results.put(y.as<T>() + row * n + start, count, [&](W* to, auto way) {
          auto each = [&](std::int64_t i, auto load, auto store) {
            V normalised = centre.before(load(here + i)) * scale;
            store(multiply_add(normalised, load(weights_here + i), load(biases_here + i)), to + i);
          };
          for_each_vector<W>(count, each, way);
        });
      });
    }
  });
}

// The division of rows that repeat into blocks, whose sums are added separately; it is equal for any number of threads.
struct Blocks {
  std::int64_t repeat, count, each, blocks;
  Blocks(std::int64_t rows, std::int64_t repeat, std::int64_t width) : repeat(repeat), count(rows / repeat) {
    std::int64_t few = std::max<std::int64_t>((1 << 14) / width, 1);
    each = std::max<std::int64_t>((count + most - 1) / most, few);
    blocks = (count + each - 1) / each;
  }

 private:
  static constexpr std::int64_t most = 64;
};

// The gradient of one row.
template <class W>
struct RowGradient {
  Split<W> centre;
  W inverse;
  const W* weights;
  std::int64_t length;
  bool centred;

  // dx = (w d − mean(w d) − x̂ mean(w d x̂)) / √(variance + ε)
  template <class T>
  void put(Results<T>& results, T* to, const T* d, const T* x) const {
    using V = Vector<W>;
    W left[piece], right[piece];
    double sums[2] = {};
    for_each_piece(length, [&](std::int64_t start, std::int64_t count) {
      const W *gradient = read_piece(d + start, count, left), *here = read_piece(x + start, count, right);
      add_piece<W>(sums, count, [&](Sum<W>(&sum)[2], std::int64_t i, auto load) {
        V given = load(gradient + i), weight = load(weights + start + i);
        sum[0].add_product(given, weight);
        sum[1].add_product(given * weight, centre.before(load(here + i)));
      });
    });
    auto n = static_cast<double>(length), scale = static_cast<double>(inverse);
    V less = V::repeat(static_cast<W>(centred ? -sums[0] / n : 0)), factor = V::repeat(inverse);
    V slope = V::repeat(static_cast<W>(-sums[1] / n * scale * scale));
    for_each_piece(length, [&](std::int64_t start, std::int64_t count) {
      const W *gradient = read_piece(d + start, count, left), *here = read_piece(x + start, count, right);
      results.put(to + start, count, [&](W* out, auto way) {
        auto each = [&](std::int64_t i, auto load, auto store) {
          V weighted = multiply_add(load(gradient + i), load(weights + start + i), less);
          store(multiply_add(centre.before(load(here + i)), slope, weighted) * factor, out + i);
        };
        for_each_vector<W>(count, each, way);
      });
    });
  }

  // weight_sum += d x̂, bias_sum += d
  template <class T>
  void add(W* weight_sum, W* bias_sum, const T* d, const T* x) const {
    using V = Vector<W>;
    W left[piece], right[piece];
    V factor = V::repeat(inverse);
    for_each_piece(length, [&](std::int64_t start, std::int64_t count) {
      const W *gradient = read_piece(d + start, count, left), *here = read_piece(x + start, count, right);
      for_each_vector<W>(count, [&](std::int64_t i, auto load, auto store) {
        V given = load(gradient + i), normalised = centre.before(load(here + i)) * factor;
        store(multiply_add(given, normalised, load(weight_sum + start + i)), weight_sum + start + i);
        store(load(bias_sum + start + i) + given, bias_sum + start + i);
      });
    });
  }
};

// The gradients of short rows, one for each lane of a vector. `own`: each row has weights of its own.
template <class T>
void put_short_rows(Results<T>& results, T* to, const T* d, const T* x, const double* mean, const double* variance,
                    const Wide<T>* weights, bool own, const RowForm& form) {
  using W = Wide<T>;
  using V = Vector<W>;
  using Rows = ShortRows<W>;
  constexpr std::int64_t count = Rows::count;
  Rows rows(form.length), given(form.length), own_weights(form.length);
  rows.read(x);
  given.read(d);
  if (own) own_weights.read(weights);
  auto weight = [&](std::int64_t i) { return own ? own_weights.element(i) : V::repeat(weights[i]); };
  rows.map(mean, [](std::int64_t, V away) { return away; });
  W sums[count] = {}, products[count], inverse[count], slope[count], less[count];
  if (form.centred)
    given.add([&](V sum, std::int64_t i) { return multiply_add(given.element(i), weight(i), sum); }).store(sums);
  given.add([&](V sum, std::int64_t i) { return multiply_add(given.element(i) * weight(i), rows.element(i), sum); })
      .store(products);
  auto n = static_cast<double>(form.length);
  for (std::int64_t l = 0; l < count; ++l) {
    inverse[l] = static_cast<W>(inverse_deviation(variance[l], form.epsilon));
    less[l] = static_cast<W>(-static_cast<double>(sums[l]) / n);
    auto scale = static_cast<double>(inverse[l]);
    slope[l] = static_cast<W>(-static_cast<double>(products[l]) / n * scale * scale);
  }
  V slopes = V::load(slope), shifts = V::load(less), scales = V::load(inverse);
  for (std::int64_t i = 0; i < form.length; ++i)
    rows.set_element(i,
                     multiply_add(rows.element(i), slopes, multiply_add(given.element(i), weight(i), shifts)) * scales);
  rows.write(to, results);
}

// out = Σ of the blocks' partial sums, with leading dimension `step`.
template <class W>
void add_blocks(const View& out, const W* parts, std::int64_t step, std::int64_t blocks) {
  for (std::int64_t i = 0; i < out.numel; ++i) {
    double sum = 0;
    for (std::int64_t block = 0; block < blocks; ++block) sum += static_cast<double>(parts[block * step + i]);
    out.as<W>()[i] = static_cast<W>(sum);
  }
}

template <class T>
void row_gradients(const View& dx, const View& dweight, const View& dbias, const View& d, const View& x,
                   const View& weight, const View& mean, const View& variance, const RowForm& form) {
  using W = Wide<T>;
  std::int64_t n = form.length, width = weight.numel;
  if (width == 0) return;
  Blocks blocks(mean.numel, width / n, width);
  bool adds = dweight.numel + dbias.numel > 0;
  auto parts = std::make_unique_for_overwrite<W[]>(static_cast<std::size_t>(adds ? 2 * width * blocks.blocks : 0));
  std::int64_t grain = std::max<std::int64_t>(parallel_grain / (width * blocks.each), 1);
  parallel_for(blocks.blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    Results<T> results(dx.numel);
    for (std::int64_t block = begin; block < end; ++block) {
      W* sums = parts.get() + 2 * width * block;
      if (adds) std::fill_n(sums, 2 * width, W(0));
      std::int64_t first = block * blocks.each * blocks.repeat;
      std::int64_t last = std::min(first + blocks.each * blocks.repeat, mean.numel);
      std::int64_t put = first;  // the first row whose gradient is not there yet
      for (std::int64_t row = first; row < last; ++row) {
        std::int64_t place = blocks.repeat == 1 ? 0 : row % blocks.repeat * n;
        RowGradient<W> gradient{Split<W>(mean.as<double>()[row]),
                                static_cast<W>(inverse_deviation(variance.as<double>()[row], form.epsilon)),
                                weight.as<W>() + place, n, form.centred != 0};
        const T *given = d.as<T>() + row * n, *from = x.as<T>() + row * n;
        if (dx.numel > 0 && row == put) {
          // Longer rows fill vectors of their own.
          bool together = n <= 2 * ShortRows<W>::count && row + ShortRows<W>::count <= last &&
                          (blocks.repeat == 1 || row % blocks.repeat + ShortRows<W>::count <= blocks.repeat);
          put += together ? ShortRows<W>::count : 1;
          if (together)
            put_short_rows(results, dx.as<T>() + row * n, given, from, mean.as<double>() + row,
                           variance.as<double>() + row, weight.as<W>() + place, blocks.repeat > 1, form);
          else
            gradient.put(results, dx.as<T>() + row * n, given, from);
        }
        if (adds) gradient.add(sums + place, sums + width + place, given, from);
      }
    }
  });
  add_blocks(dweight, parts.get(), 2 * width, blocks.blocks);
  add_blocks(dbias, parts.get() + width, 2 * width, blocks.blocks);
}

void rows(const View& y, const View& mean, const View& variance, const View& x, const View& weight, const View* bias,
          const RowForm& form) {
  with_floating(x.dtype,
                [&]<class T>(std::type_identity<T>) { normalise_rows<T>(y, mean, variance, x, weight, bias, form); });
}

void rows_gradient(const View& dx, const View& dweight, const View& dbias, const View& d, const View& x,
                   const View& weight, const View& mean, const View& variance, const RowForm& form) {
  with_floating(x.dtype, [&]<class T>(std::type_identity<T>) {
    row_gradients<T>(dx, dweight, dbias, d, x, weight, mean, variance, form);
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
