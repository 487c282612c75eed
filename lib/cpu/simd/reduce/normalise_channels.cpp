#include "normalise_channels.h"

#include "../../../core/dtype_dispatch.h"
#include "../../../core/threads/parallel.h"
#include "../instruction_set.h"
#include "short_rows.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// The planes of a batch: a channel consists of one plane of each example.
struct Planes {
  std::int64_t examples, channels, size;
  explicit Planes(const View& x) : examples(x.dims[0]), channels(x.dims[1]) {
    size = 1;
    for (int axis = 2; axis < x.rank; ++axis) size *= x.dims[axis];
  }
  std::int64_t count() const { return examples * size; }
  // The number of channels that is worth a thread.
  std::int64_t grain() const { return std::max<std::int64_t>(parallel_grain / std::max<std::int64_t>(count(), 1), 1); }
  // Calls f(start, count) for the pieces of a channel.
  template <class F>
  void for_each_piece(std::int64_t channel, F f) const {
    for (std::int64_t n = 0; n < examples; ++n)
      detail::for_each_piece(
          size, [&](std::int64_t start, std::int64_t count) { f((n * channels + channel) * size + start, count); });
  }
};

// A plane of fewer elements takes less time than the root of its channel's variance.
constexpr std::int64_t least_plane = 256;

std::int64_t planes_at_once(const Planes& planes) { return std::max<std::int64_t>(parallel_grain / planes.size, 1); }

// y = (x − mean) w / √(variance + ε) + b of one channel.
template <class T>
class ChannelMap {
  using W = Wide<T>;
  using V = Vector<W>;

 public:
  ChannelMap(double mean, double variance, W weight, W bias, const ChannelForm& form)
      : centre_(mean),
        scale_(V::repeat(static_cast<W>(inverse_deviation(variance, form.epsilon) * static_cast<double>(weight)))),
        shift_(V::repeat(bias)) {}

  // `buffer` and `results` are for a piece.
  void apply(T* to, const T* from, std::int64_t count, W* buffer, Results<T>& results) const {
    const W* here = read_piece(from, count, buffer);
    results.put(to, count, [&](W* out, auto way) {
      auto each = [&](std::int64_t i, auto load, auto store) {
        store(multiply_add(centre_.before(load(here + i)), scale_, shift_), out + i);
      };
      for_each_vector<W>(count, each, way);
    });
  }

 private:
  Split<W> centre_;
  V scale_, shift_;
};

// Normalises short channels of one example from c on, all at once.
template <class T>
void normalise_short_channels(T* to, double* mean, double* variance, const T* from, std::int64_t size, const Wide<T>* weight,
                              const Wide<T>* bias, const ChannelForm& form, Results<T>& results) {
  using W = Wide<T>;
  using V = Vector<W>;
  ShortRows<W> channels(size);
  channels.read(from);
  if (form.training) channels.find_moments(true, mean, variance);
  W factors[ShortRows<W>::count];
  for (std::int64_t l = 0; l < ShortRows<W>::count; ++l)
    factors[l] = static_cast<W>(inverse_deviation(variance[l], form.epsilon) * static_cast<double>(weight[l]));
  V scale = V::load(factors), shift = V::load(bias);
  channels.map(mean, [&](std::int64_t, V away) { return multiply_add(away, scale, shift); });
  channels.write(to, results);
}

template <class T>
void normalise(const View& y, const View& mean, const View& variance, const View& x, const View& weight,
               const View& bias, const ChannelForm& form) {
  using W = Wide<T>;
  Planes planes(x);
  T* to = y.as<T>();
  const T* from = x.as<T>();
  auto map_of = [&](std::int64_t c) {
    return ChannelMap<T>(mean.as<double>()[c], variance.as<double>()[c], weight.as<W>()[c], bias.as<W>()[c], form);
  };
  // With known moments large planes are read in the order of memory.
  if (!form.training && planes.size >= least_plane) {
    parallel_for(planes.examples * planes.channels, planes_at_once(planes), [&](std::int64_t begin, std::int64_t end) {
      W buffer[piece];
      Results<T> results(y.numel);
      for (std::int64_t plane = begin; plane < end; ++plane) {
        ChannelMap<T> map = map_of(plane % planes.channels);
        for_each_piece(planes.size, [&](std::int64_t start, std::int64_t count) {
          std::int64_t at = plane * planes.size + start;
          map.apply(to + at, from + at, count, buffer, results);
        });
      }
    });
    return;
  }
  parallel_for(planes.channels, planes.grain(), [&](std::int64_t begin, std::int64_t end) {
    W buffer[piece];
    Results<T> results(y.numel);
    for (std::int64_t c = begin; c < end; ++c) {
      if (planes.examples == 1 && planes.size <= ShortRows<W>::longest && c + ShortRows<W>::count <= end) {
        normalise_short_channels(to + c * planes.size, mean.as<double>() + c, variance.as<double>() + c,
                                 from + c * planes.size, planes.size, weight.as<W>() + c, bias.as<W>() + c, form, results);
        c += ShortRows<W>::count - 1;
        continue;
      }
      if (form.training) {
        Moments moments;
        planes.for_each_piece(c, [&](std::int64_t start, std::int64_t count) {
          moments.add(read_piece(from + start, count, buffer), count);
        });
        mean.as<double>()[c] = moments.mean();
        variance.as<double>()[c] = moments.variance();
      }
      ChannelMap<T> map = map_of(c);
      planes.for_each_piece(c, [&](std::int64_t start, std::int64_t count) {
        map.apply(to + start, from + start, count, buffer, results);
      });
    }
  });
}

