#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "../../../core/convert.h"
#include "../../../core/dtype_dispatch.h"
#include "../../../core/threads/parallel.h"
#include "../products/gemm.h"
#include "convolution.h"
#include "convolution_columns.h"
#include "convolution_dots.h"
#include "convolution_lines.h"
#include "convolution_plan.h"

// The gradient by the weights: for each tap a product of matrices over all positions. In each box of positions, d is
// packed with 32 channels interleaved, x with up to 14, so that all that the taps need of both stays in the first-level
// cache, and tiles of the product stay in registers over all positions of the box; few channels of x leave room in a
// tile for several taps. The boxes are divided into a number of parts that does not depend on the threads; the parts'
// sums are added in order. If d has few channels in a group, above all if each channel is a group, vectors of channels
// would be mostly empty: then inner products of lines of d with lines of x are formed.

namespace reel::detail::inline REEL_TARGET {
namespace {

// The number of positions for which the packed channels of a tile fit the first-level cache.
constexpr std::int64_t box_places = 192;
// The number of positions if the sums exceed the second-level cache: then they are updated less often.
constexpr std::int64_t large_box_places = 1024, large_sums = 1 << 18;
// The number of positions if x has few channels, of which little is packed: then boxes share fewer of their borders.
constexpr std::int64_t few_x_channels = 4, few_channels_box_places = 768;
// The number of positions in a box of lines.
constexpr std::int64_t line_places = 4096;
// The number of parts of the sum over all boxes, and the largest size of their sums in bytes.
constexpr std::int64_t most_parts = 8, most_bytes = 1 << 24;
constexpr double parallel_cost = 1 << 24, part_cost = parallel_cost / 4;
// The cost of packing an element, in multiplications.
constexpr double move_cost = 32;

template <class T>
struct WeightTiles {
  using G = Gemm<T>;
  static constexpr std::int64_t lanes = G::lanes;
  static constexpr int most_rows = G::tile_rows;
  static constexpr int unit = most_rows >= 12 ? 4 : 2;

  struct LineOffsets {
    const std::int64_t* offsets;
    std::int64_t count, length;
  };
  struct SumStrides {
    std::int64_t tap, row;
  };

  // Few channels of x leave most rows of a tile empty; more taps fill them.
  static constexpr int taps_together(int rows) { return std::min(4, most_rows / rows); }
  template <bool is_joined>
  static constexpr int taps_of(int rows) {
    return is_joined ? taps_together(rows) : 1;
  }

  /// c += Σ of a b over the positions of all lines, for `rows` channels of x, shifted for each of `taps` taps, and
  /// `vectors` vectors of channels of d. The lines of d are contiguous.
  template <int rows, int vectors, int taps>
  static void tile(const LineOffsets& lines, const T* a, const std::int64_t* tap_offsets, const T* b, T* c,
                   const SumStrides& strides) {
    const typename G::Tag tag;
    typename G::Lanes sums[taps][rows][vectors];
    std::int64_t shifts[taps];
#pragma GCC unroll 16
    for (int t = 0; t < taps; ++t) {
      shifts[t] = tap_offsets[t] * rows;
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
        for (int v = 0; v < vectors; ++v) sums[t][r][v] = hn::Zero(tag);
    }
    for (std::int64_t line = 0; line < lines.count; ++line) {
      const T* from = a + lines.offsets[line] * rows;
      for (std::int64_t i = 0; i < lines.length; ++i) {
        typename G::Lanes from_b[vectors];
#pragma GCC unroll 16
        for (int v = 0; v < vectors; ++v) from_b[v] = hn::LoadU(tag, b + v * lanes);
#pragma GCC unroll 16
        for (int t = 0; t < taps; ++t)
#pragma GCC unroll 16
          for (int r = 0; r < rows; ++r) {
            typename G::Lanes from_a = hn::Set(tag, from[shifts[t] + r]);
#pragma GCC unroll 16
            for (int v = 0; v < vectors; ++v) sums[t][r][v] = hn::MulAdd(from_a, from_b[v], sums[t][r][v]);
          }
        from += rows;
        b += vectors * lanes;
      }
    }
#pragma GCC unroll 16
    for (int t = 0; t < taps; ++t)
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
        for (int v = 0; v < vectors; ++v) {
          T* to = c + t * strides.tap + r * strides.row + v * lanes;
          hn::StoreU(hn::Add(hn::LoadU(tag, to), sums[t][r][v]), tag, to);
        }
  }

