#include <algorithm>
#include <cstdint>
#include <vector>

#include "../../../core/dtype_dispatch.h"
#include "../../../core/threads/parallel.h"
#include "../../../kernels/pooling.h"
#include "../instruction_set.h"
#include "../reduce/moments.h"
#include "../reduce/scan_extreme.h"
#include "../reduce/short_rows.h"
#include "../vector/wide.h"
#include "pooling_windows.h"

// Contiguous rows of elements are combined first: in (N, C, d…) rows along the last axis, whose columns are then
// combined one by one; in (N, d…, C) the channels of one position.

namespace reel::detail::inline REEL_TARGET {
namespace {

// A batch as planes, each of size[0] · size[1] · size[2] positions with `channels` numbers each: one, unless channels
// are last.
struct Planes {
  const Pooling& p;
  std::int64_t channels, places, results, count;
  Planes(const View& x, const Pooling& pooling)
      : p(pooling),
        channels(pooling.channels_last ? x.dims[x.rank - 1] : 1),
        places(product(pooling.size)),
        results(product(pooling.results)),
        count(channels == 0 ? 0 : x.numel / (places * channels)) {}
  // The number of rows of results along the last axis.
  std::int64_t rows() const { return count * p.results[0] * p.results[1]; }
  std::int64_t taps() const {
    std::int64_t taps = 1;
    for (int axis = 0; axis < 3; ++axis)
      taps *= p.adaptive ? p.size[axis] / p.results[axis] + 1 : std::min(p.window[axis], p.size[axis]);
    return taps;
  }
  // Whether planes are short rows, whose windows are combined in lanes of their own.
  template <class W>
  bool are_short_rows() const {
    return !p.channels_last && places == p.size[2] && results == p.results[2] &&
           std::max(places, results) <= ShortRows<W>::longest;
  }
  std::int64_t grain(std::int64_t each) const {
    return std::max<std::int64_t>(parallel_grain / std::max<std::int64_t>(each, 1), 1);
  }
  // Calls f(plane, o0, o1) for rows of results.
  template <class F>
  void for_each_row(std::int64_t begin, std::int64_t end, F f) const {
    if (begin == end) return;
    std::int64_t plane = begin / (p.results[0] * p.results[1]), o0 = begin / p.results[1] % p.results[0];
    for (std::int64_t row = begin, o1 = begin % p.results[1]; row < end; ++row) {
      f(plane, o0, o1);
      if (++o1 < p.results[1]) continue;
      o1 = 0;
      if (++o0 < p.results[0]) continue;
      o0 = 0;
      ++plane;
    }
  }
  // Calls f(offset) for the starts of the rows of elements that are combined in a row of results.
  template <class F>
  void for_each_source(std::int64_t o0, std::int64_t o1, F f) const {
    Pooling::Span outer = p.span(0, o0), inner = p.span(1, o1);
    for (std::int64_t i = 0; i < outer.count; ++i)
      for (std::int64_t j = 0; j < inner.count; ++j)
        f(((outer.begin + i * p.step(0)) * p.size[1] + inner.begin + j * p.step(1)) * p.size[2]);
  }

