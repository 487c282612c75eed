#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../../core/threads/parallel.h"
#include "../../../kernels/sparse.h"
#include "../instruction_set.h"
#include "../vector/vector.h"
#include "segment_sum.h"

// The rows of the dense operand to which a sparse row refers are scattered over memory. So the columns of the sparse
// matrix are processed in blocks whose dense rows fit the second-level cache, and all sparse rows use one block before
// the next. Sums are formed in the order of the entries, whatever the blocks.

namespace reel::detail::inline REEL_TARGET {
namespace {

constexpr std::int64_t block_bytes = 1 << 20;

// The number of dense rows of a block, given their size.
std::int64_t block_of(std::int64_t row_bytes) {
  return std::max<std::int64_t>(64, block_bytes / std::max<std::int64_t>(1, row_bytes));
}

struct Range {
  std::int64_t begin, end;
};

// The first index of an ascending list at which `smaller` is false.
template <class F>
std::int64_t first_not(Range range, F smaller) {
  while (range.begin < range.end) {
    std::int64_t middle = (range.begin + range.end) / 2;
    if (smaller(middle))
      range.begin = middle + 1;
    else
      range.end = middle;
  }
  return range.begin;
}

// The rows whose work, one for each entry and one for each row, starts within a range of all the work.
Range rows_of_work(const RowPattern& pattern, Range work) {
  auto first = [&](std::int64_t from) {
    return first_not({0, pattern.row_count}, [&](std::int64_t row) { return pattern.offsets[row] + row < from; });
  };
  return {first(work.begin), first(work.end)};
}

// Calls f(rows) for parts of all rows with about equally many entries; each entry costs `cost` steps.
template <class F>
void for_rows_in_parallel(const RowPattern& pattern, std::int64_t cost, F f) {
  // Few parts, since each part passes over all blocks.
  std::int64_t work = pattern.entry_count + pattern.row_count, share = work / (std::int64_t{2} * parallel::threads());
  parallel_for(work, std::max(parallel_grain / (cost + 1), share) + 1, [&](std::int64_t begin, std::int64_t end) {
    f(rows_of_work(pattern, {begin, end}));
  });
}

// Calls f(row, entries) for the entries of a range of rows, one block of columns after the other.
template <class F>
void for_each_run(const RowPattern& pattern, Range rows, std::int64_t block, F f) {
  const std::int64_t* offsets = pattern.offsets;
  std::vector<std::int64_t> next(offsets + rows.begin, offsets + rows.end);
  for (std::int64_t limit = block;; limit += block) {
    bool last = limit >= pattern.column_count;
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      std::int64_t& from = next[static_cast<std::size_t>(row - rows.begin)];
      std::int64_t to = from, end = offsets[row + 1];
      if (last)
        to = end;
      else
        while (to < end && pattern.columns[to] < limit) ++to;
      f(row, Range{from, to});
      from = to;
    }
    if (last) return;
  }
}

// Adjacent columns of the dense operands, as many as fit into registers; the last vector may be partial.
template <class T, int vectors, bool is_cut = false>
struct Strip {
  using V = Vector<T>;
  static constexpr std::int64_t width = vectors * V::lanes;
  typename V::Raw lanes[vectors];