  using Kernel = void (*)(const LineOffsets& lines, const T* a, const std::int64_t* tap_offsets, const T* b, T* c,
                          const SumStrides& strides);
  template <int vectors, bool is_joined, int... rows>
  static constexpr std::array<Kernel, most_rows> make_kernels(std::integer_sequence<int, rows...>) {
    return {tile<rows + 1, vectors, taps_of<is_joined>(rows + 1)>...};
  }
  template <int vectors, bool is_joined>
  static constexpr std::array<Kernel, most_rows> kernels =
      make_kernels<vectors, is_joined>(std::make_integer_sequence<int, most_rows>());

  /// c += Σ of a b as in `tile`, for all taps.
  template <int vectors>
  static void all_taps(const LineOffsets& lines, const T* a, std::int64_t rows, std::span<const std::int64_t> taps,
                       const T* b, T* c, const SumStrides& strides) {
    std::size_t together = static_cast<std::size_t>(taps_together(static_cast<int>(rows))), tap = 0;
    auto run = [&](Kernel kernel) {
      kernel(lines, a, &taps[tap], b, c + static_cast<std::int64_t>(tap) * strides.tap, strides);
    };
    for (; tap + together <= taps.size(); tap += together) run(kernels<vectors, true>[rows - 1]);
    for (; tap < taps.size(); ++tap) run(kernels<vectors, false>[rows - 1]);
  }
};

template <class S, class T>
struct WeightGradient {
  using Tiles = WeightTiles<T>;
  static constexpr std::int64_t lanes = Tiles::lanes, wide_block = 2 * lanes;

  Images<const S> x, d;
  S* out;
  std::int64_t groups;
  Plan plan;

  std::int64_t x_channels() const { return x.channels / groups; }
  std::int64_t d_channels() const { return d.channels / groups; }
  // Panels consist of whole squares, which can be transposed.
  std::int64_t panels() const {
    constexpr std::int64_t most = Tiles::most_rows / Tiles::unit * Tiles::unit;
    return (x_channels() + most - 1) / most;
  }
  std::int64_t panel_begin(std::int64_t panel) const {
    std::int64_t units = (x_channels() + Tiles::unit - 1) / Tiles::unit;
    return std::min(units * panel / panels() * Tiles::unit, x_channels());
  }
  bool by_lines() const { return d_channels() <= lanes / 4; }
  // The width to which Gemm::pack_columns pads.
  std::int64_t padded_d_channels() const {
    if (by_lines()) return d_channels();
    std::int64_t rest = d_channels() % wide_block;
    return d_channels() - rest + (rest == 0 ? 0 : rest > lanes ? wide_block : lanes);
  }
  // Layout: [tap][channel of x][channel of d].
  std::int64_t sums_size() const { return plan.taps() * x_channels() * padded_d_channels(); }

  [[gnu::noinline]] void pack_d(T* to, std::int64_t group, const Box& box) const {
    const S* first = d.data + group * d_channels() * d.channel_stride;
    std::int64_t places = box.results(), whole = d_channels() / wide_block * wide_block;
    std::int64_t last_block = padded_d_channels() - whole;
    // Contiguous lines are packed at once.
    bool joined = box.count[3] == d.dims[2] && d.strides[1] == d.dims[2] * d.strides[2];
    std::int64_t joined_lines = joined ? box.count[2] : 1, place = 0;
    for (std::int64_t n = 0; n < box.count[0]; ++n)
      for (std::int64_t i = 0; i < box.count[1]; ++i)
        for (std::int64_t j = 0; j < box.count[2]; j += joined_lines) {
          const S* line = first + (box.begin[0] + n) * d.example_stride + (box.begin[1] + i) * d.strides[0] +
                          (box.begin[2] + j) * d.strides[1] + box.begin[3] * d.strides[2];
          std::int64_t count = box.count[3] * joined_lines;
          for (std::int64_t c = 0; c < d_channels(); c += wide_block) {
            std::int64_t there = std::min(wide_block, d_channels() - c);
            std::int64_t block = c < whole ? wide_block : last_block;
            Gemm<T>::pack_columns(Matrix<S>{line + c * d.channel_stride, count, there, d.strides[2], d.channel_stride},
                                  to + c * places + place * block, false);
          }
          place += count;
        }
  }

