#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <utility>

#include "../../../core/convert.h"
#include "../../../core/dtype_dispatch.h"
#include "../../../core/threads/parallel.h"
#include "../../cache_size.h"
#include "../products/gemm.h"
#include "../vector/streaming.h"
#include "convolution.h"
#include "convolution_columns.h"
#include "convolution_lines.h"
#include "convolution_plan.h"

// Forward and the gradient by data share this code: the latter correlates d with a part of the window for each
// remainder of a position divided by the stride. A box of the source is packed by planes, and each tap adds a product
// whose right operand begins at the tap's offset in the planes: tiles stay in registers over all taps and channels.
//
// oneDNN's kernels need blocks of 16 channels, so that x and y are copied to other layouts and back, and are generated for
// each shape: see "Convolutions" in tools/benchmark/README.md.

namespace reel::detail::inline REEL_TARGET {
namespace {

// The number of elements of a box, which shares the second-level cache with the weights.
std::int64_t largest_box() { return std::clamp<std::int64_t>(second_level_cache_bytes() / 4, 1 << 16, 1 << 18); }
// In multiplications: cheaper convolutions stay on one thread; the least that a thread gets. See matmul.cpp.
constexpr double parallel_cost = 1 << 24, part_cost = parallel_cost / 4;
// The cost of packing and storing an element, in multiplications.
constexpr double move_cost = 16;

template <class T>
struct Tiles {
  using G = Gemm<T>;
  static constexpr std::int64_t lanes = G::lanes;
  static constexpr int most_rows = G::tile_rows;
  // Few rows need more vectors to keep the processor busy.
  static constexpr int skinny_rows = 2;
  static constexpr int vectors_of(int rows) { return rows <= skinny_rows ? 4 : 2; }
  static constexpr std::int64_t widest = 4 * lanes;

  struct Depth {
    const std::int64_t* offsets;
    std::int64_t taps, channels, pitch;
  };

  /// c = Σ of a b over taps and channels, for `rows` channels of the result and `vectors` vectors of positions.
  template <int rows, int vectors>
  static void tile(const Depth& depth, const T* a, const T* b, T* c, std::int64_t c_stride) {
    const typename G::Tag tag;
    typename G::Lanes sums[rows][vectors];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) sums[r][v] = hn::Zero(tag);
    for (std::int64_t t = 0; t < depth.taps; ++t) {
      const T* from = b + depth.offsets[t];
      for (std::int64_t k = 0; k < depth.channels; ++k) {
        typename G::Lanes from_b[vectors];
#pragma GCC unroll 16
        for (int v = 0; v < vectors; ++v) from_b[v] = hn::LoadU(tag, from + v * lanes);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) {
          typename G::Lanes from_a = hn::Set(tag, a[r]);
#pragma GCC unroll 16
          for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(from_a, from_b[v], sums[r][v]);
        }
        a += rows;
        from += depth.pitch;
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) hn::StoreU(sums[r][v], tag, c + r * c_stride + v * lanes);
  }

  template <int rows>
  static void place(std::int64_t left, const Depth& depth, const T* a, const T* b, T* c, std::int64_t c_stride) {
    constexpr int vectors = vectors_of(rows);
    if (left > lanes)
      tile<rows, vectors>(depth, a, b, c, c_stride);
    else
      tile<rows, 1>(depth, a, b, c, c_stride);
  }

  using Kernel = void (*)(std::int64_t left, const Depth& depth, const T* a, const T* b, T* c, std::int64_t c_stride);
  template <int... rows>
  static constexpr std::array<Kernel, most_rows> make_kernels(std::integer_sequence<int, rows...>) {
    return {place<rows + 1>...};
  }
  static constexpr std::array<Kernel, most_rows> kernels = make_kernels(std::make_integer_sequence<int, most_rows>());
};

// The strides of a group's weights: by channel of the result, by channel of the source, and by element of the window.
template <class S>
struct Weights {
  const S* data;
  std::int64_t group_stride, result_stride, source_stride, strides[3];
};

template <class S, class T>
struct Correlation {
  Images<const S> source;
  Images<S> result;
  Weights<S> weights;
  const S* bias;
  std::int64_t bias_stride, groups;
  Plan plan;

