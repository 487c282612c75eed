#include "normalise_channels.h"

#include <cstdint>
#include <type_traits>

#include "../../../lib/core/dtype_dispatch.h"
#include "../../device/element.h"
#include "../../device/launch.h"
#include "../../device/moments.h"
#include "../../device/offsets.h"

// A channel of few elements is processed by one group. Larger ones are divided into parts, whose sums are added
// separately, in an order that depends on the shape only.

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

// Elements 0 … count() − 1 of a channel: a plane of each example.
struct Planes {
  std::int64_t examples, channels, size;
  Divisor by_size;
  bool small;

  explicit Planes(const View& x) : examples(x.dims[0]), channels(x.dims[1]), size(1) {
    for (int axis = 2; axis < x.rank; ++axis) size *= x.dims[axis];
    small = count() < (std::int64_t{1} << 31) && size > 0;
    if (small) by_size = Divisor(static_cast<std::uint32_t>(size));
  }
  REEL_HOST_DEVICE std::int64_t count() const { return examples * size; }
  REEL_DEVICE std::int64_t place(std::int64_t channel, std::int64_t i) const {
    std::int64_t n = small ? by_size.quotient(static_cast<std::uint32_t>(i)) : i / size;
    return (n * channels + channel) * size + (i - n * size);
  }

  // The number of parts into which a channel is divided.
  std::int64_t parts() const {
    constexpr std::int64_t enough_groups = 1024, few = 4096;
    if (channels == 0 || count() <= few) return 1;
    std::int64_t wanted = (enough_groups + channels - 1) / channels, most = (count() + few - 1) / few;
    return wanted < most ? wanted : most;
  }
  int threads() const { return threads_for_row(count() / parts()); }
};

// A group's part of a channel.
struct Part {
  std::int64_t channel, number, begin, end;
  REEL_DEVICE Part(const Planes& planes, std::int64_t parts, std::int64_t group)
      : channel(group / parts), number(group % parts) {
    std::int64_t each = (planes.count() + parts - 1) / parts;
    begin = number * each < planes.count() ? number * each : planes.count();
    end = begin + each < planes.count() ? begin + each : planes.count();
  }
};

template <class T>
struct Normalise {
  Planes planes;
  std::int64_t parts;
  T* y;
  double *mean, *variance;
  const T* x;
  const Wide<T>*weight, *bias;
  double epsilon;
  bool finds_moments;  // true if there is one part only

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    using W = Wide<T>;
    Part part(planes, parts, group.index());
    std::int64_t c = part.channel;
    double middle, spread;
    if (finds_moments) {
      Moments moments =
          moments_of<W>(group, part.begin, part.end, [&](std::int64_t i) { return loaded(x[planes.place(c, i)]); });
      middle = moments.mean;
      spread = moments.variance();
    } else {
      middle = mean[c];
      spread = variance[c];
    }
    Split<W> centre(middle);
    W scale = static_cast<W>(inverse_deviation(spread, epsilon) * static_cast<double>(weight[c])), shift = bias[c];
    group.each([&](int thread) {
      if (finds_moments && thread == 0) {
        mean[c] = middle;
        variance[c] = spread;
      }
      for (std::int64_t i = part.begin + thread; i < part.end; i += group.size()) {
        std::int64_t place = planes.place(c, i);
        y[place] = stored<T>(centre.before(loaded(x[place])) * scale + shift);
      }
    });
  }
};

template <class T>
struct FindMoments {
  Planes planes;
  std::int64_t parts;
  const T* x;
  Moments* moments;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    Part part(planes, parts, group.index());
    Moments found = moments_of<Wide<T>>(group, part.begin, part.end,
                                        [&](std::int64_t i) { return loaded(x[planes.place(part.channel, i)]); });
    group.each([&](int thread) {
      if (thread == 0) moments[group.index()] = found;
    });
  }
};

struct JoinMoments {
  std::int64_t parts;
  const Moments* moments;
  double *mean, *variance;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    std::int64_t c = group.index();
    auto some = group.template per_thread<Moments>();
    group.each([&](int lane) {
      Moments own{};
      for (std::int64_t part = lane; part < parts; part += group.size())
        own = Moments::joined(own, moments[c * parts + part]);
      some[lane] = own;
    });
    Moments all = group.reduce(some, [](const Moments& a, const Moments& b) { return Moments::joined(a, b); });
    group.each([&](int lane) {
      if (lane != 0) return;
      mean[c] = all.mean;
      variance[c] = all.variance();
    });
  }
};

