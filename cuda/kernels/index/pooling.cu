#include <type_traits>

#include "../../../lib/core/dtype_dispatch.h"
#include "../../../lib/kernels/pooling.h"
#include "../../device/element.h"
#include "../../device/launch.h"
#include "../../device/split.h"
#include "../../runtime/cuda_kernels.h"

// Each thread computes one result, also of the gradients: it visits the contributing elements in row-major order.

namespace reel::detail::inline REEL_TARGET {
namespace {

std::int64_t product(const std::int64_t (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; }

// Treats a batch as planes of positions, or of results, with `channels` numbers each: 1 unless channels are last.
class Planes {
 public:
  // `x` has a number for each position or, if `pooled`, each result.
  Planes(const View& x, const Pooling& pooling, bool pooled)
      : p(pooling), channels(pooling.channels_last ? x.dims[x.rank - 1] : 1) {
    const std::int64_t(&sizes)[3] = pooled ? p.results : p.size;
    channel_ = Split(channels, x.numel);
    for (int axis = 0; axis < 3; ++axis) axis_[axis] = Split(sizes[axis], x.numel);
    places_ = product(p.size) * channels;
    results_ = product(p.results) * channels;
  }

  struct Spot {
    std::int64_t plane, channel, at[3];
  };
  REEL_HOST_DEVICE Spot spot(std::int64_t i) const {
    Spot spot;
    auto channel = channel_(i);
    spot.channel = channel.rest;
    std::int64_t rest = channel.whole;
    for (int axis = 3; axis-- > 0;) {
      auto parts = axis_[axis](rest);
      spot.at[axis] = parts.rest;
      rest = parts.whole;
    }
    spot.plane = rest;
    return spot;
  }
  // The offset of the first number of a spot's plane and channel; the next one is `channels` behind it.
  REEL_HOST_DEVICE std::int64_t first_place(const Spot& spot) const { return spot.plane * places_ + spot.channel; }
  REEL_HOST_DEVICE std::int64_t first_result(const Spot& spot) const { return spot.plane * results_ + spot.channel; }

  REEL_HOST_DEVICE std::int64_t place(std::int64_t a, std::int64_t b, std::int64_t c) const {
    return (a * p.size[1] + b) * p.size[2] + c;
  }
  REEL_HOST_DEVICE std::int64_t result(std::int64_t a, std::int64_t b, std::int64_t c) const {
    return (a * p.results[1] + b) * p.results[2] + c;
  }

  Pooling p;
  std::int64_t channels;

 private:
  Split channel_, axis_[3];
  std::int64_t places_, results_;
};

// The results along an axis whose windows may contain an element: [begin, end), if `reaches`.
struct Reach {
  std::int64_t begin, end;

  REEL_HOST_DEVICE Reach(const Pooling& p, int axis, std::int64_t at) {
    std::int64_t size = p.size[axis], results = p.results[axis];
    if (p.adaptive) {
      begin = scaled(at, results, size, 0);
      end = scaled(at + 1, results, size, size - 1);
    } else {
      std::int64_t first = at + p.padding[axis] - (p.window[axis] - 1) * p.dilation[axis], stride = p.stride[axis];
      begin = first > 0 ? (first + stride - 1) / stride : 0;
      end = (at + p.padding[axis]) / stride + 1;
    }
    end = end < results ? end : results;
  }

 private:
  // ⌊(at to + round) / from⌋, without products that overflow.
  REEL_HOST_DEVICE static std::int64_t scaled(std::int64_t at, std::int64_t to, std::int64_t from, std::int64_t round) {
    return at * (to / from) + (at * (to % from) + round) / from;
  }
};

REEL_HOST_DEVICE bool reaches(const Pooling& p, int axis, std::int64_t result, std::int64_t at) {
  return p.adaptive || (at + p.padding[axis] - result * p.stride[axis]) % p.dilation[axis] == 0;
}

// Calls f(o0, o1, o2) for the results whose windows contain a position.
template <class F>
REEL_HOST_DEVICE void for_each_window(const Pooling& p, const std::int64_t (&at)[3], const F& f) {
  Reach outer(p, 0, at[0]), middle(p, 1, at[1]), inner(p, 2, at[2]);
  for (std::int64_t a = outer.begin; a < outer.end; ++a) {
    if (!reaches(p, 0, a, at[0])) continue;
    for (std::int64_t b = middle.begin; b < middle.end; ++b) {
      if (!reaches(p, 1, b, at[1])) continue;
      for (std::int64_t c = inner.begin; c < inner.end; ++c)
        if (reaches(p, 2, c, at[2])) f(a, b, c);
    }
  }
}

template <class T>
struct Max {
  Planes planes;
  T* values;
  std::int64_t* indices;
  const T* x;

  // If there are several NaN, the order of comparisons decides; it is the CPU's: columns one by one if they are
  // adjacent, else row by row.
  REEL_DEVICE void operator()(std::int64_t i) const {
    const Pooling& p = planes.p;
    auto spot = planes.spot(i);
    auto outer = p.span(0, spot.at[0]), middle = p.span(1, spot.at[1]), inner = p.span(2, spot.at[2]);
    const T* from = x + planes.first_place(spot);
    Wide<T> most = 0;
    std::int64_t at = -1, columns = p.channels_last ? 1 : inner.count, rest = p.channels_last ? inner.count : 1;
    for (std::int64_t column = 0; column < columns; ++column)
      for (std::int64_t a = 0; a < outer.count; ++a)
        for (std::int64_t b = 0; b < middle.count; ++b)
          for (std::int64_t c = column; c < column + rest; ++c) {
            std::int64_t place =
                planes.place(outer.begin + a * p.step(0), middle.begin + b * p.step(1), inner.begin + c * p.step(2));
            Wide<T> number = loaded(from[place * planes.channels]);
            if (at >= 0 && !(number > most || number != number || (number == most && place < at))) continue;
            most = number;
            at = place;
          }
    values[i] = stored<T>(most);
    if (indices) indices[i] = at;
  }
};

// Each number comes from its own window, so only windows that contain the position are checked.
template <class T>
struct Scatter {
  Planes planes;
  T* dx;
  const T* d;
  const std::int64_t* indices;

  REEL_DEVICE void operator()(std::int64_t i) const {
    auto spot = planes.spot(i);
    std::int64_t first = planes.first_result(spot), own = planes.place(spot.at[0], spot.at[1], spot.at[2]);
    Wide<T> sum = 0;
    for_each_window(planes.p, spot.at, [&](std::int64_t a, std::int64_t b, std::int64_t c) {
      std::int64_t result = first + planes.result(a, b, c) * planes.channels;
      if (indices[result] == own) sum += loaded(d[result]);
    });
    dx[i] = stored<T>(sum);
  }
};

template <class T>
struct Gather {
  Planes planes;
  T* y;
  const T* x;
  const std::int64_t* indices;

  REEL_DEVICE void operator()(std::int64_t i) const {
    y[i] = x[planes.first_place(planes.spot(i)) + indices[i] * planes.channels];
  }
};

template <class W>
REEL_DEVICE W divisor(const Pooling& p, std::int64_t a, std::int64_t b, std::int64_t c) {
  return static_cast<W>(p.divisor(0, a) * p.divisor(1, b)) * static_cast<W>(p.divisor(2, c));
}

template <class T>
struct Average {
  Planes planes;
  T* y;
  const T* x;

  REEL_DEVICE void operator()(std::int64_t i) const {
    const Pooling& p = planes.p;
    auto spot = planes.spot(i);
    auto outer = p.span(0, spot.at[0]), middle = p.span(1, spot.at[1]), inner = p.span(2, spot.at[2]);
    const T* from = x + planes.first_place(spot);
    Wide<T> sum = 0;
    for (std::int64_t a = 0; a < outer.count; ++a)
      for (std::int64_t b = 0; b < middle.count; ++b)
        for (std::int64_t c = 0; c < inner.count; ++c)
          sum += loaded(from[planes.place(outer.begin + a * p.step(0), middle.begin + b * p.step(1),
                                          inner.begin + c * p.step(2)) *
                             planes.channels]);
    y[i] = stored<T>(sum / divisor<Wide<T>>(p, spot.at[0], spot.at[1], spot.at[2]));
  }
};

template <class T>
struct AverageGradient {
  Planes planes;
  T* dx;
  const T* d;

  REEL_DEVICE void operator()(std::int64_t i) const {
    auto spot = planes.spot(i);
    const T* from = d + planes.first_result(spot);
    Wide<T> sum = 0;
    for_each_window(planes.p, spot.at, [&](std::int64_t a, std::int64_t b, std::int64_t c) {
      sum += loaded(from[planes.result(a, b, c) * planes.channels]) / divisor<Wide<T>>(planes.p, a, b, c);
    });
    dx[i] = stored<T>(sum);
  }
};

void max(const View& values, const View& indices, const View& x, const Pooling& pooling) {
  Planes planes(values, pooling, true);
  auto* places = indices.numel == 0 ? nullptr : indices.as<std::int64_t>();
  with_floating(x.dtype, [&]<class T>(std::type_identity<T>) {
    for_each(values.numel, Max<T>{planes, values.as<T>(), places, x.as<const T>()});
  });
}

void scatter(const View& dx, const View& d, const View& indices, const Pooling& pooling) {
  Planes planes(dx, pooling, false);
  with_floating(d.dtype, [&]<class T>(std::type_identity<T>) {
    for_each(dx.numel, Scatter<T>{planes, dx.as<T>(), d.as<const T>(), indices.as<const std::int64_t>()});
  });
}

void gather(const View& y, const View& x, const View& indices, const Pooling& pooling) {
  Planes planes(y, pooling, true);
  with_floating(x.dtype, [&]<class T>(std::type_identity<T>) {
    for_each(y.numel, Gather<T>{planes, y.as<T>(), x.as<const T>(), indices.as<const std::int64_t>()});
  });
}

void average(const View& y, const View& x, const Pooling& pooling) {
  Planes planes(y, pooling, true);
  with_floating(x.dtype, [&]<class T>(std::type_identity<T>) {
    for_each(y.numel, Average<T>{planes, y.as<T>(), x.as<const T>()});
  });
}

void average_gradient(const View& dx, const View& d, const Pooling& pooling) {
  Planes planes(dx, pooling, false);
  with_floating(d.dtype, [&]<class T>(std::type_identity<T>) {
    for_each(dx.numel, AverageGradient<T>{planes, dx.as<T>(), d.as<const T>()});
  });
}

}  // namespace

void fill_pooling(KernelTable& table) {
  static constexpr PoolingKernels kernels{.max = max,
                                          .scatter = scatter,
                                          .gather = gather,
                                          .average = average,
                                          .average_gradient = average_gradient,
                                          .running_extreme = nullptr};
  table.pooling = &kernels;
}

}  // namespace reel::detail::inline REEL_TARGET