  std::int64_t source_channels() const { return source.channels / groups; }
  std::int64_t result_channels() const { return result.channels / groups; }
  bool streams() const {
    std::int64_t elements = result.examples * result.channels * result.dims[0] * result.dims[1] * result.dims[2];
    return elements * static_cast<std::int64_t>(sizeof(S)) >= streaming_bytes;
  }
  std::int64_t panels() const { return (result_channels() + Tiles<T>::most_rows - 1) / Tiles<T>::most_rows; }
  std::int64_t panel_begin(std::int64_t panel) const { return result_channels() * panel / panels(); }

  // The distance between the channels' planes: an odd number of cache lines, so that they map to different cache sets.
  std::int64_t pitch(const std::int64_t (&count)[4]) const {
    constexpr std::int64_t line = 64 / sizeof(T);
    return ((plan.planes() * plan.plane_size(count) + line - 1) / line | 1) * line;
  }
  static std::int64_t sums_pitch(std::int64_t run) {
    return (run + 2 * Tiles<T>::widest - 1) / Tiles<T>::widest * Tiles<T>::widest;
  }

  // Packs the weights of a panel's channels, interleaved, because the weights of a window are read together.
  void pack_panel(T* to, std::int64_t group, std::int64_t panel) const {
    const auto& [deep, high, wide] = plan.axes;
    std::int64_t begin = panel_begin(panel), rows = panel_begin(panel + 1) - begin, sources = source_channels();
    const S* first = weights.data + group * weights.group_stride + begin * weights.result_stride +
                     deep.tap * weights.strides[0] + high.tap * weights.strides[1] + wide.tap * weights.strides[2];
    std::int64_t deep_stride = deep.tap_stride * weights.strides[0], high_stride = high.tap_stride * weights.strides[1];
    std::int64_t wide_stride = wide.tap_stride * weights.strides[2];
    for (std::int64_t k = 0; k < sources; ++k)
      for (std::int64_t r = 0; r < rows; ++r) {
        const S* window = first + k * weights.source_stride + r * weights.result_stride;
        T* place = to + k * rows + r;
        for (std::int64_t td = 0; td < deep.taps; ++td)
          for (std::int64_t th = 0; th < high.taps; ++th)
            for (std::int64_t tw = 0; tw < wide.taps; ++tw, place += sources * rows)
              *place = convert<T>(window[td * deep_stride + th * high_stride + tw * wide_stride]);
      }
  }