  // Interleaves the channels' elements.
  void transpose_line(T* to, const S* from, std::int64_t step, std::int64_t count, std::int64_t rows) const {
    std::int64_t whole = 0, whole_rows = 0;
    if constexpr (std::is_same_v<S, T>)
      if (step == 1) {
        constexpr std::int64_t side = Gemm<T>::square_lanes;
        whole = count / side * side;
        whole_rows = rows / side * side;
        for (std::int64_t i = 0; i < whole; i += side)
          for (std::int64_t r = 0; r < whole_rows; r += side)
            Gemm<T>::transpose_square(from + r * x.channel_stride + i, x.channel_stride, to + i * rows + r, rows);
      }
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t r = i < whole ? whole_rows : 0; r < rows; ++r)
        to[i * rows + r] = convert<T>(from[i * step + r * x.channel_stride]);
  }

  [[gnu::noinline]] void pack_x(T* to, std::int64_t group, const Box& box) const {
    std::int64_t size = plan.planes() * plan.plane_size(box.count);
    for (std::int64_t panel = 0; panel < panels(); ++panel) {
      std::int64_t begin = panel_begin(panel), rows = panel_begin(panel + 1) - begin;
      T* panel_to = to + begin * size;
      const S* image = x.data + (group * x_channels() + begin) * x.channel_stride;
      for_each_line(plan, box, x.strides, x.example_stride,
                    [&](std::int64_t place, std::int64_t offset, std::int64_t step, std::int64_t before,
                        std::int64_t inside, std::int64_t after) {
                      T* line = panel_to + place * rows;
                      zero_line(line, before * rows);
                      line += before * rows;
                      const S* from = image + offset;
                      transpose_line(line, from, step, inside, rows);
                      zero_line(line + inside * rows, after * rows);
                    });
    }
  }

  void add_box(T* sums, std::int64_t group, const Box& box) const {
    const auto& [deep, high, wide] = plan.axes;
    std::int64_t places = box.results(), size = plan.planes() * plan.plane_size(box.count);
    std::int64_t lines = box.count[0] * box.count[1] * box.count[2];
    static constinit ThreadScratch scratch, line_scratch;
    T* packed_d = scratch.get<T>(padded_d_channels() * places + x_channels() * size);
    T* packed_x = packed_d + padded_d_channels() * places;
    pack_d(packed_d, group, box);
    pack_x(packed_x, group, box);
    std::int64_t* offsets = line_scratch.get<std::int64_t>(lines + plan.taps());
    list_lines(box, deep.length(box.count[1]), high.length(box.count[2]), wide.length(box.count[3]), offsets);
    std::span<std::int64_t> tap_offsets(offsets + lines, static_cast<std::size_t>(plan.taps()));
    plan.list_offsets(box.count, tap_offsets.data());
    typename Tiles::LineOffsets all{offsets, lines, box.count[3]};
    std::int64_t step = padded_d_channels();
    for (std::int64_t c = 0; c < step; c += wide_block)
      for (std::int64_t panel = 0; panel < panels(); ++panel) {
        std::int64_t begin = panel_begin(panel), rows = panel_begin(panel + 1) - begin;
        const T *a = packed_x + begin * size, *b = packed_d + c * places;
        T* to = sums + begin * step + c;
        if (step - c >= wide_block)
          Tiles::template all_taps<2>(all, a, rows, tap_offsets, b, to, {x_channels() * step, step});
        else
          Tiles::template all_taps<1>(all, a, rows, tap_offsets, b, to, {x_channels() * step, step});
      }
  }

  // Lists where the lines of a box begin in a dense box of d, or in the planes of x.
  void list_lines(const Box& box, std::int64_t depth, std::int64_t height, std::int64_t width,
                  std::int64_t* offsets) const {
    for (std::int64_t n = 0; n < box.count[0]; ++n)
      for (std::int64_t i = 0; i < box.count[1]; ++i)
        for (std::int64_t j = 0; j < box.count[2]; ++j) *offsets++ = ((n * depth + i) * height + j) * width;
  }

