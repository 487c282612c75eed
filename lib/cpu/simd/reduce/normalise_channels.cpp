#include "normalise_channels.h"

#include "../../../core/dtype_dispatch.h"
#include "../../../core/threads/parallel.h"
#include "../../cached_space.h"
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
  // A piece of a channel, `count` elements from `start` on; or several of its planes, where these are small.
  struct Part {
    std::int64_t start, count, planes;
  };
  // Calls f(part) for the parts of a channel.
  template <class F>
  void for_each_part(std::int64_t channel, F f) const {
    std::int64_t together = size < small ? piece / std::max<std::int64_t>(size, 1) : 1;
    for (std::int64_t n = 0; n < examples; n += together) {
      std::int64_t first = (n * channels + channel) * size, planes = std::min(together, examples - n);
      if (together > 1)
        f(Part{first, planes * size, planes});
      else
        for_each_piece(size, [&](std::int64_t start, std::int64_t count) { f(Part{first + start, count, 1}); });
    }
  }
  // The elements of a part, gathered or converted into `buffer` unless they can be read in place.
  template <class T>
  const Wide<T>* read(const T* x, const Part& part, Wide<T>* buffer) const {
    const T* from = x + part.start;
    if (part.planes == 1) return read_piece(from, part.count, buffer);
    for (Wide<T>* to = buffer; to < buffer + part.count; from += channels * size)
      for (std::int64_t i = 0; i < size; ++i) *to++ = wide(from[i]);
    return buffer;
  }
  // Stores what `write` writes: see Results.
  template <class T, class Write>
  void put(T* y, const Part& part, Results<T>& results, Write write) const {
    T* to = y + part.start;
    if (part.planes == 1) return results.put(to, part.count, write);
    Wide<T> buffer[piece];
    write(buffer, IntoCache());
    for (const Wide<T>* from = buffer; from < buffer + part.count; to += channels * size)
      for (std::int64_t i = 0; i < size; ++i) to[i] = narrow<T>(*from++);
  }

 private:
  // Planes of fewer elements take less time together.
  static constexpr std::int64_t small = 64;
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
  void apply(const Planes& planes, T* y, const T* x, const Planes::Part& part, W* buffer, Results<T>& results) const {
    const W* here = planes.read(x, part, buffer);
    planes.put(y, part, results, [&](W* out, auto way) {
      auto each = [&](std::int64_t i, auto load, auto store) {
        store(multiply_add(centre_.before(load(here + i)), scale_, shift_), out + i);
      };
      for_each_vector<W>(part.count, each, way);
    });
  }

 private:
  Split<W> centre_;
  V scale_, shift_;
};

// Normalises short channels of one example, one for each lane of a vector.
template <class T>
void normalise_short_channels(T* to, double* mean, double* variance, const T* from, std::int64_t size,
                              const Wide<T>* weight, const Wide<T>* bias, const ChannelForm& form,
                              Results<T>& results) {
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

// Rows of channels with known moments: planes of one element.
template <class T>
void normalise_rows(const View& y, const View& mean, const View& variance, const View& x, const View& weight,
                    const View& bias, const ChannelForm& form) {
  using W = Wide<T>;
  std::int64_t channels = x.dims[1];
  CachedSpace<W> numbers(3 * channels);
  W *high = numbers.get(), *low = high + channels, *scale = low + channels;
  for (std::int64_t c = 0; c < channels; ++c) {
    high[c] = static_cast<W>(mean.as<double>()[c]);
    low[c] = static_cast<W>(mean.as<double>()[c] - static_cast<double>(high[c]));
    scale[c] = static_cast<W>(inverse_deviation(variance.as<double>()[c], form.epsilon) *
                              static_cast<double>(weight.as<W>()[c]));
  }
  parallel_for(x.dims[0], std::max<std::int64_t>(parallel_grain / channels, 1),
               [&](std::int64_t begin, std::int64_t end) {
                 W buffer[piece];
                 Results<T> results(y.numel);
                 for (std::int64_t row = begin; row < end; ++row)
                   for_each_piece(channels, [&](std::int64_t start, std::int64_t count) {
                     const W* here = read_piece(x.as<T>() + row * channels + start, count, buffer);
                     const W *h = high + start, *l = low + start, *s = scale + start, *shift = bias.as<W>() + start;
                     results.put(y.as<T>() + row * channels + start, count, [&](W* out, auto way) {
                       auto each = [&](std::int64_t i, auto load, auto store) {
                         store(multiply_add((load(here + i) - load(h + i)) - load(l + i), load(s + i), load(shift + i)),
                               out + i);
                       };
                       for_each_vector<W>(count, each, way);
                     });
                   });
               });
}

template <class T>
void normalise(const View& y, const View& mean, const View& variance, const View& x, const View& weight,
               const View& bias, const ChannelForm& form) {
  using W = Wide<T>;
  Planes planes(x);
  if (!form.training && planes.size == 1 && x.numel > 0)
    return normalise_rows<T>(y, mean, variance, x, weight, bias, form);
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
          map.apply(planes, to, from, {plane * planes.size + start, count, 1}, buffer, results);
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
                                 from + c * planes.size, planes.size, weight.as<W>() + c, bias.as<W>() + c, form,
                                 results);
        c += ShortRows<W>::count - 1;
        continue;
      }
      if (form.training) {
        Moments moments;
        planes.for_each_part(
            c, [&](const Planes::Part& part) { moments.add(planes.read(from, part, buffer), part.count); });
        mean.as<double>()[c] = moments.mean();
        variance.as<double>()[c] = moments.variance();
      }
      ChannelMap<T> map = map_of(c);
      planes.for_each_part(c, [&](const Planes::Part& part) { map.apply(planes, to, from, part, buffer, results); });
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
        planes.for_each_part(c, [&](const Planes::Part& part) {
          const W *given = planes.read(d.as<T>(), part, left), *here = planes.read(x.as<T>(), part, right);
          add_piece<W>(sums, part.count, [&](Sum<W>(&sum)[2], std::int64_t i, auto load) {
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
      planes.for_each_part(c, [&](const Planes::Part& part) {
        const W* given = planes.read(d.as<T>(), part, left);
        const W* here = form.training ? planes.read(x.as<T>(), part, right) : given;
        planes.put(dx.as<T>(), part, results, [&](W* to, auto way) {
          auto each = [&](std::int64_t i, auto load, auto store) {
            V gradient = load(given + i) - all;
            store(multiply_add(centre.before(load(here + i)), slope, gradient) * scale, to + i);
          };
          for_each_vector<W>(part.count, each, way);
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
