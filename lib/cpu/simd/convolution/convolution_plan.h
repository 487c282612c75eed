#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "../../../core/target.h"
#include "../../../kernels/convolution.h"

// How the convolution kernels read images: in boxes of results, for which the needed elements of the source are packed
// so that they are contiguous for each tap of the window.

namespace reel::detail::inline REEL_TARGET {

/// Examples, channels and three spatial axes; missing axes have size 1.
template <class S>
struct Images {
  S* data;
  std::int64_t examples, channels, dims[3];
  std::int64_t example_stride, channel_stride, strides[3];
};

template <class S>
Images<S> images_of(const View& view, bool channels_last) {
  int spatial = view.rank - 2, channel = channels_last ? view.rank - 1 : 1, first = channels_last ? 1 : 2;
  Images<S> images{view.as<S>(),    view.dims[0],          view.dims[channel], {1, 1, 1},
                   view.strides[0], view.strides[channel], {0, 0, 0}};
  for (int i = 0; i < spatial; ++i) {
    images.dims[3 - spatial + i] = view.dims[first + i];
    images.strides[3 - spatial + i] = view.strides[first + i];
  }
  return images;
}

/// Along one axis, result r is the sum over taps t of source[r · stride + offset + t · offset_stride] times the window's
/// element tap + t · tap_stride. Its index is first + r · step.
struct PlannedAxis {
  std::int64_t count, first, step;
  std::int64_t source, stride;
  std::int64_t taps, tap, tap_stride;
  std::int64_t offset, offset_stride;

  // The packed form: `planes` parts of the source, from which each tap reads as many elements as there are results,
  // shifted by up to `longest_shift`. With `columns`, there is a part for each tap; else taps whose offsets differ by a
  // multiple of the stride share one.
  std::int64_t planes, longest_shift;
  bool columns;
  // Zeros that are both behind a line and before the next one, if all results are in the box: see share_zeros.
  std::int64_t shared_zeros;

  std::int64_t plane_of(std::int64_t t) const { return columns ? t : t % planes; }
  std::int64_t shift_of(std::int64_t t) const { return columns ? 0 : t * offset_stride / stride; }
  /// The source index at which a part starts, for result 0.
  std::int64_t start_of(std::int64_t plane) const {
    return offset + (columns ? plane * offset_stride : plane * offset_stride % stride);
  }
  std::int64_t length(std::int64_t results) const { return results + longest_shift - shared_zeros; }

  void share() {
    columns = false;
    planes = std::min(taps, stride / std::gcd(stride, offset_stride));
    longest_shift = (taps - 1) * offset_stride / stride;
    shared_zeros = 0;
  }
  void share_zeros() {
    if (columns || stride != 1) return;
    std::int64_t before = -offset, after = offset + count + longest_shift - source;
    shared_zeros = std::clamp<std::int64_t>(std::min(before, after), 0, longest_shift);
  }
  void use_columns() {
    columns = true;
    planes = taps;
    longest_shift = shared_zeros = 0;
  }
  /// The taps that read elements of the source for result r: [begin, end), none if end <= begin.
  struct Taps {
    std::int64_t begin, end;
    bool operator==(const Taps&) const = default;
  };
  Taps taps_inside(std::int64_t r) const {
    std::int64_t at = r * stride + offset;
    return {at >= 0 ? 0 : std::min(taps, (-at - 1) / offset_stride + 1),
            at >= source ? 0 : std::min(taps, (source - at - 1) / offset_stride + 1)};
  }
};

/// The plan of all results of y along an axis, from x.
inline PlannedAxis forward_axis(const Convolution& c, int axis, std::int64_t results, std::int64_t source,
                                std::int64_t window) {
  PlannedAxis planned{};
  planned.count = results;
  planned.step = 1;
  planned.source = source;
  planned.stride = c.stride[axis];
  planned.taps = window;
  planned.tap_stride = 1;
  planned.offset = -c.padding[axis];
  planned.offset_stride = c.dilation[axis];
  return planned;
}

/// The size of the window along an axis, from the weights' shape.
inline std::int64_t window_of(const View& w, int axis) {
  int own = axis + w.rank - 5;
  return own < 0 ? 1 : w.dims[2 + own];
}

/// A part of the results: ranges of the examples, then of each spatial axis.
struct Box {
  std::int64_t begin[4], count[4];
  std::int64_t results() const { return count[0] * count[1] * count[2] * count[3]; }
  bool is_as_large(const Box& other) const { return std::equal(count, count + 4, other.count); }
};

struct Plan {
  std::int64_t examples;
  PlannedAxis axes[3];

