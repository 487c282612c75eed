#include "block_loop.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "../../../core/dtype_dispatch.h"
#include "../../../core/halves.h"
#include "../../../core/iteration.h"
#include "../../../core/threads/parallel.h"
#include "../instruction_set.h"
#include "../products/transpose.h"
#include "copy_every.h"
#include "half_rows.h"
#include "vector.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// The number of elements that go through a buffer at once: few enough for all buffers to stay in the first-level cache.
constexpr std::int64_t block = 512;
// Shorter rows are collected until they fill a block.
constexpr std::int64_t short_row = 32;
// A thread gets a multiple of this many elements.
constexpr std::int64_t grain = 8 * block;

template <class T>
void load_plain(void* buffer, const void* from, std::int64_t step, std::int64_t count) {
  auto* to = static_cast<T*>(buffer);
  auto* x = static_cast<const T*>(from);
  if (step == 1)
    std::memcpy(to, x, static_cast<std::size_t>(count) * sizeof(T));
  else if (step == 0)
    std::fill_n(to, count, *x);
  else if (step == 2)
    copy_every<2>(to, x, count);
  else
    for (std::int64_t i = 0; i < count; ++i) to[i] = x[i * step];
}

// Loads several rows of `width` elements at once.
template <class T>
void load_plain_rows(void* buffer, const void* from, std::int64_t step, std::int64_t width, std::int64_t row_stride,
                     std::int64_t rows) {
  auto* to = static_cast<T*>(buffer);
  auto* x = static_cast<const T*>(from);
  if constexpr (sizeof(T) >= 4) {
    // Whole vectors, the last of which the next row overwrites.
    using V = Vector<T>;
    if (step == 0)
      for (std::int64_t row = 0; row < rows; ++row, x += row_stride, to += width)
        for (std::int64_t i = 0; i < width; i += V::lanes) V::repeat(*x).store(to + i);
    if (step == 1)
      for (std::int64_t row = 0; row < rows; ++row, x += row_stride, to += width) {
        std::int64_t i = 0;
        for (; i + V::lanes <= width; i += V::lanes) V::load(x + i).store(to + i);
        if (i < width) V::load(x + i, width - i).store(to + i);
      }
    if (step == 0 || step == 1) return;
  }
  // The longer loop inside.
  if (rows > width)
    for (std::int64_t i = 0; i < width; ++i)
      for (std::int64_t row = 0; row < rows; ++row) to[row * width + i] = x[row * row_stride + i * step];
  else
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t i = 0; i < width; ++i) to[row * width + i] = x[row * row_stride + i * step];
}

template <class Half>
void load_widened_rows(void* buffer, const void* from, std::int64_t step, std::int64_t width, std::int64_t row_stride,
                       std::int64_t rows) {
  Half halves[block];
  load_plain_rows<Half>(halves, from, step, width, row_stride, rows);
  widen_row(static_cast<float*>(buffer), halves, rows * width);
}

template <class Half>
void load_widened(void* buffer, const void* from, std::int64_t step, std::int64_t count) {
  widen_row(static_cast<float*>(buffer), static_cast<const Half*>(from), step, count);
}

template <class T>
void store_plain(void* to, const void* buffer, std::int64_t step, std::int64_t count) {
  auto* y = static_cast<T*>(to);
  auto* from = static_cast<const T*>(buffer);
  for (std::int64_t i = 0; i < count; ++i) y[i * step] = from[i];
}

template <class Half>
void store_narrowed(void* to, const void* buffer, std::int64_t step, std::int64_t count) {
  auto* from = static_cast<const float*>(buffer);
  if (step == 1) return narrow_row(static_cast<Half*>(to), from, count);
  Half halves[block];
  narrow_row(halves, from, count);
  store_plain<Half>(to, halves, step, count);
}

// Panels of an input whose elements are adjacent along another axis than the result's: as high as a line of memory has f32,
// and wide enough for a loop's call to cost little, but few enough bytes for the stack of a fibre.
constexpr std::int64_t panel_height = 16, panel_width = 64;

template <class T>
void load_panel(void* panel, const void* from, std::int64_t step, std::int64_t height, std::int64_t width) {
  transpose_panel(static_cast<T*>(panel), panel_width, static_cast<const T*>(from), step, height, width, 0);
}

// How the elements of a view are loaded into a buffer and stored.
struct Operand {
  std::byte* data;
  std::int64_t size, size_in_buffer;
  bool converts, flat;
  void (*load)(void* buffer, const void* from, std::int64_t step, std::int64_t count);
  void (*load_rows)(void* buffer, const void* from, std::int64_t step, std::int64_t width, std::int64_t row_stride,
                    std::int64_t rows);
  void (*store)(void* to, const void* buffer, std::int64_t step, std::int64_t count);
  void (*transpose)(void* panel, const void* from, std::int64_t step, std::int64_t height, std::int64_t width);

