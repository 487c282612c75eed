#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../../core/convert.h"
#include "../../../core/memory_order.h"
#include "../../../core/threads/parallel.h"
#include "../../cached_space.h"
#include "../elementwise/elementwise.h"
#include "tile.h"

// Common parts of all reductions: which elements belong to which result, and their order. A reduction is a struct with
// the state of up to `most_columns` columns of numbers, which it processes row by row:
//
//   start(at, first, width, fold)                    from now on the columns from `at` on: the results from `first` on
//   take(rows, stride, count, columns, position)     `count` rows of `columns` numbers, `stride` apart
//   take_line(numbers, count, times, stride)         optional: a folded column of adjacent numbers, several times
//   reduce_line(at, numbers, count, position)        optional: start, take or take_line, and fold of a line, for column `at`
//   fold(to, width, fold)                            joins column j with j + width, j + 2 width, …, and moves them to `to`
//   join(later, width)                               joins the columns with those of a later part
//   finish(first, width)                             writes the results
//   expect_large()                                   optional: called first if rows are read from memory, not from a cache
//
// Narrow columns are folded: n rows of few numbers are treated as n / fold rows of fold times as many, so that vectors are
// full; a single column is a line, folded by `line_columns`. The order in which a result's elements are joined depends only
// on the sizes of the reduced axes and of those inside them.

namespace reel::detail::inline REEL_TARGET {

inline constexpr std::int64_t most_columns = 256;
inline constexpr std::int64_t line_columns = 16;
// Operations may join this many rows with each other before they join them with earlier ones.
inline constexpr std::int64_t rows_together = 16;
inline constexpr std::int64_t tile_elements = rows_together * most_columns;

/// Stores results in the dtype of the output.
template <class Wide>
void write_results(const View& out, std::int64_t first, const Wide* results, std::int64_t count) {
  if (out.dtype == dtype_of<Wide>()) {
    std::memcpy(out.as<Wide>() + first, results, static_cast<std::size_t>(count) * sizeof(Wide));
    return;
  }
  auto store = [&]<class T>(std::type_identity<T>) {
    for (std::int64_t j = 0; j < count; ++j) out.as<T>()[first + j] = convert<T>(results[j]);
  };
  if constexpr (std::is_integral_v<Wide>)
    with_type(out.dtype, store);
  else
    with_floating(out.dtype, store);
}

/// Returns true if each result is that of one element.
inline bool reduces_single_elements(const View& out, const View& x) {
  return x.numel == out.numel && x.rank == out.rank;
}

/// Fills all results with that of an empty reduction.
inline void fill_results(const View& out, double number) {
  with_type(out.dtype,
            [&]<class T>(std::type_identity<T>) { std::fill_n(out.as<T>(), out.numel, convert<T>(number)); });
}

/// Calls reduce(out, x) with the axes of both in the order in which x has them in memory. The results, which are
/// contiguous in that order, are copied if it is not the order of `out`.
template <class Reduce>
void in_memory_order(const View& out, const View& x, Reduce reduce) {
  MemoryOrder order(x.dims, x.strides, x.rank);
  if (order.is_logical) return reduce(out, x);
  std::int64_t dims[8], strides[8], kept_dims[8], kept_strides[8], back[8] = {}, stride = 1;
  int last = -1;
  bool kept_in_order = true;
  for (int k = order.rank; k-- > 0;) {
    int axis = order.axes[k];
    dims[k] = x.dims[axis];
    strides[k] = x.strides[axis];
    kept_dims[k] = out.dims[axis];
    kept_strides[k] = back[axis] = stride;
    stride *= kept_dims[k];
    if (kept_dims[k] == 1) continue;
    kept_in_order &= last < 0 || axis < last;
    last = axis;
  }
  View sorted = x, results = out;
  sorted.rank = results.rank = order.rank;
  sorted.dims = dims;
  sorted.strides = strides;
  results.dims = kept_dims;
  results.strides = kept_strides;
  if (kept_in_order) return reduce(results, sorted);
  CachedSpace<std::byte> bytes(out.numel * static_cast<std::int64_t>(size_of(out.dtype)));
  results.data = bytes.get();
  reduce(results, sorted);
  results.rank = out.rank;
  results.dims = out.dims;
  results.strides = back;
  results.contiguous = false;
  copy_elements(out, results);
}

/// Maps the elements of x, at least one, to the results of `out`, which has size 1 on each reduced axis. The axes are in
/// the order of memory.
class ReductionPlan {
 public:
  ReductionPlan(const View& out, const View& x) : length_(x.numel / out.numel), elements_(x.numel) {
    divide_axes(out, x);
    choose_columns();
    choose_pieces();
  }