  void list_lines_in_place(const Box& box, std::int64_t* offsets) const {
    for (std::int64_t n = 0; n < box.count[0]; ++n)
      for (std::int64_t i = 0; i < box.count[1]; ++i)
        for (std::int64_t j = 0; j < box.count[2]; ++j)
          *offsets++ = (box.begin[0] + n) * d.example_stride + (box.begin[1] + i) * d.strides[0] +
                       (box.begin[2] + j) * d.strides[1] + box.begin[3];
  }

  // Layout of the sums: [channel of d][channel of x][tap].
  void add_box_by_lines(T* sums, const Box& box) const {
    const auto& [deep, high, wide] = plan.axes;
    std::int64_t places = box.results(), size = plan.planes() * plan.plane_size(box.count), taps = plan.taps();
    std::int64_t lines = box.count[0] * box.count[1] * box.count[2];
    static constinit ThreadScratch scratch, offset_scratch;
    T* dense = scratch.get<T>(places * d_channels() + size);
    T* packed_x = dense + places * d_channels();
    std::int64_t* d_offsets = offset_scratch.get<std::int64_t>(2 * lines + taps);
    std::int64_t *x_offsets = d_offsets + lines, *shifts = x_offsets + lines;
    bool in_place = std::is_same_v<S, T> && d.strides[2] == 1;
    if (in_place)
      list_lines_in_place(box, d_offsets);
    else
      list_lines(box, box.count[1], box.count[2], box.count[3], d_offsets);
    list_lines(box, deep.length(box.count[1]), high.length(box.count[2]), wide.length(box.count[3]), x_offsets);
    plan.list_offsets(box.count, shifts);
    for (std::int64_t group = 0; group < groups; ++group) {
      if (!in_place)
        for (std::int64_t c = 0; c < d_channels(); ++c) pack_d_lines(dense + c * places, group * d_channels() + c, box);
      for (std::int64_t r = 0; r < x_channels(); ++r) {
        pack_x_plane(packed_x, group * x_channels() + r, box);
        for (std::int64_t c = 0; c < d_channels(); ++c) {
          LinePairs<T> pairs{dense + c * places, packed_x, d_offsets, x_offsets, lines, box.count[3]};
          if constexpr (std::is_same_v<S, T>)
            if (in_place) pairs.d = d.data + (group * d_channels() + c) * d.channel_stride;
          Dots<T>::add_all(pairs, shifts, taps, sums + ((group * d_channels() + c) * x_channels() + r) * taps);
        }
      }
    }
  }

  void pack_d_lines(T* to, std::int64_t channel, const Box& box) const {
    for (std::int64_t n = 0; n < box.count[0]; ++n)
      for (std::int64_t i = 0; i < box.count[1]; ++i)
        for (std::int64_t j = 0; j < box.count[2]; ++j, to += box.count[3])
          copy_line(to,
                    d.data + channel * d.channel_stride + (box.begin[0] + n) * d.example_stride +
                        (box.begin[1] + i) * d.strides[0] + (box.begin[2] + j) * d.strides[1] +
                        box.begin[3] * d.strides[2],
                    d.strides[2], box.count[3]);
  }

  void pack_x_plane(T* to, std::int64_t channel, const Box& box) const {
    const S* image = x.data + channel * x.channel_stride;
    for_each_line(
        plan, box, x.strides, x.example_stride,
        [&](std::int64_t place, std::int64_t offset, std::int64_t step, std::int64_t before, std::int64_t inside,
            std::int64_t after) { padded_line(to + place, image + offset, step, before, inside, after); });
  }