  Operand() = default;
  Operand(const View& view, std::int64_t numel, bool widens) {
    data = view.as<std::byte>();
    size = size_in_buffer = static_cast<std::int64_t>(size_of(view.dtype));
    flat = view.contiguous && view.numel == numel;
    with_bits(view.dtype, [this]<class T>(std::type_identity<T>) { transpose = load_panel<T>; });
    converts = widens && (view.dtype == DType::bf16 || view.dtype == DType::f16);
    if (converts) {
      size_in_buffer = sizeof(float);
      bool brain = view.dtype == DType::bf16;
      load = brain ? load_widened<BFloat16> : load_widened<Float16>;
      load_rows = brain ? load_widened_rows<BFloat16> : load_widened_rows<Float16>;
      store = brain ? store_narrowed<BFloat16> : store_narrowed<Float16>;
    } else {
      with_bits(view.dtype, [this]<class T>(std::type_identity<T>) {
        load = load_plain<T>;
        load_rows = load_plain_rows<T>;
        store = store_plain<T>;
      });
    }
  }
  std::byte* at(std::int64_t offset) const { return data + offset * size; }
};

// A vector may be stored behind the last element.
using Buffer = std::byte[block * 8 + 64];

// A position in the index space: a row, and an offset in it.
template <int operand_count>
class Place {
 public:
  using Space = Iteration<operand_count>;
  Place(const Space& space, std::int64_t position) : space_(space) {
    for (int axis = 0; axis < space.rank; ++axis) {
      index_[axis] = position % space.dims[axis];
      position /= space.dims[axis];
      for (int k = 0; k < operand_count; ++k) offsets_[k] += index_[axis] * space.strides[k][axis];
    }
  }
  std::int64_t offset(int k) const { return offsets_[k]; }
  std::int64_t left_in_row() const { return space_.dims[0] - index_[0]; }
  /// The number of whole rows ahead along the next axis; 0 inside a row.
  std::int64_t whole_rows() const {
    if (index_[0] != 0) return 0;
    return space_.rank == 1 ? 1 : space_.dims[1] - index_[1];
  }
  /// Advances by at most `whole_rows()`.
  void advance_rows(std::int64_t rows) {
    if (space_.rank == 1) return advance(space_.dims[0]);
    step(1, rows);
    carry(1);
  }
  /// Advances by at most the remainder of the row.
  void advance(std::int64_t count) {
    step(0, count);
    carry(0);
  }

 private:
  void carry(int axis) {
    for (; index_[axis] == space_.dims[axis] && axis + 1 < space_.rank; ++axis) {
      step(axis, -space_.dims[axis]);
      step(axis + 1, 1);
    }
  }
  void step(int axis, std::int64_t count) {
    index_[axis] += count;
    for (int k = 0; k < operand_count; ++k) offsets_[k] += count * space_.strides[k][axis];
  }
  const Space& space_;
  std::int64_t index_[8] = {}, offsets_[operand_count] = {};
};

// Operand 0 is the result.
template <int input_count>
struct Work {
  static constexpr int operand_count = input_count + 1;
  const Iteration<operand_count>& space;
  const Operand (&operands)[operand_count];
  BlockLoop loop;
  const BlockLoopOptions& options;

  void run(std::int64_t begin, std::int64_t end) const {
    if (space.dims[0] < short_row)
      run_collected(begin, end);
    else if (BlockLoop special = loop_with_repeated())
      run_in_place(begin, end, special);
    else
      run_rows(begin, end);
  }

  // The loop for operands that can be accessed in place, but for one input that is a single element along each row; null if
  // they are others.
  BlockLoop loop_with_repeated() const {
    if constexpr (input_count == 2) {
      int repeated = space.strides[1][0] == 0 ? 1 : 2, contiguous = 3 - repeated;
      bool fits = space.strides[0][0] == 1 && space.strides[contiguous][0] == 1 && space.strides[repeated][0] == 0;
      for (const Operand& operand : operands) fits = fits && !operand.converts;
      if (fits) return options.repeated[repeated - 1];
    }
    return nullptr;
  }

  void run_in_place(std::int64_t begin, std::int64_t end, BlockLoop special) const {
    const void* inputs[input_count];
    Place<operand_count> place(space, begin);
    for (std::int64_t count; begin < end; begin += count, place.advance(count)) {
      count = std::min(place.left_in_row(), end - begin);
      for (int k = 0; k < input_count; ++k) inputs[k] = operands[k + 1].at(place.offset(k + 1));
      special(operands[0].at(place.offset(0)), inputs, count);
    }
  }