 private:
  static std::int64_t product(const std::int64_t (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; }
};

std::vector<Pooling::Span> spans_of(const Pooling& p) {
  std::vector<Pooling::Span> spans(static_cast<std::size_t>(p.results[2]));
  for (std::size_t o = 0; o < spans.size(); ++o) spans[o] = p.span(2, static_cast<std::int64_t>(o));
  return spans;
}

// The divisors of averages along the last axis.
template <class W>
std::vector<W> divisors_of(const Pooling& p) {
  std::vector<W> divisors(static_cast<std::size_t>(p.results[2]));
  for (std::size_t o = 0; o < divisors.size(); ++o)
    divisors[o] = static_cast<W>(p.divisor(2, static_cast<std::int64_t>(o)));
  return divisors;
}

// The rows of one call of max_pool that are adjacent: with their padding, unless that is much or windows are sparse. A long
// row is divided into segments of results, whose elements stay in the first-level cache.
struct PaddedRows {
  std::int64_t reach, segment, width, together;
  bool is_padded;
  explicit PaddedRows(const Pooling& p) : reach((p.window[2] - 1) * p.dilation[2]), segment(p.results[2]) {
    is_padded = !p.adaptive && p.padding[2] <= p.size[2] && reach < 3 * p.size[2] && p.stride[2] / 16 <= p.window[2];
    std::int64_t some = std::max<std::int64_t>(1024, 4 * reach) / p.stride[2] + 1;
    if (is_padded) segment = std::min(segment, some);
    width = is_padded ? std::max<std::int64_t>((segment - 1) * p.stride[2] + reach + 1, 1) : p.size[2];
    together = is_padded && segment == p.results[2] ? std::max<std::int64_t>(1024 / width, 1) : 1;
  }
};

// Combines the windows of short planes of one row, one for each lane of a vector: first by `join`, then by finish(o, all).
template <class T, class Join, class Finish>
void pool_short_rows(T* to, const T* from, const Pooling& p, const std::vector<Pooling::Span>& spans,
                     Results<T>& results, Join join, Finish finish) {
  ShortRows<Wide<T>> rows(p.size[2]), joined(p.results[2]);
  rows.read(from);
  for (std::size_t o = 0; o < spans.size(); ++o) {
    Vector<Wide<T>> all = rows.element(spans[o].begin);
    for (std::int64_t k = 1; k < spans[o].count; ++k) all = join(all, rows.element(spans[o].begin + k * p.step(2)));
    joined.set_element(static_cast<std::int64_t>(o), finish(o, all));
  }
  joined.write(to, results);
}

template <class T, bool indexed>
void max_pool(const View& values, const View& indices, const View& x, const Pooling& p) {
  Planes planes(x, p);
  std::int64_t width = p.size[2], results = p.results[2], channels = planes.channels;
  std::int64_t each = p.channels_last ? results * channels * planes.taps() : width * p.window[1] + 3 * results;
  if constexpr (std::is_same_v<T, Wide<T>>)
    if (Squares<T>::fit(p))
      return parallel_for(planes.rows(), planes.grain(width), [&](std::int64_t begin, std::int64_t end) {
        Squares<T>::max(values.as<T>(), indexed ? indices.as<std::int64_t>() : nullptr, x.as<T>(), p, begin, end);
      });
  bool has_short_rows = !indexed && planes.are_short_rows<Wide<T>>();
  if constexpr (!indexed && std::is_same_v<T, Wide<T>>)
    if (ShortWindows<T>::fit(p) && (!has_short_rows || results % Vector<T>::lanes <= 2))
      return parallel_for(planes.rows(), planes.grain(width), [&](std::int64_t begin, std::int64_t end) {
        ShortWindows<T>::max(values.as<T>(), x.as<T>(), p, begin, end);
      });
  PaddedRows padded(p);
  std::vector<Pooling::Span> spans;
  if (p.channels_last || !padded.is_padded || has_short_rows) spans = spans_of(p);
  parallel_for(planes.rows(), planes.grain(each), [&](std::int64_t begin, std::int64_t end) {
    if (has_short_rows) {
      using V = Vector<Wide<T>>;
      Results<T> written(values.numel);
      for (; begin + ShortRows<Wide<T>>::count <= end; begin += ShortRows<Wide<T>>::count)
        pool_short_rows(values.as<T>() + begin * results, x.as<T>() + begin * width, p, spans, written,
                        ShortWindows<Wide<T>>::larger, [](std::size_t, V most) { return most; });
    }
    std::int64_t length = p.channels_last ? channels : padded.width * padded.together, rows = 0;
    Largest<T, indexed> largest(length), windows(p.channels_last ? 0 : padded.is_padded ? length : results);
    std::vector<std::int64_t> sources;
    T* to = values.as<T>() + begin * results * channels;
    std::int64_t* at = indexed ? indices.as<std::int64_t>() + begin * results * channels : nullptr;
    auto write = [&](const Largest<T, indexed>& from, std::int64_t first, std::int64_t stride, std::int64_t n) {
      from.write(to, at, first, stride, n);
      to += n;
      at += indexed ? n : 0;
    };
    auto write_windows = [&](std::int64_t n) {
      if (padded.is_padded) {
        windows.take_windows(largest, rows * padded.width - padded.reach, p.window[2], p.dilation[2]);
        for (std::int64_t row = 0; row < rows; ++row) write(windows, row * padded.width, p.stride[2], n);
      } else {
        for (std::int64_t o = 0; o < results; ++o) windows.take_window(o, largest, spans[o], p.step(2));
        write(windows, 0, 1, results);
      }
      rows = 0;
    };
    planes.for_each_row(begin, end, [&](std::int64_t plane, std::int64_t o0, std::int64_t o1) {
      const T* from = x.as<T>() + plane * planes.places * channels;
      for (std::int64_t o = 0; o < (p.channels_last ? results : 1); ++o) {
        sources.clear();
        planes.for_each_source(o0, o1, [&](std::int64_t place) {
          if (!p.channels_last) return sources.push_back(place);
          for (std::int64_t k = 0; k < spans[o].count; ++k) sources.push_back(place + spans[o].begin + k * p.step(2));
        });
        if (!p.channels_last) continue;
        largest.take_rows(0, from, sources, channels, channels);
        write(largest, 0, 1, channels);
      }
      if (p.channels_last) return;
      if (!padded.is_padded) largest.take_rows(0, from, sources, width, 1);
      for (std::int64_t o = 0; o < results; o += padded.segment) {
        if (padded.is_padded)
          largest.take_parts(rows * padded.width, padded.width, from, sources, width, o * p.stride[2] - p.padding[2]);
        if (++rows == padded.together) write_windows(std::min(padded.segment, results - o));
      }
    });
    if (rows > 0) write_windows(results);
  });
}

// A plane of sums in f32 or f64.
template <class T>
class Sums {
 public:
  explicit Sums(std::int64_t n) : n_(n), wide_(std::is_same_v<T, Wide<T>> ? 0 : static_cast<std::size_t>(n)) {}
  Wide<T>* start(T* plane) {
    plane_ = plane;
    if constexpr (std::is_same_v<T, Wide<T>>) {
      std::fill_n(plane, n_, T(0));
      return plane;
    } else {
      std::fill(wide_.begin(), wide_.end(), Wide<T>(0));
      return wide_.data();
    }
  }
  void finish() {
    if constexpr (!std::is_same_v<T, Wide<T>>)
      for (std::int64_t i = 0; i < n_; ++i) plane_[i] = narrow<T>(wide_[static_cast<std::size_t>(i)]);
  }

