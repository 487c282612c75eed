#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include <hwy/highway.h>

#include "../../../core/convert.h"
#include "../../../core/dtype_dispatch.h"
#include "../../../core/iteration.h"
#include "../../../core/threads/parallel.h"

// Common parts of all reductions: which elements belong to which result, and their order. A reduction is a struct with
// the state of up to `most_columns` columns of numbers, which it processes row by row:
//
//   start(first, width, fold)                        for the results from `first` on
//   take(rows, stride, count, columns, position)     `count` rows of `columns` numbers, `stride` apart
//   fold(width, fold)                                joins column j with columns j + width, j + 2 width, …
//   join(later, width)                               joins the columns with those of a later part
//   finish(first, width)                             writes the results
//   expect_large()                                   optional: called first if rows are read from memory, not from a cache
//
// Short columns are folded: a packed column of n numbers is treated as n / fold rows of fold numbers, so that vectors
// are full. The division of a reduction depends on shapes and strides only, never on the number of threads.

namespace reel::detail::inline REEL_TARGET {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::int64_t most_columns = 512;
inline constexpr std::int64_t tile_elements = 4096;

/// Copies a tile: to[i width + j] = from[i step + j hop], for i < count, j < width.
template <class Wide, class T>
void gather_tile(Wide* __restrict to, const void* data, std::int64_t offset, std::int64_t count, std::int64_t step,
                 std::int64_t width, std::int64_t hop) {
  const T* from = static_cast<const T*>(data) + offset;
  if constexpr (std::is_same_v<Wide, T> && sizeof(T) == 4) {
    if (count == 4 && step == 1 && hop == 4) {
      const hn::ScalableTag<T> tag;
      constexpr std::int64_t lanes = HWY_LANES(T);
      std::int64_t j = 0;
      for (; j + lanes <= width; j += lanes) {
        hn::Vec<decltype(tag)> rows[4];
        hn::LoadInterleaved4(tag, from + 4 * j, rows[0], rows[1], rows[2], rows[3]);
        for (int i = 0; i < 4; ++i) hn::StoreU(rows[i], tag, to + i * width + j);
      }
      for (; j < width; ++j)
        for (int i = 0; i < 4; ++i) to[i * width + j] = from[4 * j + i];
      return;
    }
  }
  if (step == width && (hop == 1 || width == 1)) {
    for (std::int64_t i = 0; i < count * width; ++i) to[i] = static_cast<Wide>(from[i]);
  } else if (hop == 1) {
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t j = 0; j < width; ++j) to[i * width + j] = static_cast<Wide>(from[i * step + j]);
  } else if (std::abs(hop) <= std::abs(step)) {
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t j = 0; j < width; ++j) to[i * width + j] = static_cast<Wide>(from[i * step + j * hop]);
  } else {
    for (std::int64_t j = 0; j < width; ++j)
      for (std::int64_t i = 0; i < count; ++i) to[i * width + j] = static_cast<Wide>(from[i * step + j * hop]);
  }
}

/// The elements of a tensor, converted to the type in which a reduction computes.
template <class Wide>
struct Reader {
  const void* data;
  void (*gather)(Wide* to, const void* data, std::int64_t offset, std::int64_t count, std::int64_t step,
                 std::int64_t width, std::int64_t hop);
  /// The data, if no conversion is needed.
  const Wide* plain = nullptr;

  explicit Reader(const View& x) : data(x.data) {
    if (x.dtype == dtype_of<Wide>()) plain = x.as<Wide>();
    if constexpr (std::is_integral_v<Wide>) {
      if (x.dtype == DType::boolean)
        gather = gather_tile<Wide, bool>;
      else
        with_integer(x.dtype, [&]<class T>(std::type_identity<T>) { gather = gather_tile<Wide, T>; });
    } else {
      switch (x.dtype) {
        case DType::bf16: gather = gather_tile<Wide, BFloat16>; break;
        case DType::f16: gather = gather_tile<Wide, Float16>; break;
        case DType::f32: gather = gather_tile<Wide, float>; break;
        default: gather = gather_tile<Wide, Wide>;  // f64 is never narrowed
      }
    }
  }
};

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