  /// The number of elements of each result.
  std::int64_t length() const { return length_; }

  /// Runs a reduction; each of its states is constructed from `setting`.
  template <class Op, class Wide, class Setting>
  void run(const Reader<Wide>& reader, const Setting& setting) const {
    std::int64_t tasks = chunks_ * pieces_, most_tasks = 16;
    if (pieces_ == 1 || chunks_ >= most_tasks) {
      parallel_for(chunks_, grain(chunks_), [&](std::int64_t begin, std::int64_t end) {
        Op op = made_op<Op>(setting, reader);
        for (std::int64_t chunk = begin; chunk < end; ++chunk) {
          Chunk place = place_of(chunk);
          reduce_piece(reader, op, place, 0);
          if (pieces_ > 1) join_pieces<Op>(reader, setting, op, place);
          op.finish(place.first, place.results);
        }
      });
      return;
    }
    std::vector<Op> ops(static_cast<std::size_t>(tasks), made_op<Op>(setting, reader));
    parallel_for(tasks, grain(tasks), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = begin; task < end; ++task)
        reduce_piece(reader, ops[task], place_of(task / pieces_), task % pieces_);
    });
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) {
      Chunk place = place_of(chunk);
      Op& op = ops[chunk * pieces_];
      for (std::int64_t piece = 1; piece < pieces_; ++piece) op.join(ops[chunk * pieces_ + piece], place.results);
      op.finish(place.first, place.results);
    }
  }

 private:
  /// The smallest number of elements that is worth another thread, and a part of a long column.
  static constexpr std::int64_t part_elements = 1 << 16;
  static constexpr std::int64_t most_pieces = 64;
  /// With fewer elements than this, a call per group would cost more than a copy to beside those of other groups.
  static constexpr std::int64_t few_elements = 32;

  static constexpr std::int64_t most_folded = 128, long_line = 2048;

  // Adjacent results: columns of one group, or all columns of some groups.
  struct Chunk {
    std::int64_t first, results;
    std::int64_t group, groups, column, width;
  };

  // From the innermost axis outwards: kept ones are columns, reduced ones rows. The others, up to the outermost reduced one,
  // are groups within repetitions; kept ones outside of it are groups, too.
  void divide_axes(const View& out, const View& x) {
    auto is_reduced = [&](int axis) { return out.dims[axis] != x.dims[axis]; };
    int axis = x.rank - 1, outermost = 0;
    for (; axis >= 0 && !is_reduced(axis); --axis) add(columns_, x, axis);
    for (; axis >= 0 && (is_reduced(axis) || x.dims[axis] == 1); --axis) add(rows_, x, axis);
    while (outermost < axis && !is_reduced(outermost)) ++outermost;
    JoinedAxes inner_groups;
    for (; axis >= outermost; --axis) add(is_reduced(axis) ? repeats_ : inner_groups, x, axis);
    bool is_small = rows_.count() * columns_.count() < few_elements;
    if (is_small && repeats_.count() > 1) {
      rows_.add(repeats_);
      columns_.add(inner_groups);
      repeats_ = inner_groups = JoinedAxes();
      is_small = false;
    }
    groups_ = inner_groups;
    for (; axis >= 0; --axis) add(groups_, x, axis);
    takes_groups_ = is_small && repeats_.count() == 1;
    if (!takes_groups_) return;
    columns_.add(groups_);
    groups_ = JoinedAxes();
  }
  // By how much an operation folds columns: long lines by more, unless it takes them in registers.
  template <class Op, class Wide>
  std::int64_t fold_of(const Op&) const {
    return is_line_ && rows_.count() >= long_line && !takes_lines<Op, Wide> ? most_folded : fold_;
  }
  template <class Op, class Wide>
  static constexpr bool takes_lines = requires(Op op, const Wide* x) { op.take_line(x, 0, 0, 0); };
  static void add(JoinedAxes& axes, const View& x, int axis) {
    if (x.dims[axis] != 1) axes.add(x.dims[axis], x.strides[axis]);
  }

  void choose_columns() {
    std::int64_t count = rows_.count(), width = columns_.count();
    is_line_ = width == 1 && !takes_groups_;
    if (is_line_) fold_ = line_columns;
    // The cost of a fold grows with its width.
    std::int64_t folded = count * width < long_line ? line_columns : most_folded;
    if (width > 1 && !takes_groups_)
      while (2 * fold_ * width <= folded && 2 * fold_ <= count / 4) fold_ *= 2;
    plain_ = rows_.is_even() && columns_.is_even() && columns_.stride() == 1 && (fold_ == 1 || rows_.stride() == width);

    std::int64_t most = count < few_elements ? std::min(tile_elements / count / 16 * 16, most_columns) : most_columns;
    chunks_in_group_ = (width + most - 1) / most;
    chunk_width_ = width;
    if (chunks_in_group_ > 1) {
      chunk_width_ = ((width + chunks_in_group_ - 1) / chunks_in_group_ + 15) / 16 * 16;
      chunks_in_group_ = (width + chunk_width_ - 1) / chunk_width_;
    } else {
      std::int64_t some = tile_elements / (length_ * width) + 1;
      std::int64_t columns = is_line_ && count >= long_line ? most_folded : width * fold_;
      batch_ = std::clamp<std::int64_t>(some, 1, most_columns / columns);
    }
    chunks_ = chunks_in_group_ > 1 ? groups_.count() * chunks_in_group_ : (groups_.count() + batch_ - 1) / batch_;
  }

  // Divides long columns into pieces, which are joined in order.
  void choose_pieces() {
    std::int64_t units = repeats_.count() > 1 ? repeats_.count() : rows_.count();
    piece_ = units;
    std::int64_t elements = length_ * std::min(columns_.count(), most_columns);
    if (elements < 4 * part_elements || takes_groups_) return;
    std::int64_t wanted = std::min(elements / part_elements, most_pieces);
    piece_ = (units + wanted - 1) / wanted;
    // Each piece has whole groups of rows.
    std::int64_t group = rows_together * (is_line_ ? most_folded : fold_);
    if (repeats_.count() == 1) piece_ = (piece_ + group - 1) / group * group;
    pieces_ = (units + piece_ - 1) / piece_;
  }

  std::int64_t grain(std::int64_t tasks) const {
    std::int64_t task_elements = (elements_ + tasks - 1) / tasks;
    return (part_elements + task_elements - 1) / task_elements;
  }

  template <class Op, class Wide, class Setting>
  Op made_op(const Setting& setting, const Reader<Wide>& reader) const {
    Op op(setting);
    if constexpr (requires { op.expect_large(); }) {
      constexpr std::int64_t large_bytes = std::int64_t{4} << 20;
      if (plain_ && reader.plain() && elements_ * static_cast<std::int64_t>(sizeof(Wide)) >= large_bytes)
        op.expect_large();
    }
    return op;
  }

  Chunk place_of(std::int64_t chunk) const {
    std::int64_t width = columns_.count();
    if (chunks_in_group_ == 1) {
      std::int64_t group = chunk * batch_, groups = std::min(batch_, groups_.count() - group);
      return {group * width, groups * width, group, groups, 0, width};
    }
    std::int64_t group = chunk / chunks_in_group_, column = chunk % chunks_in_group_ * chunk_width_;
    std::int64_t here = std::min(chunk_width_, width - column);
    return {group * width + column, here, group, 1, column, here};
  }

  template <class Op, class Wide, class Setting>
  void join_pieces(const Reader<Wide>& reader, const Setting& setting, Op& op, const Chunk& chunk) const {
    Op later = made_op<Op>(setting, reader);
    for (std::int64_t piece = 1; piece < pieces_; ++piece) {
      reduce_piece(reader, later, chunk, piece);
      op.join(later, chunk.results);
    }
  }

  template <class Wide, class Op>
  void reduce_piece(const Reader<Wide>& reader, Op& op, const Chunk& chunk, std::int64_t piece) const {
    std::int64_t begin = piece * piece_, width = chunk.width, fold = fold_of<Op, Wide>(op);
    if constexpr (requires { op.reduce_line(0, reader.plain(), 0, 0); })
      if (is_line_ && plain_ && reader.plain() && repeats_.count() == 1) {
        std::int64_t count = std::min(piece_, rows_.count() - begin);
        for (std::int64_t g = 0; g < chunk.groups; ++g)
          op.reduce_line(g, reader.plain() + groups_.offset(chunk.group + g) + begin, count, begin);
        return;
      }
    for (std::int64_t g = 0; g < chunk.groups; ++g) {
      std::int64_t offset = groups_.offset(chunk.group + g), count = rows_.count();
      op.start(g * width * fold, chunk.first + g * width, width, fold);
      if (repeats_.count() == 1) {
        take_rows(reader, op, offset, chunk, begin, std::min(piece_, count - begin), 0);
      } else {
        std::int64_t here = std::min(piece_, repeats_.count() - begin);
        repeats_.for_each_part(begin, here, [&](std::int64_t first, std::int64_t along, std::int64_t length) {
          if constexpr (takes_lines<Op, Wide>)
            if (is_line_ && plain_ && reader.plain())
              return op.take_line(reader.plain() + offset + along, count, length, repeats_.stride());
          for (std::int64_t i = 0; i < length; ++i)
            take_rows(reader, op, offset + along + i * repeats_.stride(), chunk, 0, count, (first + i) * count);
        });
      }
      op.fold(g * width, width, fold);
    }
  }

  // Takes rows [first, first + count); `position` counts the elements of each result before the first row.
  template <class Wide, class Op>
  void take_rows(const Reader<Wide>& reader, Op& op, std::int64_t offset, const Chunk& chunk, std::int64_t first,
                 std::int64_t count, std::int64_t position) const {
    if (plain_ && reader.plain()) {
      const Wide* from = reader.plain() + offset + first * rows_.stride() + chunk.column;
      return take_packed(op, from, rows_.stride(), chunk.width, count, position + first);
    }
    Wide tile[tile_elements];
    if constexpr (takes_lines<Op, Wide>)
      if (is_line_ && rows_.stride() == 1 && reader.plain())
        return take_line_parts(op, reader.plain() + offset, first, count, tile);
    std::int64_t fold = fold_of<Op, Wide>(op),
                 height = tile_elements / (chunk.width * fold) / rows_together * rows_together * fold;
    for (std::int64_t i = 0; i < count; i += height) {
      std::int64_t here = std::min(height, count - i);
      reader.gather(tile, offset, rows_, first + i, here, columns_, chunk.column, chunk.width);
      take_packed(op, tile, chunk.width, chunk.width, here, position + first + i);
    }
  }

  // Takes a line whose parts are apart, through the tile unless they are long.
  template <class Wide, class Op>
  void take_line_parts(Op& op, const Wide* line, std::int64_t first, std::int64_t count, Wide* tile) const {
    std::int64_t held = 0;
    rows_.for_each_part(first, count, [&](std::int64_t, std::int64_t offset, std::int64_t length) {
      const Wide* from = line + offset;
      for (std::int64_t here; length > 0; from += here, length -= here) {
        bool direct = held == 0 && length >= tile_elements;
        here = direct ? length / tile_elements * tile_elements : std::min(tile_elements - held, length);
        if (direct) {
          op.take_line(from, here, 1, 0);
          continue;
        }
        std::memcpy(tile + held, from, static_cast<std::size_t>(here) * sizeof(Wide));
        held += here;
        if (held == tile_elements) op.take_line(tile, std::exchange(held, std::int64_t{0}), 1, 0);
      }
    });
    op.take_line(tile, held, 1, 0);
  }

  template <class Wide, class Op>
  void take_packed(Op& op, const Wide* from, std::int64_t stride, std::int64_t width, std::int64_t count,
                   std::int64_t position) const {
    if constexpr (takes_lines<Op, Wide>)
      if (is_line_) return op.take_line(from, count, 1, 0);
    std::int64_t fold = fold_of<Op, Wide>(op), rows = count / fold, rest = count % fold;
    op.take(from, fold * stride, rows, width * fold, position);
    if (rest) op.take(from + rows * fold * stride, 0, 1, rest * width, position + rows * fold);
  }

  JoinedAxes columns_, rows_, groups_, repeats_;
  std::int64_t length_, elements_;
  std::int64_t fold_ = 1;
  bool plain_, takes_groups_, is_line_;
  std::int64_t chunk_width_, chunks_in_group_, chunks_;
  std::int64_t batch_ = 1;
  std::int64_t piece_, pieces_ = 1;
};

}  // namespace reel::detail::inline REEL_TARGET