 private:
  std::int64_t n_;
  std::vector<Wide<T>> wide_;
  T* plane_ = nullptr;
};

template <class T>
void scatter(const View& dx, const View& d, const View& indices, const Pooling& p) {
  Planes planes(dx, p);
  std::int64_t channels = planes.channels, whole = planes.places * channels;
  parallel_for(planes.count, planes.grain(whole), [&](std::int64_t begin, std::int64_t end) {
    Sums<T> sums(whole);
    for (std::int64_t plane = begin; plane < end; ++plane) {
      Wide<T>* to = sums.start(dx.as<T>() + plane * whole);
      const T* from = d.as<T>() + plane * planes.results * channels;
      const std::int64_t* at = indices.as<std::int64_t>() + plane * planes.results * channels;
      if (channels == 1)
        for (std::int64_t o = 0; o < planes.results; ++o) to[at[o]] += wide(from[o]);
      else
        for (std::int64_t o = 0; o < planes.results; ++o, from += channels, at += channels)
          for (std::int64_t c = 0; c < channels; ++c) to[at[c] * channels + c] += wide(from[c]);
      sums.finish();
    }
  });
}

template <class T>
void gather(const View& y, const View& x, const View& indices, const Pooling& p) {
  Planes planes(x, p);
  std::int64_t channels = planes.channels, whole = planes.results * channels;
  parallel_for(planes.count, planes.grain(whole), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t plane = begin; plane < end; ++plane) {
      const T* from = x.as<T>() + plane * planes.places * channels;
      const std::int64_t* at = indices.as<std::int64_t>() + plane * whole;
      T* to = y.as<T>() + plane * whole;
      for (std::int64_t o = 0; o < planes.results; ++o)
        for (std::int64_t c = 0; c < channels; ++c) to[o * channels + c] = from[at[o * channels + c] * channels + c];
    }
  });
}

template <class W, class T>
void add_row(W* __restrict sums, const T* __restrict row, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) sums[j] += wide(row[j]);
}