  // Packs all weights, panel by panel.
  void pack_weights(T* to, bool alone) const {
    auto body = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        std::int64_t group = i / panels(), panel = i % panels();
        std::int64_t before = group * result_channels() + panel_begin(panel);
        pack_panel(to + before * source_channels() * plan.taps(), group, panel);
      }
    };
    std::int64_t jobs = groups * panels(), elements = result.channels * source_channels() * plan.taps();
    if (alone)
      body(0, jobs);
    else
      parallel_for(jobs, std::clamp<std::int64_t>(parallel_grain * jobs / elements, 1, jobs), body);
  }

  [[gnu::noinline]] void pack_source(T* to, std::int64_t to_pitch, std::int64_t first_channel, const Box& box) const {
    // Adjacent channels are read together.
    std::int64_t together = source.channel_stride == 1 ? 16 : 1, channels = source_channels();
    for (std::int64_t begin = 0; begin < channels; begin += together) {
      std::int64_t count = std::min(together, channels - begin);
      const S* image = source.data + (first_channel + begin) * source.channel_stride;
      for_each_line(plan, box, source.strides, source.example_stride,
                    [&](std::int64_t place, std::int64_t offset, std::int64_t step, std::int64_t before,
                        std::int64_t inside, std::int64_t after) {
                      T* line = to + begin * to_pitch + place;
                      const S* from = image + offset;
                      if (count == 1) return padded_line(line, from, step, before, inside, after);
                      for (std::int64_t c = 0; c < count; ++c) {
                        zero_line(line + c * to_pitch, before);
                        zero_line(line + c * to_pitch + before + inside, after);
                      }
                      line += before;
                      for (std::int64_t i = 0; i < inside; ++i)
                        for (std::int64_t c = 0; c < count; ++c)
                          line[c * to_pitch + i] = convert<T>(from[i * step + c]);
                    });
    }
  }

  [[gnu::noinline]] void store(const T* sums, std::int64_t sums_stride, std::int64_t first_channel,
                               const Box& box) const {
    const auto& [deep, high, wide] = plan.axes;
    std::int64_t together = result.channel_stride == 1 ? 16 : 1, channels = result_channels();
    std::int64_t step = result.strides[2] * wide.step, line = wide.length(box.count[3]), length = box.count[3];
    // Lines that are contiguous in both the box and the result are stored at once.
    bool joined = line == length && length == result.dims[2] && high.step == 1 && step == 1 && together == 1;
    std::int64_t lines = joined ? box.count[2] : 1;
    // Elements for streaming stores are collected in a buffer first.
    static constinit ThreadScratch scratch;
    bool dense_there = streams() && length == result.dims[2] && high.step == 1 && step == 1 && together == 1;
    S* dense = dense_there ? scratch.get<S>(box.count[2] * length) : nullptr;
    for (std::int64_t begin = 0; begin < channels; begin += together) {
      std::int64_t count = std::min(together, channels - begin);
      for (std::int64_t n = 0; n < box.count[0]; ++n)
        for (std::int64_t i = 0; i < box.count[1]; ++i)
          for (std::int64_t j = 0; j < box.count[2]; j += lines) {
            const T* from = sums + begin * sums_stride +
                            ((n * deep.length(box.count[1]) + i) * high.length(box.count[2]) + j) * line;
            S* to = result.data + (box.begin[0] + n) * result.example_stride +
                    (first_channel + begin) * result.channel_stride +
                    (deep.first + (box.begin[1] + i) * deep.step) * result.strides[0] +
                    (high.first + (box.begin[2] + j) * high.step) * result.strides[1] +
                    (wide.first + box.begin[3] * wide.step) * result.strides[2];
            if (count == 1) {
              T shift = bias_of(first_channel + begin);
              if (dense)
                store_line(dense + j * length, 1, from, shift, length * lines);
              else
                store_line(to, step, from, shift, length * lines);
              if (!dense || j + lines < box.count[2]) continue;
              copy_streaming(to - j * length, dense, box.count[2] * length * static_cast<std::int64_t>(sizeof(S)));
              continue;
            }
            for (std::int64_t k = 0; k < length; ++k)
              for (std::int64_t c = 0; c < count; ++c)
                to[k * step + c] = rounded<S>(from[c * sums_stride + k] + bias_of(first_channel + begin + c));
          }
    }
  }

  T bias_of(std::int64_t channel) const { return bias ? convert<T>(bias[channel * bias_stride]) : T(0); }

  // Single channels per group, with contiguous lines, need no packing.
  bool by_lines() const {
    return has_masks && std::is_same_v<S, T> && source_channels() == 1 && result_channels() == 1 &&
           source.strides[2] == 1 && result.strides[2] == 1 && plan.axes[2].stride == 1 && plan.axes[2].step == 1;
  }

  // Lists the lines of the source on which a line of the result depends, and their weights.
  std::int64_t list_lines(const T* image, const T* packed_weights, std::int64_t i, std::int64_t j,
                          WeightedLine<T>* lines) const {
    const auto& [deep, high, wide] = plan.axes;
    std::int64_t count = 0;
    for (std::int64_t td = 0; td < deep.taps; ++td)
      for (std::int64_t th = 0; th < high.taps; ++th, packed_weights += wide.taps) {
        std::int64_t d = i * deep.stride + deep.offset + td * deep.offset_stride;
        std::int64_t h = j * high.stride + high.offset + th * high.offset_stride;
        if (d >= 0 && d < deep.source && h >= 0 && h < high.source)
          lines[count++] = {image + d * source.strides[0] + h * source.strides[1], packed_weights};
      }
    return count;
  }

  void work_by_lines(const T* packed_weights, std::int64_t channel, const Box& box) const {
    const auto& [deep, high, wide] = plan.axes;
    static constinit ThreadScratch scratch, dense_scratch;
    auto* lines = scratch.get<WeightedLine<T>>(deep.taps * high.taps);
    std::int64_t length = box.count[3], taps = wide.taps;
    const T* weights = packed_weights + channel * plan.taps();
    T shift = bias_of(channel);
    // Elements for streaming stores are collected in a buffer first.
    bool joined = streams() && length == result.dims[2] && high.step == 1;
    T* dense = joined ? dense_scratch.get<T>(box.count[2] * length) : nullptr;
    for (std::int64_t n = box.begin[0]; n < box.begin[0] + box.count[0]; ++n)
      for (std::int64_t i = box.begin[1]; i < box.begin[1] + box.count[1]; ++i) {
        const T* image = source.data + n * source.example_stride + channel * source.channel_stride;
        T* first = result.data + n * result.example_stride + channel * result.channel_stride +
                   (deep.first + i * deep.step) * result.strides[0] +
                   (high.first + box.begin[2] * high.step) * result.strides[1] + wide.first + box.begin[3];
        for (std::int64_t j = 0; j < box.count[2]; ++j) {
          std::int64_t count = list_lines(image, weights, i, box.begin[2] + j, lines);
          T* to = joined ? dense + j * length : first + j * high.step * result.strides[1];
          std::int64_t begin = box.begin[3] + wide.offset, step = wide.offset_stride, size = wide.source, k = 0;
          constexpr std::int64_t lanes = Tiles<T>::lanes;
          for (; length - k > 2 * lanes; k += std::min(length - k, 4 * lanes))
            if (begin + k + lanes >= 0 && begin + k + (taps - 1) * step + 3 * lanes <= size)
              sum_lines<4, true>(to + k, length - k, lines, count, taps, begin + k, step, size, shift);
            else
              sum_lines<4, false>(to + k, length - k, lines, count, taps, begin + k, step, size, shift);
          for (; k < length; k += lanes)
            sum_lines<1, false>(to + k, length - k, lines, count, taps, begin + k, step, size, shift);
        }
        if (joined) copy_streaming(first, dense, box.count[2] * length * static_cast<std::int64_t>(sizeof(T)));
      }
  }

  // Lines with the same range of taps are merged: run(first position, positions, first tap, taps).
  template <class Run>
  void for_each_run(const Box& box, Run run) const {
    const auto& [deep, high, wide] = plan.axes;
    std::int64_t line = wide.length(box.count[3]), image = high.length(box.count[2]) * line;
    for (std::int64_t i = 0; i < box.count[0] * deep.length(box.count[1]); ++i)
      for (std::int64_t j = 0, end = 0; j < box.count[2]; j = end) {
        PlannedAxis::Taps taps = high.taps_inside(box.begin[2] + j);
        for (end = j + 1; end < box.count[2] && high.taps_inside(box.begin[2] + end) == taps;) ++end;
        run(i * image + j * line, (end - j - 1) * line + box.count[3], taps.begin * wide.taps,
            std::max<std::int64_t>(taps.end - taps.begin, 0) * wide.taps);
      }
  }

  // Returns true if skipping the taps that read only zeros is less work, although more vectors are partly filled.
  bool skips(const Box& box) const {
    if (plan.axes[0].taps > 1 || plan.axes[0].length(box.count[1]) != box.count[1]) return false;
    constexpr std::int64_t lanes = Tiles<T>::lanes;
    std::int64_t vectors = 0;
    for_each_run(box, [&](std::int64_t, std::int64_t length, std::int64_t, std::int64_t taps) {
      vectors += (length + lanes - 1) / lanes * taps;
    });
    return vectors < (plan.run(box.count) + lanes - 1) / lanes * plan.taps();
  }

  void work(const T* packed_weights, const std::int64_t* offsets, std::int64_t group, const Box& box) const {
    std::int64_t step = pitch(box.count), run = plan.run(box.count), sums_stride = sums_pitch(run);
    std::int64_t sources = source_channels(), results = result_channels();
    std::int64_t packed_size = sources * step + Tiles<T>::widest;
    static constinit ThreadScratch scratch;
    T* packed = scratch.get<T>(packed_size + results * sums_stride);
    T* sums = packed + packed_size;
    pack_source(packed, step, group * sources, box);
    bool by_rows = skips(box);
    // All positions for one panel after the other: otherwise many weights would be read again and again.
    for (std::int64_t panel = 0; panel < panels(); ++panel) {
      std::int64_t begin = panel_begin(panel), rows = panel_begin(panel + 1) - begin;
      std::int64_t wide = Tiles<T>::vectors_of(static_cast<int>(rows)) * Tiles<T>::lanes;
      const T* a = packed_weights + (group * results + begin) * plan.taps() * sources;
      T* to = sums + begin * sums_stride;
      auto work_run = [&](std::int64_t first, std::int64_t length, std::int64_t tap, std::int64_t taps) {
        typename Tiles<T>::Depth depth{offsets + tap, taps, sources, step};
        for (std::int64_t place = 0; place < length; place += wide)
          Tiles<T>::kernels[rows - 1](length - place, depth, a + tap * sources * rows, packed + first + place,
                                      to + first + place, sums_stride);
      };
      if (by_rows)
        for_each_run(box, work_run);
      else
        work_run(0, run, 0, plan.taps());
    }
    store(sums, sums_stride, group * results, box);
  }

  void run() {
    plan.choose_planes(result_channels());
    Boxes boxes(plan);
    double channels = static_cast<double>(source_channels()), results = static_cast<double>(result_channels());
    double multiplications = channels * results * static_cast<double>(plan.taps());
    double moves = move_cost * (channels * static_cast<double>(plan.planes()) + results);
    double cost = (multiplications + moves) * static_cast<double>(boxes[0].results()) * static_cast<double>(groups);
    std::int64_t limit = std::min(largest_box(), (source_channels() + result_channels()) << 12);
    auto size = [&](Boxes::Counts count) {
      return source_channels() * pitch(count.of) + result_channels() * sums_pitch(plan.run(count.of));
    };
    for (PlannedAxis& axis : plan.axes) axis.share_zeros();
    boxes.cut(limit, size);
    // If an axis is divided, the lines of a box need not end with zeros.
    for (int axis = 0; axis < 3; ++axis)
      if (boxes.parts[axis + 1] > 1) plan.axes[axis].shared_zeros = 0;

    static constinit ThreadScratch weight_scratch;
    T* packed = weight_scratch.get<T>(result.channels * source_channels() * plan.taps());
    pack_weights(packed, cost < parallel_cost);
    std::int64_t jobs = boxes.count() * groups;
    double part = std::max(part_cost * static_cast<double>(jobs) / cost, 1.0);
    auto body = [&](std::int64_t begin, std::int64_t end) {
      static constinit ThreadScratch scratch;
      std::int64_t* offsets = scratch.get<std::int64_t>(plan.taps());
      Box box{};
      for (std::int64_t job = begin; job < end; ++job) {
        if (job == begin || job % groups == 0) {
          Box next = boxes[job / groups];
          if (!next.is_as_large(box)) plan.list_offsets(next.count, offsets);
          box = next;
        }
        if constexpr (has_masks && std::is_same_v<S, T>)
          if (by_lines()) {
            work_by_lines(packed, job % groups, box);
            continue;
          }
        work(packed, offsets, job % groups, box);
      }
      if (streams()) end_streaming();
    };
    if (cost < parallel_cost)
      body(0, jobs);
    else
      parallel_for(jobs, static_cast<std::int64_t>(std::min(part, static_cast<double>(jobs))), body);
  }

  // Fills results that depend on no element of the source.
  void fill_with_bias() const {
    for (std::int64_t n = 0; n < result.examples; ++n)
      for (std::int64_t c = 0; c < result.channels; ++c) {
        S value = rounded<S>(bias_of(c));
        for (std::int64_t i = 0; i < result.dims[0]; ++i)
          for (std::int64_t j = 0; j < result.dims[1]; ++j)
            for (std::int64_t k = 0; k < result.dims[2]; ++k)
              result.data[n * result.example_stride + c * result.channel_stride + i * result.strides[0] +
                          j * result.strides[1] + k * result.strides[2]] = value;
      }
  }
};

