#include "convolution_columns.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "../../../core/dtype_dispatch.h"
#include "../../../core/threads/parallel.h"
#include "../products/gemm.h"
#include "../products/matmul.h"
#include "convolution_plan.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// The most bytes of the matrix of columns, which a thread keeps.
constexpr std::int64_t most_bytes = std::int64_t{1} << 24;
// The kernels that read in place compute elements between short lines in vain.
constexpr std::int64_t longest_line = 8;
// With fewer channels, the columns cost more than they save.
constexpr std::int64_t fewest_channels = 64;
// Elements of the matrix of columns, which take a third of a nanosecond each, from which a second thread pays.
constexpr std::int64_t parallel_elements = 1 << 16;

template <class T>
T* scratch_of(std::int64_t count, int which) {
  static constinit ThreadScratch scratches[2];
  return scratches[which].get<T>(count);
}

View matrix(const void* data, DType dtype, const std::int64_t (&sizes)[2], const std::int64_t (&strides)[2]) {
  return {const_cast<void*>(data), sizes, strides, sizes[0] * sizes[1], 2, dtype, strides[1] == 1};
}

// Copies a line of at most `longest_line` elements, whose number the compiler does not know: by two halves that overlap.
template <class T>
void copy_line(T* to, const T* from, std::int64_t count, std::int64_t step) {
  constexpr std::int64_t half = longest_line / 2;
  if (step == 1 && count >= half) {
    std::memcpy(to, from, half * sizeof(T));
    std::memcpy(to + count - half, from + count - half, half * sizeof(T));
    return;
  }
  for (std::int64_t k = 0; k < count; ++k) to[k] = from[k * step];
}

// The source and the window of a convolution, and the matrix of columns. S may be const.
template <class S>
struct Columns {
  using T = std::remove_const_t<S>;
  Images<S> source;
  PlannedAxis axes[3];

  std::int64_t taps() const { return axes[0].taps * axes[1].taps * axes[2].taps; }
  std::int64_t rows() const { return source.channels * taps(); }
  std::int64_t positions() const { return source.examples * axes[0].count * axes[1].count * axes[2].count; }

  /// Calls line(column, from, step, inside) for each line of positions, in rows of the given channel: the elements that
  /// it reads begin at `from`, `step` apart, and those outside the source are not to be read.
  template <class Line>
  void for_each_line(std::int64_t channel, std::int64_t first_row, Line line) const {
    const auto& [deep, high, wide] = axes;
    std::int64_t row = first_row;
    for (std::int64_t td = 0; td < deep.taps; ++td)
      for (std::int64_t th = 0; th < high.taps; ++th)
        for (std::int64_t tw = 0; tw < wide.taps; ++tw, ++row) {
          std::int64_t w = wide.offset + tw * wide.offset_stride, column = 0;
          Inside inside(w, wide.stride, wide.source, wide.count);
          for (std::int64_t n = 0; n < source.examples; ++n)
            for (std::int64_t i = 0; i < deep.count; ++i) {
              std::int64_t d = i * deep.stride + deep.offset + td * deep.offset_stride;
              for (std::int64_t j = 0; j < high.count; ++j, column += wide.count) {
                std::int64_t h = j * high.stride + high.offset + th * high.offset_stride;
                bool exists = d >= 0 && d < deep.source && h >= 0 && h < high.source && inside.count > 0;
                S* from = exists ? source.data + n * source.example_stride + channel * source.channel_stride +
                                       d * source.strides[0] + h * source.strides[1] +
                                       (w + inside.before * wide.stride) * source.strides[2]
                                 : nullptr;
                line(row * positions() + column, from, wide.stride * source.strides[2], inside);
              }
            }
        }
  }

  void fill(T* columns) const {
    std::int64_t each = taps() * positions(), length = axes[2].count;
    parallel_for(source.channels, std::max<std::int64_t>(parallel_elements / each, 1),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t channel = begin; channel < end; ++channel)
                     for_each_line(channel, channel * taps(),
                                   [&](std::int64_t at, const T* from, std::int64_t step, const Inside& inside) {
                                     T* to = columns + at;
                                     std::int64_t k = 0;
                                     if (from) {
                                       for (; k < inside.before; ++k) to[k] = T(0);
                                       copy_line(to + k, from, inside.count, step);
                                       k += inside.count;
                                     }
                                     for (; k < length; ++k) to[k] = T(0);
                                   });
                 });
  }

  /// Adds the columns' elements to those from which they were read.
  void accumulate(const T* columns) const
    requires(!std::is_const_v<S>)
  {
    std::int64_t each = taps() * positions();
    parallel_for(source.channels, std::max<std::int64_t>(parallel_elements / each, 1),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t channel = begin; channel < end; ++channel)
                     for_each_line(channel, channel * taps(),
                                   [&](std::int64_t at, T* to, std::int64_t step, const Inside& inside) {
                                     if (!to) return;
                                     const T* from = columns + at + inside.before;
                                     for (std::int64_t k = 0; k < inside.count; ++k, to += step) *to += from[k];
                                   });
                 });
  }
};

template <class S>
Columns<S> columns_of(const View& x, const View& w, const View& y, const Convolution& c) {
  Columns<S> columns{images_of<S>(x, false), {}};
  Images<const std::remove_const_t<S>> results = images_of<const std::remove_const_t<S>>(y, false);
  for (int axis = 0; axis < 3; ++axis)
    columns.axes[axis] = forward_axis(c, axis, results.dims[axis], columns.source.dims[axis], window_of(w, axis));
  return columns;
}