  void run_rows(std::int64_t begin, std::int64_t end) const {
    alignas(64) Buffer buffers[operand_count];
    const void *inputs[input_count], *repeated[input_count] = {};
    bool in_place = true;
    for (int k = 0; k < operand_count; ++k) in_place &= space.strides[k][0] == 1 && !operands[k].converts;
    Place<operand_count> place(space, begin);
    for (std::int64_t count; begin < end; begin += count, place.advance(count)) {
      count = std::min(place.left_in_row(), end - begin);
      if (!in_place) count = std::min(count, block);
      for (int k = 0; k < input_count; ++k) {
        const Operand& operand = operands[k + 1];
        std::int64_t step = space.strides[k + 1][0];
        const void* from = operand.at(place.offset(k + 1));
        inputs[k] = buffers[k + 1];
        if (step == 1 && !operand.converts)
          inputs[k] = from;
        else if (step != 0)
          operand.load(buffers[k + 1], from, step, count);
        else if (repeated[k] != from)
          operand.load(buffers[k + 1], repeated[k] = from, 0, std::min(block, space.dims[0]));
      }
      const Operand& result = operands[0];
      void* to = result.at(place.offset(0));
      if (space.strides[0][0] == 1 && !result.converts) {
        loop(to, inputs, count);
      } else {
        loop(buffers[0], inputs, count);
        result.store(to, buffers[0], space.strides[0][0], count);
      }
    }
  }

  // An axis along which an input has stride 1, and along axis 0 it has not; 0 if there is none.
  int panel_axis() const {
    if (space.dims[0] < 8) return 0;
    for (int axis = 1; axis < space.rank; ++axis)
      for (int k = 1; k < operand_count; ++k)
        if (space.strides[k][axis] == 1 && std::abs(space.strides[k][0]) > 1 && space.dims[axis] >= 4) return axis;
    return 0;
  }
  std::int64_t panel_count(int across) const {
    std::int64_t count = (space.dims[0] + panel_width - 1) / panel_width;
    for (int axis = 1; axis < space.rank; ++axis)
      count *= axis == across ? (space.dims[axis] + panel_height - 1) / panel_height : space.dims[axis];
    return count;
  }

  // Computes panels: those of axis `across` follow each other, so that lines which two of them share stay in the cache.
  void run_panels(int across, std::int64_t begin, std::int64_t end) const {
    alignas(64) std::byte panels[input_count][panel_height * panel_width * 8];
    alignas(64) Buffer buffers[operand_count];
    for (std::int64_t number = begin; number < end; ++number) {
      std::int64_t rest = number, offsets[operand_count] = {};
      auto move = [&](int axis, std::int64_t size) {
        std::int64_t parts = (space.dims[axis] + size - 1) / size, start = rest % parts * size;
        rest /= parts;
        for (int k = 0; k < operand_count; ++k) offsets[k] += start * space.strides[k][axis];
        return std::min(size, space.dims[axis] - start);
      };
      std::int64_t height = move(across, panel_height), width = move(0, panel_width);
      for (int axis = 1; axis < space.rank; ++axis)
        if (axis != across) move(axis, 1);
      run_panel(across, height, width, offsets, panels, buffers);
    }
  }

  void run_panel(int across, std::int64_t height, std::int64_t width, const std::int64_t* offsets,
                 std::byte (*panels)[panel_height * panel_width * 8], Buffer* buffers) const {
    const std::byte* from[input_count];
    std::int64_t steps[input_count], hops[input_count];
    for (int k = 0; k < input_count; ++k) {
      const Operand& operand = operands[k + 1];
      from[k] = operand.at(offsets[k + 1]);
      steps[k] = space.strides[k + 1][0];
      hops[k] = space.strides[k + 1][across];
      if (hops[k] != 1 || std::abs(steps[k]) <= 1) continue;
      operand.transpose(panels[k], from[k], steps[k], height, width);
      from[k] = panels[k];
      steps[k] = 1;
      hops[k] = panel_width;
    }
    const Operand& result = operands[0];
    std::int64_t step = space.strides[0][0];
    bool in_place = step == 1 && !result.converts;
    for (std::int64_t i = 0; i < height; ++i) {
      const void* inputs[input_count];
      for (int k = 0; k < input_count; ++k) {
        const Operand& operand = operands[k + 1];
        inputs[k] = from[k] + i * hops[k] * operand.size;
        if (steps[k] == 1 && !operand.converts) continue;
        operand.load(buffers[k + 1], inputs[k], steps[k], width);
        inputs[k] = buffers[k + 1];
      }
      void* to = result.at(offsets[0] + i * space.strides[0][across]);
      loop(in_place ? to : buffers[0], inputs, width);
      if (!in_place) result.store(to, buffers[0], step, width);
    }
  }