  std::int64_t taps() const { return axes[0].taps * axes[1].taps * axes[2].taps; }
  std::int64_t planes() const { return axes[0].planes * axes[1].planes * axes[2].planes; }
  /// The size of one plane.
  std::int64_t plane_size(const std::int64_t (&count)[4]) const {
    return count[0] * axes[0].length(count[1]) * axes[1].length(count[2]) * axes[2].length(count[3]) + tail(count);
  }
  /// Zeros behind the last line that share_zeros has removed from the lines.
  std::int64_t tail(const std::int64_t (&count)[4]) const {
    std::int64_t lines = axes[0].shared_zeros * axes[1].length(count[2]) + axes[1].shared_zeros;
    return lines * axes[2].length(count[3]) + axes[2].shared_zeros;
  }
  /// The distance from the first result of a box to the end of its last, with lines and images as long as in the
  /// planes.
  std::int64_t run(const std::int64_t (&count)[4]) const {
    return (((count[0] - 1) * axes[0].length(count[1]) + count[1] - 1) * axes[1].length(count[2]) + count[2] - 1) *
               axes[2].length(count[3]) +
           count[3];
  }
  /// The offset of the elements that a tap reads, from the first plane's first element.
  std::int64_t offset_of(std::int64_t td, std::int64_t th, std::int64_t tw, const std::int64_t (&count)[4]) const {
    std::int64_t plane =
        (axes[0].plane_of(td) * axes[1].planes + axes[1].plane_of(th)) * axes[2].planes + axes[2].plane_of(tw);
    std::int64_t line = axes[2].length(count[3]);
    return plane * plane_size(count) + (axes[0].shift_of(td) * axes[1].length(count[2]) + axes[1].shift_of(th)) * line +
           axes[2].shift_of(tw);
  }

  /// The offsets of all taps, in row-major order.
  void list_offsets(const std::int64_t (&count)[4], std::int64_t* offsets) const {
    for (std::int64_t td = 0; td < axes[0].taps; ++td)
      for (std::int64_t th = 0; th < axes[1].taps; ++th)
        for (std::int64_t tw = 0; tw < axes[2].taps; ++tw) *offsets++ = offset_of(td, th, tw, count);
  }

  /// Shared planes are smaller; columns compute no elements between the lines of results. A computed element costs a
  /// multiplication for each tap and channel of the result, 32 of which take about a cycle; packing an element of a
  /// plane takes a good half of a cycle.
  void choose_planes(std::int64_t result_channels) {
    for (PlannedAxis& axis : axes) axis.share();
    double each = static_cast<double>(taps()) * static_cast<double>(result_channels) / 32;
    PlannedAxis& last = axes[2];
    if (static_cast<double>(last.longest_shift) / static_cast<double>(last.count) * each >
        0.6 * static_cast<double>(last.taps - last.planes))
      last.use_columns();
    for (PlannedAxis& axis : axes)
      if (axis.longest_shift > axis.count) axis.use_columns();
  }
};

/// A division of the results into boxes of about equal size.
struct Boxes {
  std::int64_t whole[4], parts[4];

  /// A single box of all results.
  explicit Boxes(const Plan& plan)
      : whole{plan.examples, plan.axes[0].count, plan.axes[1].count, plan.axes[2].count}, parts{1, 1, 1, 1} {}

