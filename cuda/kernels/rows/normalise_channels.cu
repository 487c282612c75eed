#include "normalise_channels.h"

#include <cstdint>
#include <optional>
#include <type_traits>

#include "../../../lib/core/dtype_dispatch.h"
#include "../../device/element.h"
#include "../../device/launch.h"
#include "../../device/moments.h"
#include "../../device/packed_row.h"
#include "../../device/split.h"
#include "aligned_view.h"

// A channel of few elements is processed by one group. Larger ones are divided into parts, whose sums are added
// separately, in an order that depends on the shape only.

namespace reel::detail::inline REEL_TARGET {
namespace {

// The packs 0 … count() − 1 of a channel: a plane of each example, divided into packs.
struct Planes {
  std::int64_t examples, channels, size;  // packs of a plane
  int lanes;
  Split by_size;

  Planes(const View& x, int lanes)
      : examples(x.dims[0]), channels(x.dims[1]), size(plane_of(x) / lanes), lanes(lanes), by_size(size, count()) {}
  static std::int64_t plane_of(const View& x) {
    std::int64_t size = 1;
    for (int axis = 2; axis < x.rank; ++axis) size *= x.dims[axis];
    return size;
  }
  REEL_HOST_DEVICE std::int64_t count() const { return examples * size; }
  REEL_HOST_DEVICE std::int64_t elements() const { return count() * lanes; }
  // The index of a pack among those of all channels.
  REEL_DEVICE std::int64_t place(std::int64_t channel, std::int64_t p) const {
    Split::Parts parts = by_size(p);
    return (parts.whole * channels + channel) * size + parts.rest;
  }
};

// True if planes are divided into packs of 16 bytes.
template <class T>
bool has_packs(const View& x) {
  std::int64_t plane = Planes::plane_of(x);
  return plane % full_lanes<T> == 0 && has_full_packs<T>(plane * x.dims[0]);
}

// The parts into which each channel is divided; a group has one of them.
struct Parts {
  std::int64_t count, packs;  // of each part but the last
  Split of_group;

  explicit Parts(const Planes& planes)
      : count(count_of(planes)),
        packs((planes.count() + count - 1) / count),
        of_group(count, planes.channels * count) {}
  int threads(const Planes& planes) const { return threads_for_packs(packs, planes.lanes); }

 private:
  static std::int64_t count_of(const Planes& planes) {
    constexpr std::int64_t enough_groups = 1024, few = 4096;
    if (planes.channels == 0 || planes.elements() <= few) return 1;
    std::int64_t wanted = (enough_groups + planes.channels - 1) / planes.channels,
                 most = (planes.elements() + few - 1) / few;
    return wanted < most ? wanted : most;
  }
};

struct Part {
  std::int64_t channel, number, begin, end;
  REEL_DEVICE Part(const Planes& planes, const Parts& parts, std::int64_t group) {
    Split::Parts found = parts.of_group(group);
    channel = found.whole;
    number = found.rest;
    begin = number * parts.packs < planes.count() ? number * parts.packs : planes.count();
    end = begin + parts.packs < planes.count() ? begin + parts.packs : planes.count();
  }
};

// A thread's packs of x are in registers from pass to pass. Bound: x is read once, or twice if there are several parts,
// and y is written once.
template <class T, int lanes>
struct Normalise {
  Planes planes;
  Parts parts;
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
    PackLoop<lanes> loop(part.begin, part.end, group.size());
    auto kept = group.template per_thread<KeptPacks<T, lanes>>();
    auto load = [&](int thread, int k, std::int64_t p) {
      kept[thread].of[k] = load_pack<lanes>(x, planes.place(c, p));
    };
    double middle, spread;
    if (finds_moments) {
      Moments moments = moments_of_packs<T>(group, loop, planes.elements(), kept, load);
      middle = moments.mean;
      spread = moments.variance();
    } else {
      middle = mean[c];
      spread = variance[c];
    }
    HighLow<W> centre(middle);
    W scale = static_cast<W>(inverse_deviation(spread, epsilon) * static_cast<double>(weight[c])), shift = bias[c];
    group.each([&](int thread) {
      if (finds_moments && thread == 0) {
        mean[c] = middle;
        variance[c] = spread;
      }
      loop.run(
          finds_moments ? 2 : 0, thread, [&](int k, std::int64_t p) { load(thread, k, p); },
          [&](int k, std::int64_t p) {
            Pack<T, lanes> result;
#pragma unroll
            for (int lane = 0; lane < lanes; ++lane)
              result.element[lane] = stored<T>(centre.before(loaded(kept[thread].of[k].element[lane])) * scale + shift);
            store_pack<lanes>(y, planes.place(c, p), result);
          });
    });
  }
};

template <class T, int lanes>
struct FindMoments {
  Planes planes;
  Parts parts;
  const T* x;
  Moments* moments;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    Part part(planes, parts, group.index());
    PackLoop<lanes> loop(part.begin, part.end, group.size());
    auto kept = group.template per_thread<KeptPacks<T, lanes>>();
    Moments found =
        moments_of_packs<T>(group, loop, (part.end - part.begin) * lanes, kept, [&](int thread, int k, std::int64_t p) {
          kept[thread].of[k] = load_pack<lanes>(x, planes.place(part.channel, p));
        });
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

// In training dx = w (d − mean(d) − x̂ mean(d x̂)) / √(variance + ε), otherwise both means are treated as 0. A thread's
// packs of d and x are in registers from pass to pass. Bound: both are read once, or twice if there are several parts, and
// dx is written once.
template <class T, int lanes>
struct Backward {
  Planes planes;
  Parts parts;
  T* dx;                    // null if not needed
  Wide<T>*dweight, *dbias;  // null if not needed
  const T *d, *x;
  const Wide<T>* weight;
  const double *mean, *variance;
  double epsilon;
  bool training;
  const Sums<2>* sums;  // of each channel's parts; null if there is one part only