/// Fills all results with that of an empty reduction.
inline void fill_results(const View& out, double number) {
  with_type(out.dtype,
            [&]<class T>(std::type_identity<T>) { std::fill_n(out.as<T>(), out.numel, convert<T>(number)); });
}

/// Maps the elements of x, at least one, to the results of `out`, which has size 1 on each reduced
/// axis.
class ReductionPlan {
 public:
  ReductionPlan(const View& out, const View& x) : ReductionPlan(Split(out, x)) {
    results_ = out.numel;
    std::int64_t count = gone_.dims[0], step = std::abs(gone_.strides[0][0]);
    std::int64_t neighbours = kept_.dims[0], hop = std::abs(kept_.strides[0][0]);
    if (neighbours > 1 && (count <= 64 || step == 0 || hop < step))
      width_ = std::min(neighbours, hop > step ? std::max<std::int64_t>(tile_elements / count / 2, 32) : most_columns);
    width_ = std::min(width_, most_columns);
    std::int64_t columns = count * width_ < 2048 ? 16 : 128;  // the cost of a fold grows with its width
    while (2 * fold_ * width_ <= columns && 2 * fold_ <= count / 4) fold_ *= 2;
    packed_ = width_ == 1 ? fold_ == 1 || gone_.strides[0][0] == 1
                          : kept_.strides[0][0] == 1 && (fold_ == 1 || gone_.strides[0][0] == width_);
    chunks_in_row_ = (neighbours + width_ - 1) / width_;
    chunks_ = results_ / neighbours * chunks_in_row_;
    length_ = x.numel / results_;
    cut(x.numel);
  }

  /// The number of elements of each result.
  std::int64_t length() const { return length_; }