  static V load(const T* from, int v, std::int64_t count) {
    if constexpr (is_cut) return V::load(from + v * V::lanes, count);
    return V::load(from + v * V::lanes);
  }
  static void store(V value, T* to, int v, std::int64_t count) {
    if constexpr (is_cut) return value.store(to + v * V::lanes, count);
    value.store(to + v * V::lanes);
  }
  template <class F>
  static HWY_INLINE void each(F f) {
    [&]<int... v>(std::integer_sequence<int, v...>) {
      (f(std::integral_constant<int, v>()), ...);
    }(std::make_integer_sequence<int, vectors>());
  }
};

// How many entries ahead rows are prefetched.
constexpr std::int64_t ahead = 12;

template <class T>
struct Operands {
  T* out;
  const T *values, *dense;
  std::int64_t step;   // leading dimension of both dense operands
  std::int64_t count;  // the number of columns of a partial strip
  const RowPattern& pattern;
};

template <class S, class T>
HWY_INLINE void prefetch(const T* row) {
  for (std::int64_t i = 0; i < S::width * static_cast<std::int64_t>(sizeof(T)); i += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(row) + i);
}

// out[row] += Σ values dense[columns] over some entries.
template <class S, class T>
void add_entries(const Operands<T>& o, std::int64_t row, Range entries, bool first) {
  using V = Vector<T>;
  S sums;
  T* to = o.out + row * o.step;
  S::each([&](auto v) { sums.lanes[v] = first ? V::repeat(0).raw : S::load(to, v, o.count).raw; });
  const std::int32_t* columns = o.pattern.columns;
  for (std::int64_t k = entries.begin; k < entries.end; ++k) {
    if (k + ahead < entries.end) prefetch<S>(o.dense + columns[k + ahead] * o.step);
    const T* from = o.dense + columns[k] * o.step;
    V value = V::repeat(o.values[k]);
    S::each([&](auto v) { sums.lanes[v] = multiply_add(value, S::load(from, v, o.count), V(sums.lanes[v])).raw; });
  }
  S::each([&](auto v) { S::store(V(sums.lanes[v]), to, v, o.count); });
}

template <class S, class T>
void multiply_strip(const Operands<T>& o) {
  std::int64_t block = block_of(S::width * static_cast<std::int64_t>(sizeof(T)));
  for_rows_in_parallel(o.pattern, S::width / Vector<T>::lanes, [&](Range rows) {
    for_each_run(o.pattern, rows, block, [&](std::int64_t row, Range entries) {
      add_entries<S>(o, row, entries, entries.begin == o.pattern.offsets[row]);
    });
  });
}

// out[columns] += values dense[row] over some entries of a row.
template <class S, class T>
void spread_entries(const Operands<T>& o, std::int64_t row, Range entries) {
  using V = Vector<T>;
  S given;
  S::each([&](auto v) { given.lanes[v] = S::load(o.dense + row * o.step, v, o.count).raw; });
  const std::int32_t* columns = o.pattern.columns;
  for (std::int64_t k = entries.begin; k < entries.end; ++k) {
    T* to = o.out + columns[k] * o.step;
    V value = V::repeat(o.values[k]);
    S::each([&](auto v) { S::store(multiply_add(value, V(given.lanes[v]), S::load(to, v, o.count)), to, v, o.count); });
  }
}

// Divides the rows of `out` into blocks, each of which one thread fills.
template <class S, class T>
void multiply_transposed_strip(const Operands<T>& o) {
  const RowPattern& pattern = o.pattern;
  std::int64_t parts = std::int64_t{4} * parallel::threads(), each = (pattern.column_count + parts - 1) / parts;
  std::int64_t block = std::clamp<std::int64_t>(each, 64, block_of(S::width * static_cast<std::int64_t>(sizeof(T))));
  std::int64_t count = (pattern.column_count + block - 1) / block;
  std::int64_t work = (pattern.entry_count * S::width / Vector<T>::lanes + pattern.row_count) / count + block;
  parallel_for(count, std::max<std::int64_t>(1, parallel_grain / work), [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int64_t> next(pattern.offsets, pattern.offsets + pattern.row_count);
    for (std::int64_t row = 0; begin > 0 && row < pattern.row_count; ++row)
      next[static_cast<std::size_t>(row)] =
          first_not({pattern.offsets[row], pattern.offsets[row + 1]},
                    [&](std::int64_t k) { return pattern.columns[k] < begin * block; });
    for (std::int64_t low = begin * block; low < end * block; low += block) {
      std::int64_t high = std::min(low + block, pattern.column_count);
      for (std::int64_t column = low; column < high; ++column)
        S::each([&](auto v) { S::store(Vector<T>::repeat(0), o.out + column * o.step, v, o.count); });
      for (std::int64_t row = 0; row < pattern.row_count; ++row) {
        std::int64_t& from = next[static_cast<std::size_t>(row)];
        std::int64_t to = from, last = pattern.offsets[row + 1];
        while (to < last && pattern.columns[to] < high) ++to;
        if (from < to) spread_entries<S>(o, row, {from, to});
        from = to;
      }
    }
  });
}

// Calls f with a strip's type and the operands from the strip's first column on, for all strips.
template <class T, class F>
void for_each_strip(Operands<T> o, F f) {
  constexpr std::int64_t lanes = Vector<T>::lanes;
  std::int64_t left = o.step;
  auto strip = [&](auto type, std::int64_t width) {
    o.count = width;
    f(type, o);
    o.out += width;
    o.dense += width;
    return width;
  };
  while (left >= 8 * lanes) left -= strip(std::type_identity<Strip<T, 8>>(), 8 * lanes);
  if (left >= 4 * lanes) left -= strip(std::type_identity<Strip<T, 4>>(), 4 * lanes);
  if (left >= 2 * lanes) left -= strip(std::type_identity<Strip<T, 2>>(), 2 * lanes);
  if (left >= lanes) left -= strip(std::type_identity<Strip<T, 1>>(), lanes);
  if (left > 0) strip(std::type_identity<Strip<T, 1, true>>(), left);
}

// Calls f with the element type.
template <class F>
void with_element(DType dtype, F f) {
  if (dtype == DType::f64)
    f(std::type_identity<double>());
  else
    f(std::type_identity<float>());
}

template <class T>
Operands<T> operands(const View& out, const View& values, const View& dense, const RowPattern& pattern) {
  return {out.as<T>(), values.as<const T>(), dense.as<const T>(), out.dims[1], 0, pattern};
}

void product(const View& out, const View& values, const View& dense, const RowPattern& pattern) {
  if (out.numel == 0) return;
  with_element(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_strip(operands<T>(out, values, dense, pattern),
                   [](auto strip, const Operands<T>& o) { multiply_strip<typename decltype(strip)::type>(o); });
  });
}