  // Fills the buffers of inputs that are not read in place with the next elements.
  void collect(Place<operand_count>& place, const void* const* inputs, Buffer* buffers, std::int64_t count) const {
    std::int64_t width = space.dims[0];
    for (std::int64_t filled = 0; filled < count;) {
      std::int64_t rows = std::min(place.whole_rows(), (count - filled) / width);
      std::int64_t piece = rows > 0 ? rows * width : std::min(place.left_in_row(), count - filled);
      for (int k = 1; k < operand_count; ++k) {
        if (inputs[k - 1] != buffers[k]) continue;
        const Operand& operand = operands[k];
        void* to = buffers[k] + filled * operand.size_in_buffer;
        const void* from = operand.at(place.offset(k));
        if (rows > 0)
          operand.load_rows(to, from, space.strides[k][0], width, space.rank == 1 ? 0 : space.strides[k][1], rows);
        else
          operand.load(to, from, space.strides[k][0], piece);
      }
      filled += piece;
      if (rows > 0)
        place.advance_rows(rows);
      else
        place.advance(piece);
    }
  }

  void run_collected(std::int64_t begin, std::int64_t end) const {
    alignas(64) Buffer buffers[operand_count];
    const void* inputs[input_count];
    Place<operand_count> place(space, begin);
    for (std::int64_t count; begin < end; begin += count) {
      count = std::min(end - begin, block);
      for (int k = 0; k < input_count; ++k) {
        const Operand& operand = operands[k + 1];
        inputs[k] = operand.flat && !operand.converts ? operand.at(begin) : buffers[k + 1];
      }
      Place<operand_count> start = place;
      collect(place, inputs, buffers, count);
      const Operand& result = operands[0];
      if (result.flat && !result.converts) {
        loop(result.at(begin), inputs, count);
        continue;
      }
      loop(buffers[0], inputs, count);
      for (std::int64_t stored = 0, piece; stored < count; stored += piece, start.advance(piece)) {
        piece = std::min(start.left_in_row(), count - stored);
        result.store(result.at(start.offset(0)), buffers[0] + stored * result.size_in_buffer, space.strides[0][0],
                     piece);
      }
    }
  }
};

// Whether an operand's elements follow each other in the order of the loop.
template <int operand_count>
bool is_flat(const Iteration<operand_count>& space, int k) {
  std::int64_t count = 1;
  for (int axis = 0; axis < space.rank; count *= space.dims[axis++])
    if (space.strides[k][axis] != count) return false;
  return true;
}

}  // namespace

template <int input_count>
void run_loop(const View& out, const View* const (&inputs)[input_count], BlockLoop loop, BlockLoopOptions options) {
  constexpr int operand_count = input_count + 1;
  if (out.numel == 0) return;
  const View* views[operand_count] = {&out};
  Operand operands[operand_count];
  operands[0] = Operand(out, out.numel, options.widens);
  bool simple = operands[0].flat && !operands[0].converts && out.numel <= block;
  for (int k = 1; k < operand_count; ++k) {
    views[k] = inputs[k - 1];
    operands[k] = Operand(*views[k], out.numel, options.widens);
    simple &= !operands[k].converts && (operands[k].flat || views[k]->numel == 1);
  }
  if (simple) {
    alignas(64) Buffer buffers[input_count];
    const void* from[input_count];
    for (int k = 0; k < input_count; ++k) {
      from[k] = operands[k + 1].data;
      if (operands[k + 1].flat) continue;
      operands[k + 1].load(buffers[k], from[k], 0, out.numel);
      from[k] = buffers[k];
    }
    return loop(out.data, from, out.numel);
  }
  // Elements may be computed in any order: in that of the result.
  auto space = Iteration<operand_count>::in_memory(views);
  if (!out.contiguous)
    for (int k = 0; k < operand_count; ++k) operands[k].flat = is_flat(space, k);
  Work<input_count> work{space, operands, loop, options};
  bool alone = out.numel < options.parallel_from ||
               (out.numel < 4 * options.parallel_from && !parallel::can_share_short_loops());
  if (int across = work.panel_axis()) {
    std::int64_t count = work.panel_count(across);
    return parallel_for(count, alone ? count : grain / (panel_height * panel_width),
                        [&](std::int64_t begin, std::int64_t end) { work.run_panels(across, begin, end); });
  }
  if (alone) return work.run(0, out.numel);
  parallel_for(out.numel, grain, [&](std::int64_t begin, std::int64_t end) { work.run(begin, end); });
}

template void run_loop<1>(const View&, const View* const (&)[1], BlockLoop, BlockLoopOptions);
template void run_loop<2>(const View&, const View* const (&)[2], BlockLoop, BlockLoopOptions);
template void run_loop<3>(const View&, const View* const (&)[3], BlockLoop, BlockLoopOptions);
template void run_loop<4>(const View&, const View* const (&)[4], BlockLoop, BlockLoopOptions);
template void run_loop<5>(const View&, const View* const (&)[5], BlockLoop, BlockLoopOptions);

}  // namespace reel::detail::inline REEL_TARGET
