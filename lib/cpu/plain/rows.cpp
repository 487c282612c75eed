#include "rows.h"

#include <algorithm>
#include <cstring>

#include "../../core/dtype_dispatch.h"
#include "../../core/iteration.h"
#include "../../core/threads/parallel.h"

namespace reel::detail {
namespace {

// A view of `count` adjacent axes, from `first` on.
View axes_of(const View& x, int first, int count) {
  View part = x;
  part.dims += first;
  part.strides += first;
  part.rank = count;
  part.numel = 1;
  for (int axis = 0; axis < count; ++axis) part.numel *= part.dims[axis];
  return part;
}

Iteration<2> together(const View& a, const View& b) { return Iteration<2>({&a, &b}); }

// The offsets in operand k of `count` elements from `first` on, in row-major order.
void offsets_from(const Iteration<2>& iteration, int k, std::int64_t first, std::int64_t count, std::int64_t* offsets) {
  std::int64_t index[8], offset = 0;
  for (int axis = 0; axis < iteration.rank; ++axis) {
    index[axis] = first % iteration.dims[axis];
    first /= iteration.dims[axis];
    offset += index[axis] * iteration.strides[k][axis];
  }
  std::int64_t step = iteration.strides[k][0];
  while (true) {
    std::int64_t run = std::min(count, iteration.dims[0] - index[0]);
    for (std::int64_t i = 0; i < run; ++i) offsets[i] = offset + i * step;
    offsets += run;
    count -= run;
    if (count == 0) return;
    offset -= index[0] * step;
    index[0] = 0;
    for (int axis = 1; axis < iteration.rank; ++axis) {
      offset += iteration.strides[k][axis];
      if (++index[axis] < iteration.dims[axis]) break;
      offset -= iteration.strides[k][axis] * iteration.dims[axis];
      index[axis] = 0;
    }
  }
}

// A range of rows of the indexed tensor.
struct Share {
  std::int64_t begin, end;
};

// Pairs of a listed and an indexed row, in the order of the list, once for each index of the axes in front.
class RowPairs {
 public:
  RowPairs(const View& listed, const View& indexed, const View& indices, int axis)
      : indices_(indices),
        size_(indexed.dims[axis]),
        step_(indexed.strides[axis]),
        outer_count_(axes_of(listed, 0, axis).numel),
        outer_(together(axes_of(listed, 0, axis), axes_of(indexed, 0, axis))),
        list_(together(axes_of(listed, axis, indices.rank), indices)),
        row_(together(axes_of(listed, axis + indices.rank, listed.rank - axis - indices.rank),
                      axes_of(indexed, axis + 1, indexed.rank - axis - 1))),
        row_size_(axes_of(listed, axis + indices.rank, listed.rank - axis - indices.rank).numel) {}

  /// Calls f(offset of the listed tensor, of the indexed one, of each listed row from there, of each indexed row,
  /// count) until all pairs are covered.
  template <class F>
  void in_parallel(F f) const {
    parallel_for(outer_count_ * indices_.numel, grain(row_size_), [&](std::int64_t begin, std::int64_t end) {
      name(begin, end, {0, size_}, f);
    });
  }

  /// Calls f as in_parallel does, but an indexed row belongs to one thread, and the pairs of each row are in order.
  template <class F>
  void in_parallel_by_row(F f) const {
    std::int64_t count = indices_.numel, threads = parallel::threads(), work = outer_count_ * count * row_size_;
    // Each thread reads the whole list, which takes less time than long rows only.
    constexpr std::int64_t long_row = 64;
    if (outer_count_ >= 2 * threads || work < 2 * parallel_grain || row_size_ < long_row)
      return parallel_for(outer_count_, grain(count * row_size_), [&](std::int64_t begin, std::int64_t end) {
        name(begin * count, end * count, {0, size_}, f);
      });
    parallel_for(size_, (size_ + threads - 1) / threads, [&](std::int64_t begin, std::int64_t end) {
      name(0, outer_count_ * count, {begin, end}, f);
    });
  }