  struct Kept {
    KeptPacks<T, lanes> d, x;
  };

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    using W = Wide<T>;
    Part part(planes, parts, group.index());
    std::int64_t c = part.channel;
    HighLow<W> centre(mean[c]);
    double inverse = inverse_deviation(variance[c], epsilon);
    PackLoop<lanes> loop(part.begin, part.end, group.size());
    auto kept = group.template per_thread<Kept>();
    bool adds = !sums && (training || dweight || dbias);
    Sums<2> all{};
    if (sums)
      all = sums_of<double, 2>(group, 0, parts.count, [&](std::int64_t k, double(&added)[2]) {
        for (int j = 0; j < 2; ++j) added[j] += sums[c * parts.count + k].of[j];
      });
    else if (adds)
      all = own_sums(group, loop, c, centre, kept);
    auto n = static_cast<double>(planes.elements());
    W mean_of_d = static_cast<W>(training ? all.of[0] / n : 0);
    W slope = static_cast<W>(training ? -all.of[1] / n * inverse * inverse : 0);
    W scale = static_cast<W>(inverse * static_cast<double>(weight[c]));
    group.each([&](int thread) {
      if (thread == 0 && part.number == 0) {
        if (dweight) dweight[c] = static_cast<W>(all.of[1] * inverse);
        if (dbias) dbias[c] = static_cast<W>(all.of[0]);
      }
      if (!dx) return;
      loop.run(
          adds ? 1 : 0, thread, [&](int k, std::int64_t p) { load(kept[thread], k, planes.place(c, p)); },
          [&](int k, std::int64_t p) {
            Pack<T, lanes> result;
#pragma unroll
            for (int lane = 0; lane < lanes; ++lane) {
              W given = loaded(kept[thread].d.of[k].element[lane]) - mean_of_d;
              if (training) given += centre.before(loaded(kept[thread].x.of[k].element[lane])) * slope;
              result.element[lane] = stored<T>(given * scale);
            }
            store_pack<lanes>(dx, planes.place(c, p), result);
          });
    });
  }

  // Σ d and Σ d (x − mean), by pass 0.
  template <class Group, class KeptOfThreads>
  REEL_DEVICE Sums<2> own_sums(Group& group, const PackLoop<lanes>& loop, std::int64_t channel, HighLow<Wide<T>> centre,
                               KeptOfThreads& kept) const {
    using W = Wide<T>;
    return sums_of_packs<W, 2>(
        group, 0, loop, [&](int thread, int k, std::int64_t p) { load(kept[thread], k, planes.place(channel, p)); },
        [&](int thread, int k, std::int64_t, W(&sums)[2]) {
#pragma unroll
          for (int lane = 0; lane < lanes; ++lane) {
            W given = loaded(kept[thread].d.of[k].element[lane]);
            sums[0] += given;
            sums[1] += given * centre.before(loaded(kept[thread].x.of[k].element[lane]));
          }
        });
  }