// In training dx = w (d − mean(d) − x̂ mean(d x̂)) / √(variance + ε), otherwise both means are treated as 0.
template <class T>
void gradients(const View& dx, const View& dweight, const View& dbias, const View& d, const View& x, const View& weight,
               const View& mean, const View& variance, const ChannelForm& form) {
  using W = Wide<T>;
  using V = Vector<W>;
  Planes planes(x);
  bool adds = form.training || dweight.numel + dbias.numel > 0;
  parallel_for(planes.channels, planes.grain(), [&](std::int64_t begin, std::int64_t end) {
    W left[piece], right[piece];
    Results<T> results(dx.numel);
    for (std::int64_t c = begin; c < end; ++c) {
      Split<W> centre(mean.as<double>()[c]);
      double inverse = inverse_deviation(variance.as<double>()[c], form.epsilon), sums[2] = {};
      if (adds)
        planes.for_each_piece(c, [&](std::int64_t start, std::int64_t count) {
          const W* given = read_piece(d.as<T>() + start, count, left);
          const W* here = read_piece(x.as<T>() + start, count, right);
          add_piece<W>(sums, count, [&](Sum<W>(&sum)[2], std::int64_t i, auto load) {
            V gradient = load(given + i);
            sum[0].add(gradient);
            sum[1].add_product(gradient, centre.before(load(here + i)));
          });
        });
      if (dweight.numel > 0) dweight.as<W>()[c] = static_cast<W>(sums[1] * inverse);
      if (dbias.numel > 0) dbias.as<W>()[c] = static_cast<W>(sums[0]);
      if (dx.numel == 0) continue;
      auto n = static_cast<double>(planes.count());
      V all = V::repeat(static_cast<W>(form.training ? sums[0] / n : 0));
      V slope = V::repeat(static_cast<W>(form.training ? -sums[1] / n * inverse * inverse : 0));
      V scale = V::repeat(static_cast<W>(inverse * static_cast<double>(weight.as<W>()[c])));
      planes.for_each_piece(c, [&](std::int64_t start, std::int64_t count) {
        const W* given = read_piece(d.as<T>() + start, count, left);
        const W* here = form.training ? read_piece(x.as<T>() + start, count, right) : given;
        results.put(dx.as<T>() + start, count, [&](W* to, auto way) {
          auto each = [&](std::int64_t i, auto load, auto store) {
            V gradient = load(given + i) - all;
            store(multiply_add(centre.before(load(here + i)), slope, gradient) * scale, to + i);
          };
          for_each_vector<W>(count, each, way);
        });
      });
    }
  });
}

}  // namespace

void normalise_channels(const View& y, const View& mean, const View& variance, const View& x, const View& weight,
                        const View& bias, const ChannelForm& form) {
  with_floating(x.dtype,
                [&]<class T>(std::type_identity<T>) { normalise<T>(y, mean, variance, x, weight, bias, form); });
}

void normalise_channels_gradient(const View& dx, const View& dweight, const View& dbias, const View& d, const View& x,
                                 const View& weight, const View& mean, const View& variance, const ChannelForm& form) {
  with_floating(x.dtype, [&]<class T>(std::type_identity<T>) {
    gradients<T>(dx, dweight, dbias, d, x, weight, mean, variance, form);
  });
}

}  // namespace reel::detail::inline REEL_TARGET