  /// Returns true if the list picks few columns of long ones.
  bool are_few_columns() const { return row_size_ == 1 && indices_.numel <= block && outer_.dims[0] >= 16; }
  /// Calls move(element of the listed tensor, of the indexed one) for columns: for a piece of each after the other, or where
  /// there are more, for each row.
  template <class L, class X, class Move>
  void move_columns(L* listed, X* indexed, Move move) const {
    const std::int64_t columns = indices_.numel, step = outer_.strides[0][0], indexed_step = outer_.strides[1][0];
    if (columns == 0) return;
    Block list;
    look_up(0, columns, {0, size_}, list);
    constexpr std::int64_t few = 16, piece = 256;
    auto run = [&](const std::int64_t* at, std::int64_t count) {
      L* a = listed + at[0];
      X* b = indexed + at[1];
      if (columns < few)
        for (std::int64_t k = 0; k < columns; ++k)
          for (std::int64_t i = 0; i < count; ++i)
            move(a[list.listed[k] + i * step], b[list.indexed[k] + i * indexed_step]);
      else
        for (std::int64_t i = 0; i < count; ++i)
          for (std::int64_t k = 0; k < columns; ++k)
            move(a[list.listed[k] + i * step], b[list.indexed[k] + i * indexed_step]);
    };
    parallel_for(outer_count_, grain(columns), [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; begin += piece) outer_.for_each_part(begin, std::min(end, begin + piece), run);
    });
  }

  /// Returns true if the listed tensor and the indexed one are vectors.
  bool are_vectors() const { return outer_count_ == 1 && row_size_ == 1 && list_.rank == 1; }
  /// Calls move(element of the listed vector, of the indexed one) in the order of the list, from `begin` to before `end`.
  template <class L, class X, class Move>
  void move_elements(L* listed, X* indexed, std::int64_t begin, std::int64_t end, Move move) const {
    auto run = [=, this](const auto* indices) {
      std::int64_t step = list_.strides[0][0], index_step = list_.strides[1][0];
      for (std::int64_t i = begin; i < end; ++i) {
        std::int64_t index = indices[i * index_step];
        move(listed[i * step], indexed[(index + (index < 0 ? size_ : 0)) * step_]);
      }
    };
    if (indices_.dtype == DType::i64)
      run(indices_.as<const std::int64_t>());
    else
      run(indices_.as<const std::int32_t>());
  }

  /// The iteration over the elements of a row.
  const Iteration<2>& row() const { return row_; }

 private:
  static constexpr std::int64_t block = 512;
  struct Block {
    std::int64_t first = -1, count, listed[block], indexed[block];
  };

  static std::int64_t grain(std::int64_t work) {
    return std::max<std::int64_t>(1, parallel_grain / std::max<std::int64_t>(1, work));
  }

  template <class F>
  void name(std::int64_t begin, std::int64_t end, Share share, F f) const {
    std::int64_t length = indices_.numel;
    Block rows;
    while (begin < end) {
      std::int64_t outer = begin / length, place = begin % length;
      // The offsets of a short list are computed once for all.
      std::int64_t first = length <= block ? 0 : place;
      if (rows.first != first) look_up(first, std::min(block, length - first), share, rows);
      std::int64_t listed, indexed;
      offsets_from(outer_, 0, outer, 1, &listed);
      offsets_from(outer_, 1, outer, 1, &indexed);
      std::int64_t count = std::min(end - begin, std::min(block, length - place)), skipped = place - first;
      bool whole = share.end - share.begin == size_;
      f(listed, indexed, rows.listed + skipped, rows.indexed + skipped, whole ? count : rows.count);
      begin += count;
    }
  }

  void look_up(std::int64_t first, std::int64_t count, Share share, Block& rows) const {
    rows.first = first;
    offsets_from(list_, 0, first, count, rows.listed);
    offsets_from(list_, 1, first, count, rows.indexed);
    if (indices_.dtype == DType::i64)
      look_up(indices_.as<const std::int64_t>(), count, share, rows);
    else
      look_up(indices_.as<const std::int32_t>(), count, share, rows);
  }

  template <class I>
  void look_up(const I* indices, std::int64_t count, Share share, Block& rows) const {
    bool whole = share.end - share.begin == size_;
    rows.count = 0;
    // Without a branch: which thread owns a row is unpredictable.
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t index = indices[rows.indexed[i]], place = index + (index < 0 ? size_ : 0);
      rows.listed[rows.count] = rows.listed[i];
      rows.indexed[rows.count] = place * step_;
      rows.count += whole || (place >= share.begin && place < share.end);
    }
  }