// Adds the columns of one row of sums.
template <class W>
void add_columns(W* __restrict sums, const W* __restrict columns, const std::vector<Pooling::Span>& spans,
                 std::int64_t step) {
  for (std::size_t o = 0; o < spans.size(); ++o) {
    const W* column = columns + spans[o].begin;
    W sum = *column;
    for (std::int64_t k = 1; k < spans[o].count; ++k) sum += *(column += step);
    sums[o] = sum;
  }
}

// Returns true if there is one window, which has all elements of a plane.
bool is_global(const Pooling& p) {
  for (int axis = 0; axis < 3; ++axis)
    if (p.results[axis] != 1 || p.span(axis, 0).count != p.size[axis]) return false;
  return !p.channels_last;
}

template <class T>
void average_planes(const View& y, const View& x, const Pooling& p) {
  using W = Wide<T>;
  Planes planes(x, p);
  double divisor = static_cast<double>(p.divisor(0, 0) * p.divisor(1, 0)) * static_cast<double>(p.divisor(2, 0));
  parallel_for(planes.count, planes.grain(planes.places), [&](std::int64_t begin, std::int64_t end) {
    W buffer[piece];
    for (std::int64_t plane = begin; plane < end; ++plane) {
      const T* from = x.as<T>() + plane * planes.places;
      double total[1] = {};
      for_each_piece(planes.places, [&](std::int64_t start, std::int64_t count) {
        const W* here = read_piece(from + start, count, buffer);
        add_piece<W>(total, count, [&](Sum<W>(&sum)[1], std::int64_t i, auto load) { sum[0].add(load(here + i)); });
      });
      y.as<T>()[plane] = narrow<T>(static_cast<W>(total[0] / divisor));
    }
  });
}

template <class T>
void average_pool(const View& y, const View& x, const Pooling& p) {
  if (is_global(p)) return average_planes<T>(y, x, p);
  using W = Wide<T>;
  Planes planes(x, p);
  std::int64_t width = p.size[2], results = p.results[2], channels = planes.channels, step = p.step(2);
  std::int64_t each = p.channels_last ? results * channels * planes.taps() : width * p.window[1] + 3 * results;
  bool has_short_rows = planes.are_short_rows<W>();
  parallel_for(planes.rows(), planes.grain(each), [&](std::int64_t begin, std::int64_t end) {
    std::vector<W> sums(static_cast<std::size_t>(p.channels_last ? channels : width));
    std::vector<W> joined(static_cast<std::size_t>(results)), divisors = divisors_of<W>(p);
    std::vector<Pooling::Span> spans = spans_of(p);
    std::int64_t row = begin;
    if (has_short_rows) {
      using V = Vector<W>;
      auto across_rows = static_cast<W>(p.divisor(0, 0) * p.divisor(1, 0));
      Results<T> written(y.numel);
      for (; row + ShortRows<W>::count <= end; row += ShortRows<W>::count)
        pool_short_rows(
            y.as<T>() + row * results, x.as<T>() + row * width, p, spans, written, [](V sum, V x) { return sum + x; },
            [&](std::size_t o, V sum) { return sum / V::repeat(across_rows * divisors[o]); });
    }
    planes.for_each_row(row, end, [&](std::int64_t plane, std::int64_t o0, std::int64_t o1) {
      const T* from = x.as<T>() + plane * planes.places * channels;
      T* to = y.as<T>() + row++ * results * channels;
      auto across = static_cast<W>(p.divisor(0, o0) * p.divisor(1, o1));
      if (!p.channels_last) {
        std::fill(sums.begin(), sums.end(), W(0));
        planes.for_each_source(o0, o1, [&](std::int64_t place) { add_row(sums.data(), from + place, width); });
        add_columns(joined.data(), sums.data(), spans, step);
        for (std::size_t o = 0; o < joined.size(); ++o) to[o] = narrow<T>(joined[o] / (across * divisors[o]));
        return;
      }
      for (std::size_t o = 0; o < spans.size(); ++o, to += channels) {
        W divisor = across * divisors[o];
        std::fill(sums.begin(), sums.end(), W(0));
        planes.for_each_source(o0, o1, [&](std::int64_t place) {
          for (std::int64_t k = 0; k < spans[o].count; ++k)
            add_row(sums.data(), from + (place + spans[o].begin + k * step) * channels, channels);
        });
        for (std::int64_t c = 0; c < channels; ++c) to[c] = narrow<T>(sums[static_cast<std::size_t>(c)] / divisor);
      }
    });
  });
}