// In training dx = w (d − mean(d) − x̂ mean(d x̂)) / √(variance + ε), otherwise both means are treated as 0.
template <class T>
struct Backward {
  Planes planes;
  std::int64_t parts;
  T* dx;                    // null if not needed
  Wide<T>*dweight, *dbias;  // null if not needed
  const T *d, *x;
  const Wide<T>* weight;
  const double *mean, *variance;
  double epsilon;
  bool training;
  const Sums<2>* sums;  // of each channel's parts; null if there is one part only

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    using W = Wide<T>;
    Part part(planes, parts, group.index());
    std::int64_t c = part.channel;
    Split<W> centre(mean[c]);
    double inverse = inverse_deviation(variance[c], epsilon);
    Sums<2> all{};
    if (sums)
      all = sums_of<double, 2>(group, 0, parts, [&](std::int64_t k, double(&added)[2]) {
        for (int j = 0; j < 2; ++j) added[j] += sums[c * parts + k].of[j];
      });
    else if (training || dweight || dbias)
      all = own_sums(group, part, centre);
    auto n = static_cast<double>(planes.count());
    W mean_of_d = static_cast<W>(training ? all.of[0] / n : 0);
    W slope = static_cast<W>(training ? -all.of[1] / n * inverse * inverse : 0);
    W scale = static_cast<W>(inverse * static_cast<double>(weight[c]));
    group.each([&](int thread) {
      if (thread == 0 && part.number == 0) {
        if (dweight) dweight[c] = static_cast<W>(all.of[1] * inverse);
        if (dbias) dbias[c] = static_cast<W>(all.of[0]);
      }
      if (!dx) return;
      for (std::int64_t i = part.begin + thread; i < part.end; i += group.size()) {
        std::int64_t place = planes.place(c, i);
        W given = loaded(d[place]) - mean_of_d;
        if (training) given += centre.before(loaded(x[place])) * slope;
        dx[place] = stored<T>(given * scale);
      }
    });
  }

  // Σ d and Σ d (x − mean)
  template <class Group>
  REEL_DEVICE Sums<2> own_sums(Group& group, const Part& part, Split<Wide<T>> centre) const {
    return sums_of<Wide<T>, 2>(group, part.begin, part.end, [&](std::int64_t i, Wide<T>(&sums)[2]) {
      std::int64_t place = planes.place(part.channel, i);
      Wide<T> given = loaded(d[place]);
      sums[0] += given;
      sums[1] += given * centre.before(loaded(x[place]));
    });
  }
};

template <class T>
struct FindGradientSums {
  Backward<T> backward;
  Sums<2>* sums;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    Part part(backward.planes, backward.parts, group.index());
    Sums<2> found = backward.own_sums(group, part, Split<Wide<T>>(backward.mean[part.channel]));
    group.each([&](int thread) {
      if (thread == 0) sums[group.index()] = found;
    });
  }
};

template <class T>
void normalise(const View& y, const View& mean, const View& variance, const View& x, const View& weight,
               const View& bias, const ChannelForm& form) {
  Planes planes(x);
  std::int64_t parts = planes.parts(), groups = planes.channels * parts;
  bool is_whole = parts == 1;
  if (form.training && !is_whole) {
    Scratch scratch(static_cast<std::size_t>(groups) * sizeof(Moments));
    auto* moments = scratch.as<Moments>();
    for_each_group(groups, planes.threads(), 0, FindMoments<T>{planes, parts, x.as<T>(), moments});
    for_each_group(planes.channels, warp_size, 0,
                   JoinMoments{parts, moments, mean.as<double>(), variance.as<double>()});
  }
  for_each_group(groups, planes.threads(), 0,
                 Normalise<T>{planes, parts, y.as<T>(), mean.as<double>(), variance.as<double>(), x.as<T>(),
                              weight.as<Wide<T>>(), bias.as<Wide<T>>(), form.epsilon, form.training && is_whole});
}

template <class W>
W* elements_or_null(const View& view) {
  return view.numel > 0 ? view.as<W>() : nullptr;
}

template <class T>
void gradients(const View& dx, const View& dweight, const View& dbias, const View& d, const View& x, const View& weight,
               const View& mean, const View& variance, const ChannelForm& form) {
  using W = Wide<T>;
  Planes planes(d);
  std::int64_t parts = planes.parts(), groups = planes.channels * parts;
  Backward<T> backward{planes,
                       parts,
                       elements_or_null<T>(dx),
                       elements_or_null<W>(dweight),
                       elements_or_null<W>(dbias),
                       d.as<T>(),
                       x.as<T>(),
                       weight.as<W>(),
                       mean.as<double>(),
                       variance.as<double>(),
                       form.epsilon,
                       form.training != 0,
                       nullptr};
  bool adds = form.training || dweight.numel + dbias.numel > 0;
  if (parts == 1 || !adds) return for_each_group(groups, planes.threads(), 0, backward);
  Scratch sums(static_cast<std::size_t>(groups) * sizeof(Sums<2>));
  for_each_group(groups, planes.threads(), 0, FindGradientSums<T>{backward, sums.as<Sums<2>>()});
  backward.sums = sums.as<Sums<2>>();
  for_each_group(groups, planes.threads(), 0, backward);
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

}  // namespace REEL_TARGET
}  // namespace reel::detail