  /// Divides the outermost axes until size(counts) is at most `limit`, or cannot become smaller.
  template <class Size>
  void cut(std::int64_t limit, Size size) {
    for (int axis = 0; axis < 4; ++axis)
      while (parts[axis] < whole[axis] && size(largest()) > limit) {
        double excess = static_cast<double>(size(largest())) / static_cast<double>(limit);
        double more = static_cast<double>(parts[axis]) * std::max(excess, 1.05);
        parts[axis] = std::min(
            whole[axis],
            std::max(parts[axis] + 1, static_cast<std::int64_t>(std::min(more, static_cast<double>(whole[axis])))));
      }
  }
  struct Counts {
    std::int64_t of[4];
  };
  Counts largest() const {
    Counts counts;
    for (int axis = 0; axis < 4; ++axis) counts.of[axis] = (whole[axis] + parts[axis] - 1) / parts[axis];
    return counts;
  }
  std::int64_t count() const { return parts[0] * parts[1] * parts[2] * parts[3]; }
  Box operator[](std::int64_t i) const {
    Box box;
    for (int axis = 4; axis-- > 0; i /= parts[axis]) {
      std::int64_t part = i % parts[axis];
      box.begin[axis] = whole[axis] * part / parts[axis];
      box.count[axis] = whole[axis] * (part + 1) / parts[axis] - box.begin[axis];
    }
    return box;
  }
};

/// The elements of begin, begin + step, … that are in [0, size).
struct Inside {
  std::int64_t before, count;

  Inside(std::int64_t begin, std::int64_t step, std::int64_t size, std::int64_t length)
      : before(begin >= 0 ? 0 : std::min(length, (-begin - 1) / step + 1)),
        count(begin >= size ? 0 : std::min(length, (size - begin - 1) / step + 1) - before) {}
};

/// Calls line(to, from, step, before, inside, after) for the lines of the planes of a box: at offset `to` there are
/// `before` zeros, then `inside` elements of the source, from `from` on with stride `step`, then `after` zeros.
/// Consecutive lines of zeros are merged.
template <class Line>
void for_each_line(const Plan& plan, const Box& box, const std::int64_t (&strides)[3], std::int64_t example_stride,
                   Line line) {
  const auto& [deep, high, wide] = plan.axes;
  std::int64_t depth = deep.length(box.count[1]), height = high.length(box.count[2]), width = wide.length(box.count[3]);
  std::int64_t to = 0;
  for (std::int64_t u = 0; u < plan.planes(); ++u) {
    std::int64_t d0 = box.begin[1] * deep.stride + deep.start_of(u / (high.planes * wide.planes));
    std::int64_t h0 = box.begin[2] * high.stride + high.start_of(u / wide.planes % high.planes);
    std::int64_t w0 = box.begin[3] * wide.stride + wide.start_of(u % wide.planes);
    Inside rows(h0, high.stride, high.source, height), places(w0, wide.stride, wide.source, width);
    for (std::int64_t n = 0; n < box.count[0]; ++n)
      for (std::int64_t i = 0; i < depth; ++i) {
        std::int64_t d = d0 + i * deep.stride;
        if (d < 0 || d >= deep.source || rows.count <= 0 || places.count <= 0) {
          line(to, 0, 0, height * width, 0, 0);
          to += height * width;
          continue;
        }
        if (rows.before > 0) line(to, 0, 0, rows.before * width, 0, 0);
        to += rows.before * width;
        std::int64_t from = (box.begin[0] + n) * example_stride + d * strides[0] +
                            (h0 + rows.before * high.stride) * strides[1] +
                            (w0 + places.before * wide.stride) * strides[2];
        // Contiguous rows without zeros are merged, too.
        std::int64_t step = wide.stride * strides[2], row_stride = high.stride * strides[1];
        std::int64_t joined = places.count == width && row_stride == width * step ? rows.count : 1;
        for (std::int64_t j = 0; j < rows.count; j += joined, to += joined * width, from += row_stride)
          line(to, from, step, places.before, joined * places.count, width - places.before - places.count);
        std::int64_t below = height - rows.before - rows.count;
        if (below > 0) line(to, 0, 0, below * width, 0, 0);
        to += below * width;
      }
    std::int64_t tail = plan.tail(box.count);
    if (tail > 0) line(to, 0, 0, tail, 0, 0);
    to += tail;
  }
}

}  // namespace reel::detail::inline REEL_TARGET