// Calls line(channel, first position, element, stride) for the positions of each example and channel of contiguous images.
template <class S, class Line>
void for_each_image(const Images<S>& images, Line line) {
  std::int64_t size = images.dims[0] * images.dims[1] * images.dims[2];
  for (std::int64_t n = 0; n < images.examples; ++n)
    for (std::int64_t c = 0; c < images.channels; ++c)
      line(images.data + n * images.example_stride + c * images.channel_stride, (c * images.examples + n) * size, c,
           size);
}

// The gradient d (N, O, …) as a matrix (O, positions).
template <class T>
const T* by_channels(const View& d) {
  T* to = scratch_of<T>(d.numel, 1);
  for_each_image(images_of<const T>(d, false), [&](const T* from, std::int64_t at, std::int64_t, std::int64_t size) {
    std::copy_n(from, size, to + at);
  });
  return to;
}

template <class T>
void forward(const View& out, const View& x, const View& w, const View* bias, const Convolution& c) {
  Columns<const T> columns = columns_of<const T>(x, w, out, c);
  std::int64_t rows = columns.rows(), positions = columns.positions(), channels = w.dims[0];
  T* matrix_of_columns = scratch_of<T>(rows * positions, 0);
  columns.fill(matrix_of_columns);
  T* sums = scratch_of<T>(out.numel, 1);
  matmul_columns(matrix(sums, out.dtype, {channels, positions}, {positions, 1}),
                 matrix(w.data, out.dtype, {channels, rows}, {rows, 1}),
                 matrix(matrix_of_columns, out.dtype, {rows, positions}, {positions, 1}));
  for_each_image(images_of<T>(out, false), [&](T* to, std::int64_t at, std::int64_t channel, std::int64_t size) {
    T shift = bias ? bias->as<T>()[channel * bias->strides[0]] : T(0);
    for (std::int64_t k = 0; k < size; ++k) to[k] = sums[at + k] + shift;
  });
}

template <class T>
void backward_data(const View& out, const View& d, const View& w, const View* bias, const Convolution& c) {
  Columns<T> columns = columns_of<T>(out, w, d, c);
  std::int64_t rows = columns.rows(), positions = columns.positions(), channels = w.dims[0];
  const T* gradients = by_channels<T>(d);
  T* matrix_of_columns = scratch_of<T>(rows * positions, 0);
  matmul_columns(matrix(matrix_of_columns, out.dtype, {rows, positions}, {positions, 1}),
                 matrix(w.data, out.dtype, {rows, channels}, {1, rows}),
                 matrix(gradients, out.dtype, {channels, positions}, {positions, 1}));
  for_each_image(images_of<T>(out, false), [&](T* to, std::int64_t, std::int64_t channel, std::int64_t size) {
    std::fill_n(to, size, bias ? bias->as<T>()[channel * bias->strides[0]] : T(0));
  });
  columns.accumulate(matrix_of_columns);
}

template <class T>
void backward_weights(const View& out, const View& x, const View& d, const Convolution& c) {
  Columns<const T> columns = columns_of<const T>(x, out, d, c);
  std::int64_t rows = columns.rows(), positions = columns.positions(), channels = out.dims[0];
  const T* gradients = by_channels<T>(d);
  T* matrix_of_columns = scratch_of<T>(rows * positions, 0);
  columns.fill(matrix_of_columns);
  matmul(matrix(out.data, out.dtype, {channels, rows}, {rows, 1}),
         matrix(gradients, out.dtype, {channels, positions}, {positions, 1}),
         matrix(matrix_of_columns, out.dtype, {positions, rows}, {1, positions}), {});
}

}  // namespace

bool pays_columns(const View& x, const View& w, const View& y, const Convolution& c) {
  if (size_of(x.dtype) < 4 || c.groups != 1 || c.channels_last || !x.contiguous || !w.contiguous || !y.contiguous ||
      w.numel == 0 || y.numel == 0)
    return false;
  std::int64_t taps = w.numel / (w.dims[0] * w.dims[1]), positions = y.numel / y.dims[1];
  return taps > 1 && y.dims[y.rank - 1] <= longest_line && w.dims[0] >= fewest_channels &&
         w.dims[1] >= fewest_channels &&
         w.dims[1] * taps * positions * static_cast<std::int64_t>(size_of(x.dtype)) <= most_bytes;
}

void forward_by_columns(const View& out, const View& x, const View& w, const View* bias, const Convolution& c) {
  out.dtype == DType::f64 ? forward<double>(out, x, w, bias, c) : forward<float>(out, x, w, bias, c);
}

void backward_data_by_columns(const View& out, const View& d, const View& w, const View* bias, const Convolution& c) {
  out.dtype == DType::f64 ? backward_data<double>(out, d, w, bias, c) : backward_data<float>(out, d, w, bias, c);
}

void backward_weights_by_columns(const View& out, const View& x, const View& d, const Convolution& c) {
  out.dtype == DType::f64 ? backward_weights<double>(out, x, d, c) : backward_weights<float>(out, x, d, c);
}

}  // namespace reel::detail::inline REEL_TARGET