  View indices_;
  std::int64_t size_, step_, outer_count_;
  Iteration<2> outer_, list_, row_;
  std::int64_t row_size_;
};

// Calls move(element of the listed tensor, of the indexed one) for a block of row pairs.
template <class L, class X, class Move>
void move_rows(const Iteration<2>& row, L* listed, X* indexed, const std::int64_t* from, const std::int64_t* to,
               std::int64_t count, Move move) {
  constexpr std::int64_t ahead = 16;
  std::int64_t size = row.dims[0], listed_stride = row.strides[0][0], indexed_stride = row.strides[1][0];
  if (row.rank == 1 && size == 1) {
    for (std::int64_t i = 0; i < count; ++i) move(listed[from[i]], indexed[to[i]]);
  } else if (row.rank == 1 && listed_stride == 1 && indexed_stride == 1) {
    auto rows_of = [&](auto length) {
      for (std::int64_t i = 0; i < count; ++i) {
        if (i + ahead < count) __builtin_prefetch(indexed + to[i + ahead]);
        L* a = listed + from[i];
        X* b = indexed + to[i];
        for (std::int64_t k = 0; k < length; ++k) move(a[k], b[k]);
      }
    };
    switch (size) {
      case 2: return rows_of(std::integral_constant<int, 2>());
      case 3: return rows_of(std::integral_constant<int, 3>());
      case 4: return rows_of(std::integral_constant<int, 4>());
      default: break;
    }
    if constexpr (requires { move(listed, indexed, size); })
      for (std::int64_t i = 0; i < count; ++i) move(listed + from[i], indexed + to[i], size);
    else
      rows_of(size);
  } else {
    for (std::int64_t i = 0; i < count; ++i)
      row.for_each_row([&](const std::int64_t* offset) {
        L* a = listed + from[i] + offset[0];
        X* b = indexed + to[i] + offset[1];
        for (std::int64_t k = 0; k < size; ++k) move(a[k * listed_stride], b[k * indexed_stride]);
      });
  }
}

// Copies an element, or a row.
template <class T>
struct Read {
  void operator()(T& to, const T& from) const { to = from; }
  void operator()(T* to, const T* from, std::int64_t count) const {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
  }
};

// Calls move(element of the listed tensor, of the indexed one) for all pairs of rows; `writes`: to the indexed ones.
template <class L, class X, class Move>
void move_pairs(const RowPairs& pairs, const View& listed, const View& indexed, bool writes, Move move) {
  L* a = listed.as<L>();
  X* b = indexed.as<X>();
  if (pairs.are_vectors()) {
    auto part = [&](std::int64_t begin, std::int64_t end) { pairs.move_elements(a, b, begin, end, move); };
    return writes ? part(0, listed.numel) : parallel_for(listed.numel, parallel_grain, part);
  }
  if (pairs.are_few_columns()) return pairs.move_columns(a, b, move);
  auto block = [&](std::int64_t listed_start, std::int64_t indexed_start, const std::int64_t* from,
                   const std::int64_t* to, std::int64_t count) {
    move_rows(pairs.row(), a + listed_start, b + indexed_start, from, to, count, move);
  };
  writes ? pairs.in_parallel_by_row(block) : pairs.in_parallel(block);
}

}  // namespace

void read_rows(const View& listed, const View& x, const View& indices, int axis) {
  RowPairs pairs(listed, x, indices, axis);
  with_bits(x.dtype,
            [&]<class T>(std::type_identity<T>) { move_pairs<T, const T>(pairs, listed, x, false, Read<T>()); });
}

void write_rows(const View& out, const View& listed, const View& indices, int axis) {
  RowPairs pairs(listed, out, indices, axis);
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) {
    move_pairs<const T, T>(pairs, listed, out, true, [](const T& from, T& to) { to = from; });
  });
}

void add_rows(const View& out, const View& listed, const View& indices, int axis) {
  RowPairs pairs(listed, out, indices, axis);
  with_type(listed.dtype, [&]<class T>(std::type_identity<T>) {
    using Sum = Wide<T>;
    move_pairs<const T, Sum>(pairs, listed, out, true,
                             [](const T& from, Sum& sum) { sum = plus(sum, static_cast<Sum>(from)); });
  });
}

}  // namespace reel::detail