template <class S>
Weights<S> weights_of(const View& w, std::int64_t groups, bool backward_data) {
  Weights<S> weights{w.as<S>(),
                     w.dims[0] / groups * w.strides[0],
                     w.strides[backward_data ? 1 : 0],
                     w.strides[backward_data ? 0 : 1],
                     {0, 0, 0}};
  int spatial = w.rank - 2;
  for (int i = 0; i < spatial; ++i) weights.strides[3 - spatial + i] = w.strides[2 + i];
  return weights;
}

// The results whose remainder, divided by the stride, is that for which tap `least` of the window is the first.
PlannedAxis remainder_axis(const Convolution& c, int axis, std::int64_t results, std::int64_t source,
                           std::int64_t window, std::int64_t least) {
  std::int64_t stride = c.stride[axis], dilation = c.dilation[axis], padding = c.padding[axis];
  std::int64_t common = std::gcd(stride, dilation), apart = stride / common;
  std::int64_t first = (least * dilation - padding) % stride;
  if (first < 0) first += stride;
  PlannedAxis planned{};
  planned.first = first;
  planned.step = stride;
  planned.count = results > first ? (results - first - 1) / stride + 1 : 0;
  planned.source = source;
  planned.stride = 1;
  planned.taps = (window - least - 1) / apart + 1;
  planned.tap = least + (planned.taps - 1) * apart;
  planned.tap_stride = -apart;
  planned.offset = (first + padding - planned.tap * dilation) / stride;
  planned.offset_stride = dilation / common;
  return planned;
}