  /// Runs a reduction; each of its states is constructed from `setting`.
  template <class Op, class Wide, class Setting>
  void run(const Reader<Wide>& reader, const Setting& setting) const {
    std::int64_t tasks = chunks_ * pieces_;
    std::int64_t task_elements = (results_ * length_ + tasks - 1) / tasks;
    std::int64_t grain = (part_elements + task_elements - 1) / task_elements;
    if (pieces_ == 1) {
      parallel_for(tasks, grain, [&](std::int64_t begin, std::int64_t end) {
        Op op = made_op<Op>(setting, reader);
        for (std::int64_t chunk = begin; chunk < end; ++chunk) {
          Chunk place = place_of(chunk);
          reduce_piece(reader, op, place, 0);
          op.finish(place.first, place.width);
        }
      });
      return;
    }
    std::vector<Op> ops(static_cast<std::size_t>(tasks), made_op<Op>(setting, reader));
    parallel_for(tasks, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = begin; task < end; ++task)
        reduce_piece(reader, ops[task], place_of(task / pieces_), task % pieces_);
    });
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) {
      Chunk place = place_of(chunk);
      Op& op = ops[chunk * pieces_];
      for (std::int64_t piece = 1; piece < pieces_; ++piece) op.join(ops[chunk * pieces_ + piece], place.width);
      op.finish(place.first, place.width);
    }
  }

 private:
  /// The smallest number of elements that is worth another thread.
  static constexpr std::int64_t part_elements = 1 << 16;

  // The kept or the reduced axes of x, as a view.
  struct Axes {
    std::int64_t dims[8], strides[8];
    int rank = 0;
    void add(std::int64_t dim, std::int64_t stride) {
      dims[rank] = dim;
      strides[rank++] = stride;
    }
    View view() const {
      View view;
      view.dims = dims;
      view.strides = strides;
      view.rank = rank;
      return view;
    }
  };
  struct Split {
    Axes stay, go;
    View stay_view, go_view;
    Split(const View& out, const View& x) {
      for (int axis = 0; axis < x.rank; ++axis) {
        bool reduced = out.dims[axis] == 1 && x.dims[axis] != 1;
        (reduced ? go : stay).add(x.dims[axis], x.strides[axis]);
      }
      stay_view = stay.view();
      go_view = go.view();
    }
  };
  // Adjacent results, and the offset of their first elements.
  struct Chunk {
    std::int64_t first, width, offset;
  };

  explicit ReductionPlan(const Split& split) : kept_({&split.stay_view}), gone_({&split.go_view}) {}

  template <class Op, class Wide, class Setting>
  Op made_op(const Setting& setting, const Reader<Wide>& reader) const {
    Op op(setting);
    if constexpr (requires { op.expect_large(); }) {
      constexpr std::int64_t large_bytes = std::int64_t{4} << 20;
      bool reads_memory = packed_ && reader.plain;
      if (reads_memory && results_ * length_ * static_cast<std::int64_t>(sizeof(Wide)) >= large_bytes)
        op.expect_large();
    }
    return op;
  }

  // Divides few and long columns into pieces, which are joined in order.
  void cut(std::int64_t elements) {
    std::int64_t& outermost = gone_.dims[gone_.rank - 1];
    steps_ = outermost;
    if (chunks_ >= 16 || elements < 4 * part_elements) return;
    std::int64_t wanted = std::min((elements / part_elements + chunks_ - 1) / chunks_, 64 / chunks_);
    steps_ = (outermost + wanted - 1) / wanted;
    // Each piece has whole groups of rows.
    if (gone_.rank == 1) steps_ = (steps_ + 8 * fold_ - 1) / (8 * fold_) * (8 * fold_);
    pieces_ = (outermost + steps_ - 1) / steps_;
  }

  Chunk place_of(std::int64_t chunk) const {
    std::int64_t row = chunk / chunks_in_row_, start = chunk % chunks_in_row_ * width_;
    Chunk place{row * kept_.dims[0] + start, std::min(width_, kept_.dims[0] - start), start * kept_.strides[0][0]};
    for (int axis = 1; axis < kept_.rank; ++axis) {
      place.offset += row % kept_.dims[axis] * kept_.strides[0][axis];
      row /= kept_.dims[axis];
    }
    return place;
  }

  template <class Wide, class Op>
  void reduce_piece(const Reader<Wide>& reader, Op& op, Chunk place, std::int64_t piece) const {
    op.start(place.first, place.width, fold_);
    Iteration<1> gone = gone_;
    int outermost = gone.rank - 1;
    std::int64_t begin = piece * steps_, position = begin;
    gone.dims[outermost] = std::min(steps_, gone_.dims[outermost] - begin);
    for (int axis = 0; axis < outermost; ++axis) position *= gone.dims[axis];
    place.offset += begin * gone.strides[0][outermost];
    gone.for_each_row([&](const std::int64_t* inner) {
      std::int64_t count = gone.dims[0], step = gone.strides[0][0], at = place.offset + inner[0];
      std::int64_t rows = count / fold_, rest = count % fold_, columns = place.width * fold_;
      if (packed_ && reader.plain) {
        const Wide* from = reader.plain + at;
        op.take(from, fold_ * step, rows, columns, position);
        if (rest) op.take(from + rows * fold_ * step, 0, 1, rest * place.width, position + rows * fold_);
      } else {
        take_gathered(reader, op, place.width, at, count, position);
      }
      position += count;
    });
    op.fold(place.width, fold_);
  }

  template <class Wide, class Op>
  void take_gathered(const Reader<Wide>& reader, Op& op, std::int64_t width, std::int64_t at, std::int64_t count,
                     std::int64_t position) const {
    Wide tile[tile_elements];
    std::int64_t step = gone_.strides[0][0], hop = kept_.strides[0][0], columns = width * fold_;
    std::int64_t height = tile_elements / columns * fold_;
    for (std::int64_t i = 0; i < count; i += height) {
      std::int64_t here = std::min(height, count - i), rows = here / fold_, rest = here % fold_;
      reader.gather(tile, reader.data, at + i * step, here, step, width, hop);
      op.take(tile, columns, rows, columns, position + i);
      if (rest) op.take(tile + rows * columns, 0, 1, rest * width, position + i + rows * fold_);
    }
  }

  Iteration<1> kept_, gone_;
  std::int64_t results_, length_;
  std::int64_t width_ = 1, fold_ = 1;
  std::int64_t chunks_in_row_, chunks_;
  std::int64_t pieces_ = 1, steps_;
  bool packed_;
};

}  // namespace reel::detail::inline REEL_TARGET
