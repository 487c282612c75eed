#include <cmath>
#include <limits>
#include <type_traits>

#include "../core/dispatch.h"
#include "../core/iteration.h"
#include "instruction_set.h"
#include "vector_exponential.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

constexpr std::int64_t block = 512;

// A row of any floating type, read and written in blocks of f32 or f64.
template <class T>
struct Row {
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const T* from;
  std::int64_t step;

  // The elements [start, start + count), in `buffer` unless they can be read where they are.
  const Wide* read(std::int64_t start, std::int64_t count, Wide* buffer) const {
    if constexpr (std::is_same_v<T, Wide>)
      if (step == 1) return from + start;
    for (std::int64_t i = 0; i < count; ++i) buffer[i] = static_cast<Wide>(from[(start + i) * step]);
    return buffer;
  }
};

// Pads a last, shorter vector with `fill`.
template <class T>
Vector<T> load_padded(const T* from, std::int64_t count, T fill) {
  T lanes[Vector<T>::lanes];
  for (std::int64_t i = 0; i < Vector<T>::lanes; ++i) lanes[i] = i < count ? from[i] : fill;
  return Vector<T>::load(lanes);
}

template <class T, class F>
void for_each_vector(const T* x, std::int64_t n, T fill, F f) {
  constexpr std::int64_t lanes = Vector<T>::lanes;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(Vector<T>::load(x + i), i);
  if (i < n) f(load_padded(x + i, n - i, fill), i);
}