template <class S>
using Sum = Wide<S>;

template <class S>
Correlation<S, Sum<S>> correlation_of(const View& out, const View& source, const View& w, const View* bias,
                                      const Convolution& c, bool backward_data) {
  bool last = c.channels_last != 0;
  return {images_of<const S>(source, last),
          images_of<S>(out, last),
          weights_of<S>(w, c.groups, backward_data),
          bias ? bias->as<S>() : nullptr,
          bias ? bias->strides[0] : 0,
          c.groups,
          {out.dims[0], {}}};
}

template <class S>
void forward(const View& out, const View& x, const View& w, const View* bias, const Convolution& c) {
  auto correlation = correlation_of<S>(out, x, w, bias, c, false);
  for (int axis = 0; axis < 3; ++axis)
    correlation.plan.axes[axis] =
        forward_axis(c, axis, correlation.result.dims[axis], correlation.source.dims[axis], window_of(w, axis));
  correlation.run();
}

template <class S>
void backward_data(const View& out, const View& d, const View& w, const View* bias, const Convolution& c) {
  auto correlation = correlation_of<S>(out, d, w, bias, c, true);
  std::int64_t remainders[3], all = 1;
  bool gaps = false;
  for (int axis = 0; axis < 3; ++axis) {
    std::int64_t apart = c.stride[axis] / std::gcd(c.stride[axis], c.dilation[axis]);
    remainders[axis] = std::min(window_of(w, axis), apart);
    all *= remainders[axis];
    gaps |= remainders[axis] < c.stride[axis];
  }
  if (gaps) correlation.fill_with_bias();
  for (std::int64_t i = 0; i < all; ++i) {
    std::int64_t rest = i;
    bool any = true;
    for (int axis = 3; axis-- > 0; rest /= remainders[axis]) {
      PlannedAxis& planned = correlation.plan.axes[axis];
      planned = remainder_axis(c, axis, correlation.result.dims[axis], correlation.source.dims[axis],
                               window_of(w, axis), rest % remainders[axis]);
      any &= planned.count > 0;
    }
    if (any) correlation.run();
  }
}

}  // namespace

void convolve_forward(const View& out, const View& x, const View& w, const View* bias, const Convolution& c) {
  if (out.numel == 0) return;
  if (pays_columns(x, w, out, c)) return forward_by_columns(out, x, w, bias, c);
  with_floating(out.dtype, [&]<class S>(std::type_identity<S>) { forward<S>(out, x, w, bias, c); });
}

void convolve_backward_data(const View& out, const View& d, const View& w, const View* bias, const Convolution& c) {
  if (out.numel == 0) return;
  if (d.numel > 0 && pays_columns(out, w, d, c)) return backward_data_by_columns(out, d, w, bias, c);
  with_floating(out.dtype, [&]<class S>(std::type_identity<S>) { backward_data<S>(out, d, w, bias, c); });
}

}  // namespace reel::detail::inline REEL_TARGET