  void store(const T* sums, std::int64_t parts, std::int64_t part_stride, std::int64_t group) const {
    std::int64_t taps = plan.taps(), window = x_channels() * taps, step = padded_d_channels();
    S* to = out + group * d_channels() * window;
    auto total = [&](const T* from) {
      T sum = *from;
      for (std::int64_t part = 1; part < parts; ++part) sum += from[part * part_stride];
      return rounded<S>(sum);
    };
    if (by_lines()) {
      for (std::int64_t i = 0; i < d_channels() * window; ++i) to[i] = total(sums + i);
      return;
    }
    // Channels that share a cache line are read together.
    constexpr std::int64_t together = 16;
    for (std::int64_t begin = 0; begin < d_channels(); begin += together) {
      std::int64_t end = std::min(begin + together, d_channels());
      for (std::int64_t r = 0; r < x_channels(); ++r)
        for (std::int64_t tap = 0; tap < taps; ++tap)
          for (std::int64_t c = begin; c < end; ++c)
            to[c * window + r * taps + tap] = total(sums + (tap * x_channels() + r) * step + c);
    }
  }

  void add_boxes(T* to, std::int64_t group, const Boxes& boxes, std::int64_t begin, std::int64_t end) const {
    std::fill_n(to, by_lines() ? sums_size() * groups : sums_size(), T(0));
    for (std::int64_t i = begin; i < end; ++i)
      if (by_lines())
        add_box_by_lines(to, boxes[i]);
      else
        add_box(to, group, boxes[i]);
  }

  void run() {
    plan.choose_planes(1);
    Boxes boxes(plan);
    boxes.cut(by_lines()                       ? line_places
              : sums_size() > large_sums       ? large_box_places
              : x_channels() <= few_x_channels ? few_channels_box_places
                                               : box_places,
              [&](Boxes::Counts count) { return count.of[0] * count.of[1] * count.of[2] * count.of[3]; });
    std::int64_t room = most_bytes / static_cast<std::int64_t>(sizeof(T)) / (sums_size() * groups);
    std::int64_t parts = std::clamp(room, std::int64_t{1}, std::min(most_parts, boxes.count()));
    double each = static_cast<double>(x_channels()) * static_cast<double>(padded_d_channels()) *
                      static_cast<double>(plan.taps()) +
                  move_cost * static_cast<double>(x_channels() + d_channels());
    double cost = each * static_cast<double>(Boxes(plan)[0].results()) * static_cast<double>(groups);
    static constinit ThreadScratch scratch;
    T* sums = scratch.get<T>(sums_size() * groups * parts);
    // By lines, a job covers all groups, which are contiguous in memory.
    std::int64_t jobs = by_lines() ? parts : groups * parts, step = by_lines() ? sums_size() * groups : sums_size();
    auto body = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t job = begin; job < end; ++job) {
        std::int64_t part = job % parts;
        add_boxes(sums + job * step, job / parts, boxes, boxes.count() * part / parts,
                  boxes.count() * (part + 1) / parts);
      }
    };
    if (cost < parallel_cost)
      body(0, jobs);
    else
      parallel_for(jobs,
                   static_cast<std::int64_t>(
                       std::clamp(part_cost * static_cast<double>(jobs) / cost, 1.0, static_cast<double>(jobs))),
                   body);
    for (std::int64_t group = 0; group < groups; ++group)
      store(sums + group * sums_size() * (by_lines() ? 1 : parts), parts, step, group);
  }
};

template <class S>
void backward_weights(const View& out, const View& x, const View& d, const Convolution& c) {
  using T = Wide<S>;
  bool last = c.channels_last != 0;
  WeightGradient<S, T> gradient{
      images_of<const S>(x, last), images_of<const S>(d, last), out.as<S>(), c.groups, {x.dims[0], {}}};
  for (int axis = 0; axis < 3; ++axis)
    gradient.plan.axes[axis] =
        forward_axis(c, axis, gradient.d.dims[axis], gradient.x.dims[axis], window_of(out, axis));
  gradient.run();
}

}  // namespace

void convolve_backward_weights(const View& out, const View& x, const View& d, const Convolution& c) {
  if (out.numel == 0) return;
  if (x.numel > 0 && d.numel > 0 && pays_columns(x, out, d, c)) return backward_weights_by_columns(out, x, d, c);
  with_floating(out.dtype, [&]<class S>(std::type_identity<S>) {
    if (x.numel == 0 || d.numel == 0) return static_cast<void>(std::fill_n(out.as<S>(), out.numel, S{}));
    backward_weights<S>(out, x, d, c);
  });
}

}  // namespace reel::detail::inline REEL_TARGET