template <class T>
T sum_of_lanes(Vector<T> v) {
  T lanes[Vector<T>::lanes];
  v.store(lanes);
  for (std::int64_t width = Vector<T>::lanes / 2; width > 0; width /= 2)
    for (std::int64_t j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  return lanes[0];
}

template <class Wide>
struct Normaliser {
  Wide largest;
  Wide sum;  // of e^(x − largest)
};

template <class T>
Normaliser<typename Row<T>::Wide> normaliser(Row<T> row, std::int64_t n) {
  using Wide = typename Row<T>::Wide;
  using V = Vector<Wide>;
  constexpr Wide lowest = -std::numeric_limits<Wide>::infinity();
  Wide buffer[block];
  V most = V::repeat(lowest);
  for (std::int64_t start = 0; start < n; start += block) {
    std::int64_t count = n - start < block ? n - start : block;
    for_each_vector(row.read(start, count, buffer), count, lowest, [&](V x, std::int64_t) { most = maximum(most, x); });
  }
  Wide lanes[V::lanes];
  most.store(lanes);
  Wide largest = lanes[0];
  for (std::int64_t j = 1; j < V::lanes; ++j) largest = lanes[j] > largest || lanes[j] != lanes[j] ? lanes[j] : largest;
  Wide sum = 0;
  for (std::int64_t start = 0; start < n; start += block) {
    std::int64_t count = n - start < block ? n - start : block;
    V partial = V::repeat(0);
    for_each_vector(row.read(start, count, buffer), count, lowest,
                    [&](V x, std::int64_t) { partial = partial + exp(x - V::repeat(largest)); });
    sum += sum_of_lanes(partial);
  }
  return {largest, sum};
}

// Applies f to each vector of a row and stores what it gives.
template <class T, class F>
void map_row(T* out, std::int64_t out_step, Row<T> row, std::int64_t n, F f) {
  using Wide = typename Row<T>::Wide;
  Wide buffer[block], results[block + Vector<Wide>::lanes];
  for (std::int64_t start = 0; start < n; start += block) {
    std::int64_t count = n - start < block ? n - start : block;
    for_each_vector(row.read(start, count, buffer), count, Wide(0),
                    [&](Vector<Wide> x, std::int64_t i) { f(x, start + i).store(results + i); });
    for (std::int64_t i = 0; i < count; ++i) out[(start + i) * out_step] = static_cast<T>(results[i]);
  }
}

// x with its last axis taken off.
View heads(const View& x) {
  View view = x;
  if (view.rank > 0) --view.rank;
  return view;
}
std::int64_t last_dim(const View& x) { return x.rank == 0 ? 1 : x.dims[x.rank - 1]; }
std::int64_t last_step(const View& x) { return x.rank == 0 ? 1 : x.strides[x.rank - 1]; }

template <class T, class F>
void for_each_row_pair(const View& out, const View& x, F f) {
  View out_heads = heads(out), x_heads = heads(x);
  Iteration<2> iteration({&out_heads, &x_heads});
  iteration.for_each_row([&](const std::int64_t* offset) {
    for (std::int64_t k = 0; k < iteration.dims[0]; ++k)
      f(out.as<T>() + offset[0] + k * iteration.strides[0][0],
        Row<T>{x.as<T>() + offset[1] + k * iteration.strides[1][0], last_step(x)});
  });
}

struct Softmax {
  template <class T>
  static void run(const View& out, const View& x) {
    using V = Vector<typename Row<T>::Wide>;
    std::int64_t n = last_dim(x);
    if (n == 0) return;
    for_each_row_pair<T>(out, x, [&](T* to, Row<T> row) {
      auto [largest, sum] = normaliser(row, n);
      V shift = V::repeat(largest), total = V::repeat(sum);
      map_row(to, last_step(out), row, n, [=](V v, std::int64_t) { return exp(v - shift) / total; });
    });
  }
};

struct LogSoftmax {
  template <class T>
  static void run(const View& out, const View& x) {
    using Wide = typename Row<T>::Wide;
    using V = Vector<Wide>;
    std::int64_t n = last_dim(x);
    if (n == 0) return;
    for_each_row_pair<T>(out, x, [&](T* to, Row<T> row) {
      auto [largest, sum] = normaliser(row, n);
      V shift = V::repeat(largest), rest = V::repeat(static_cast<Wide>(std::log(sum)));
      map_row(to, last_step(out), row, n, [=](V v, std::int64_t) { return v - shift - rest; });
    });
  }
};

template <class T, class F>
void for_each_row_triple(const View& out, const View& d, const View& y, F f) {
  View out_heads = heads(out), d_heads = heads(d), y_heads = heads(y);
  Iteration<3> iteration({&out_heads, &d_heads, &y_heads});
  const auto& steps = iteration.strides;
  iteration.for_each_row([&](const std::int64_t* offset) {
    for (std::int64_t k = 0; k < iteration.dims[0]; ++k)
      f(out.as<T>() + offset[0] + k * steps[0][0], Row<T>{d.as<T>() + offset[1] + k * steps[1][0], last_step(d)},
        Row<T>{y.as<T>() + offset[2] + k * steps[2][0], last_step(y)});
  });
}

// Σ of f over the elements of two rows.
template <class T, class F>
typename Row<T>::Wide sum_over(Row<T> a, Row<T> b, std::int64_t n, F f) {
  using Wide = typename Row<T>::Wide;
  Wide left[block], right[block], total = 0;
  for (std::int64_t start = 0; start < n; start += block) {
    std::int64_t count = n - start < block ? n - start : block;
    const Wide* second = b.read(start, count, right);
    Vector<Wide> partial = Vector<Wide>::repeat(0);
    for_each_vector(a.read(start, count, left), count, Wide(0), [&](Vector<Wide> x, std::int64_t i) {
      partial = partial + f(x, load_padded(second + i, count - i, Wide(0)));
    });
    total += sum_of_lanes(partial);
  }
  return total;
}

// dx = y (d − Σ d y)
struct SoftmaxGradient {
  template <class T>
  static void run(const View& out, const View& d, const View& y) {
    using Wide = typename Row<T>::Wide;
    using V = Vector<Wide>;
    std::int64_t n = last_dim(y);
    for_each_row_triple<T>(out, d, y, [&](T* to, Row<T> gradient, Row<T> result) {
      Wide inner = sum_over(gradient, result, n, [](V a, V b) { return a * b; });
      for (std::int64_t i = 0; i < n; ++i) {
        auto value = static_cast<Wide>(result.from[i * result.step]);
        to[i * last_step(out)] = static_cast<T>(value * (static_cast<Wide>(gradient.from[i * gradient.step]) - inner));
      }
    });
  }
};

// dx = d − e^y Σ d
struct LogSoftmaxGradient {
  template <class T>
  static void run(const View& out, const View& d, const View& y) {
    using Wide = typename Row<T>::Wide;
    using V = Vector<Wide>;
    std::int64_t n = last_dim(y);
    for_each_row_triple<T>(out, d, y, [&](T* to, Row<T> gradient, Row<T> result) {
      V inner = V::repeat(sum_over(gradient, result, n, [](V a, V) { return a; }));
      map_row(to, last_step(out), result, n, [=](V v, std::int64_t i) {
        Wide lanes[V::lanes];
        for (std::int64_t j = 0; j < V::lanes; ++j)
          lanes[j] = i + j < n ? static_cast<Wide>(gradient.from[(i + j) * gradient.step]) : Wide(0);
        return V::load(lanes) - exp(v) * inner;
      });
    });
  }
};

template <class Op, class... Views>
void floating(const View& out, const Views&... views) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) { Op::template run<T>(out, views...); });
}

}  // namespace

void fill_softmax(KernelTable& table) {
  table.softmax = floating<Softmax, View>;
  table.log_softmax = floating<LogSoftmax, View>;
  table.softmax_gradient = floating<SoftmaxGradient, View, View>;
  table.log_softmax_gradient = floating<LogSoftmaxGradient, View, View>;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