template <class W>
void spread_columns(W* __restrict columns, const W* __restrict shares, const std::vector<Pooling::Span>& spans,
                    std::int64_t step) {
  for (std::size_t o = 0; o < spans.size(); ++o) {
    W* column = columns + spans[o].begin;
    for (std::int64_t k = 0; k < spans[o].count; ++k) column[k * step] += shares[o];
  }
}

template <class T>
void average_gradient(const View& dx, const View& d, const Pooling& p) {
  using W = Wide<T>;
  Planes planes(dx, p);
  std::int64_t width = p.size[2], results = p.results[2], channels = planes.channels, step = p.step(2);
  std::int64_t whole = planes.places * channels;
  parallel_for(planes.count, planes.grain(whole), [&](std::int64_t begin, std::int64_t end) {
    Sums<T> sums(whole);
    std::vector<W> columns(static_cast<std::size_t>(p.channels_last ? 0 : width));
    std::vector<W> shares(static_cast<std::size_t>(p.channels_last ? channels : results)), divisors = divisors_of<W>(p);
    std::vector<Pooling::Span> spans = spans_of(p);
    std::int64_t plane_rows = p.results[0] * p.results[1];
    for (std::int64_t plane = begin; plane < end; ++plane) {
      W* to = sums.start(dx.as<T>() + plane * whole);
      const T* from = d.as<T>() + plane * planes.results * channels;
      planes.for_each_row(0, plane_rows, [&](std::int64_t, std::int64_t o0, std::int64_t o1) {
        auto across = static_cast<W>(p.divisor(0, o0) * p.divisor(1, o1));
        if (!p.channels_last) {
          for (std::size_t o = 0; o < shares.size(); ++o) shares[o] = wide(from[o]) / (across * divisors[o]);
          std::fill(columns.begin(), columns.end(), W(0));
          spread_columns(columns.data(), shares.data(), spans, step);
          planes.for_each_source(o0, o1, [&](std::int64_t place) { add_row(to + place, columns.data(), width); });
          from += results;
          return;
        }
        for (std::size_t o = 0; o < spans.size(); ++o, from += channels) {
          W divisor = across * divisors[o];
          for (std::size_t c = 0; c < shares.size(); ++c) shares[c] = wide(from[c]) / divisor;
          planes.for_each_source(o0, o1, [&](std::int64_t place) {
            for (std::int64_t k = 0; k < spans[o].count; ++k)
              add_row(to + (place + spans[o].begin + k * step) * channels, shares.data(), channels);
          });
        }
      });
      sums.finish();
    }
  });
}

}  // namespace

void fill_pooling(KernelTable& table) {
  static constexpr PoolingKernels kernels{
      .max =
          [](const View& values, const View& indices, const View& x, const Pooling& p) {
            with_floating(x.dtype, [&]<class T>(std::type_identity<T>) {
              indices.numel == 0 ? max_pool<T, false>(values, indices, x, p) : max_pool<T, true>(values, indices, x, p);
            });
          },
      .scatter =
          [](const View& dx, const View& d, const View& indices, const Pooling& p) {
            with_floating(d.dtype, [&]<class T>(std::type_identity<T>) { scatter<T>(dx, d, indices, p); });
          },
      .gather =
          [](const View& y, const View& x, const View& indices, const Pooling& p) {
            with_floating(x.dtype, [&]<class T>(std::type_identity<T>) { gather<T>(y, x, indices, p); });
          },
      .average =
          [](const View& y, const View& x, const Pooling& p) {
            with_floating(x.dtype, [&]<class T>(std::type_identity<T>) { average_pool<T>(y, x, p); });
          },
      .average_gradient =
          [](const View& dx, const View& d, const Pooling& p) {
            with_floating(d.dtype, [&]<class T>(std::type_identity<T>) { average_gradient<T>(dx, d, p); });
          },
      .running_extreme = running_extreme};
  table.pooling = &kernels;
}

}  // namespace reel::detail::inline REEL_TARGET