 private:
  REEL_DEVICE void load(Kept& own, int k, std::int64_t place) const {
    own.d.of[k] = load_pack<lanes>(d, place);
    own.x.of[k] = load_pack<lanes>(x, place);
  }
};

template <class T, int lanes>
struct FindGradientSums {
  Backward<T, lanes> backward;
  Sums<2>* sums;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    Part part(backward.planes, backward.parts, group.index());
    PackLoop<lanes> loop(part.begin, part.end, group.size());
    auto kept = group.template per_thread<typename Backward<T, lanes>::Kept>();
    Sums<2> found = backward.own_sums(group, loop, part.channel, HighLow<Wide<T>>(backward.mean[part.channel]), kept);
    group.each([&](int thread) {
      if (thread == 0) sums[group.index()] = found;
    });
  }
};

template <class T, int lanes>
void normalise(const View& y, const View& mean, const View& variance, const View& x, const View& weight,
               const View& bias, const ChannelForm& form) {
  AlignedResult to(y, lanes);
  AlignedView from(x, lanes);
  Planes planes(x, lanes);
  Parts parts(planes);
  std::int64_t groups = planes.channels * parts.count;
  int threads = parts.threads(planes);
  bool is_whole = parts.count == 1;
  if (form.training && !is_whole) {
    Scratch scratch(static_cast<std::size_t>(groups) * sizeof(Moments));
    auto* moments = scratch.as<Moments>();
    for_each_group(groups, threads, 0, FindMoments<T, lanes>{planes, parts, from.view().as<T>(), moments});
    for_each_group(planes.channels, warp_size, 0,
                   JoinMoments{parts.count, moments, mean.as<double>(), variance.as<double>()});
  }
  for_each_group(groups, threads, 0,
                 Normalise<T, lanes>{planes, parts, to.view().as<T>(), mean.as<double>(), variance.as<double>(),
                                     from.view().as<T>(), weight.as<Wide<T>>(), bias.as<Wide<T>>(), form.epsilon,
                                     form.training && is_whole});
  to.finish();
}

template <class W>
W* elements_or_null(const View& view) {
  return view.numel > 0 ? view.as<W>() : nullptr;
}

template <class T, int lanes>
void gradients(const View& dx, const View& dweight, const View& dbias, const View& d, const View& x, const View& weight,
               const View& mean, const View& variance, const ChannelForm& form) {
  using W = Wide<T>;
  AlignedResult to(dx, lanes);
  AlignedView of_d(d, lanes), of_x(x, lanes);
  Planes planes(d, lanes);
  Parts parts(planes);
  std::int64_t groups = planes.channels * parts.count;
  int threads = parts.threads(planes);
  Backward<T, lanes> backward{planes,
                              parts,
                              elements_or_null<T>(to.view()),
                              elements_or_null<W>(dweight),
                              elements_or_null<W>(dbias),
                              of_d.view().as<T>(),
                              of_x.view().as<T>(),
                              weight.as<W>(),
                              mean.as<double>(),
                              variance.as<double>(),
                              form.epsilon,
                              form.training != 0,
                              nullptr};
  std::optional<Scratch> sums;
  if (parts.count > 1 && (form.training || dweight.numel + dbias.numel > 0)) {
    sums.emplace(static_cast<std::size_t>(groups) * sizeof(Sums<2>));
    for_each_group(groups, threads, 0, FindGradientSums<T, lanes>{backward, sums->as<Sums<2>>()});
    backward.sums = sums->as<Sums<2>>();
  }
  for_each_group(groups, threads, 0, backward);
  to.finish();
}

}  // namespace

void normalise_channels(const View& y, const View& mean, const View& variance, const View& x, const View& weight,
                        const View& bias, const ChannelForm& form) {
  with_floating(x.dtype, [&]<class T>(std::type_identity<T>) {
    if (has_packs<T>(x)) return normalise<T, full_lanes<T>>(y, mean, variance, x, weight, bias, form);
    normalise<T, 1>(y, mean, variance, x, weight, bias, form);
  });
}

void normalise_channels_gradient(const View& dx, const View& dweight, const View& dbias, const View& d, const View& x,
                                 const View& weight, const View& mean, const View& variance, const ChannelForm& form) {
  with_floating(x.dtype, [&]<class T>(std::type_identity<T>) {
    if (has_packs<T>(d)) return gradients<T, full_lanes<T>>(dx, dweight, dbias, d, x, weight, mean, variance, form);
    gradients<T, 1>(dx, dweight, dbias, d, x, weight, mean, variance, form);
  });
}

}  // namespace reel::detail::inline REEL_TARGET