void transposed_product(const View& out, const View& values, const View& dense, const RowPattern& pattern) {
  if (out.numel == 0) return;
  with_element(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_strip(operands<T>(out, values, dense, pattern), [](auto strip, const Operands<T>& o) {
      multiply_transposed_strip<typename decltype(strip)::type>(o);
    });
  });
}

template <class T>
T dot(const T* a, const T* b, std::int64_t count) {
  using V = Vector<T>;
  constexpr std::int64_t lanes = V::lanes;
  V sums[4] = {V::repeat(0), V::repeat(0), V::repeat(0), V::repeat(0)};
  std::int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes)
    for (int v = 0; v < 4; ++v) sums[v] = multiply_add(V::load(a + i + v * lanes), V::load(b + i + v * lanes), sums[v]);
  for (; i + lanes <= count; i += lanes) sums[0] = multiply_add(V::load(a + i), V::load(b + i), sums[0]);
  if (i < count) sums[1] = multiply_add(V::load(a + i, count - i), V::load(b + i, count - i), sums[1]);
  typename V::Tag tag;
  return hn::GetLane(hn::SumOfLanes(tag, ((sums[0] + sums[1]) + (sums[2] + sums[3])).raw));
}

void sampled_product(const View& out, const View& left, const View& right, const RowPattern& pattern) {
  if (out.numel == 0) return;
  std::int64_t size = left.dims[1];
  with_element(out.dtype, [&]<class T>(std::type_identity<T>) {
    const T *a = left.as<const T>(), *b = right.as<const T>();
    T* to = out.as<T>();
    std::int64_t block = block_of(size * static_cast<std::int64_t>(sizeof(T)));
    for_rows_in_parallel(pattern, 8 + size / Vector<T>::lanes, [&](Range rows) {
      for_each_run(pattern, rows, block, [&](std::int64_t row, Range entries) {
        for (std::int64_t k = entries.begin; k < entries.end; ++k) {
          if (k + ahead < entries.end) prefetch<Strip<T, 4>>(b + pattern.columns[k + ahead] * size);
          to[k] = dot(a + row * size, b + pattern.columns[k] * size, size);
        }
      });
    });
  });
}

PatternFault find_fault(const View& offsets, const View& columns, std::int64_t column_count) {
  const auto* offset = offsets.as<const std::int64_t>();
  const auto* column = columns.as<const std::int64_t>();
  std::int64_t row_count = offsets.numel - 1;
  if (offset[0] != 0) return {PatternFault::first_offset, 0, offset[0], 0};
  for (std::int64_t row = 0; row < row_count; ++row)
    if (offset[row + 1] < offset[row]) return {PatternFault::falling_offset, row, offset[row + 1], offset[row]};
  if (offset[row_count] != columns.numel) return {PatternFault::last_offset, row_count, offset[row_count], 0};
  for (std::int64_t row = 0; row < row_count; ++row) {
    std::int64_t before = -1;
    for (std::int64_t k = offset[row]; k < offset[row + 1]; ++k) {
      if (column[k] < 0 || column[k] >= column_count) return {PatternFault::column_range, row, column[k], before};
      if (column[k] <= before) return {PatternFault::column_order, row, column[k], before};
      before = column[k];
    }
  }
  return {};
}

constexpr SparseKernels sparse_kernels{
    .find_fault = find_fault,
    .product = product,
    .transposed_product = transposed_product,
    .sampled_product = sampled_product,
    .order_rows = order_rows,
    .segment_sum_rows = segment_sum_rows,
};

}  // namespace

void fill_sparse(KernelTable& table) { table.sparse = &sparse_kernels; }

}  // namespace reel::detail::inline REEL_TARGET
