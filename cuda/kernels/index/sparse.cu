#include "../../../lib/kernels/sparse.h"

#include <bit>

#include "../../device/atomic.h"
#include "../../device/device.h"
#include "../../device/launch.h"
#include "../../device/split.h"
#include "../../libraries/library_sparse.h"
#include "../../libraries/sort_pairs.h"
#include "../../runtime/cuda_kernels.h"
#include "index_pairs.h"
#include "segment_sum.h"
#include "sparse_offsets.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// The row of an entry: the last row that starts at or before it.
REEL_DEVICE inline std::int64_t row_of(const std::int64_t* offsets, std::int64_t row_count, std::int64_t entry) {
  std::int64_t low = 0, high = row_count;
  while (low + 1 < high) {
    std::int64_t middle = (low + high) / 2;
    if (offsets[middle] <= entry)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// The checks of a pattern, in the order of precedence of their faults: the first offset, each row, the last offset,
// each entry.
struct PatternSteps {
  const std::int64_t *offsets, *columns;
  std::int64_t row_count, entry_count, column_count;

  REEL_HOST_DEVICE std::int64_t count() const { return row_count + 2 + entry_count; }
  REEL_DEVICE PatternFault look(std::int64_t step) const {
    if (step == 0) return offsets[0] == 0 ? PatternFault{} : PatternFault{PatternFault::first_offset, 0, offsets[0], 0};
    if (step <= row_count) {
      std::int64_t before = offsets[step - 1], now = offsets[step];
      return now >= before ? PatternFault{} : PatternFault{PatternFault::falling_offset, step - 1, now, before};
    }
    if (step == row_count + 1) {
      std::int64_t last = offsets[row_count];
      return last == entry_count ? PatternFault{} : PatternFault{PatternFault::last_offset, row_count, last, 0};
    }
    std::int64_t entry = step - row_count - 2, row = row_of(offsets, row_count, entry), column = columns[entry];
    std::int64_t before = entry == 0 || offsets[row] == entry ? -1 : columns[entry - 1];
    if (column < 0 || column >= column_count) return {PatternFault::column_range, row, column, before};
    if (column <= before) return {PatternFault::column_order, row, column, before};
    return {};
  }
};

struct FindFault {
  PatternSteps steps;
  unsigned long long* first;

  REEL_DEVICE void operator()(std::int64_t i) const {
    if (steps.look(i).kind != PatternFault::none) lower_to(first, static_cast<unsigned long long>(i));
  }
};
struct StartLooking {
  unsigned long long* first;
  REEL_DEVICE void operator()(std::int64_t) const { *first = ~0ull; }
};
struct TellFault {
  PatternSteps steps;
  const unsigned long long* first;
  PatternFault* fault;
  REEL_DEVICE void operator()(std::int64_t) const {
    *fault = *first == ~0ull ? PatternFault{} : steps.look(static_cast<std::int64_t>(*first));
  }
};

PatternFault find_fault(const View& offsets, const View& columns, std::int64_t column_count) {
  PatternSteps steps{offsets.as<const std::int64_t>(), columns.as<const std::int64_t>(), offsets.numel - 1,
                     columns.numel, column_count};
  Scratch first(sizeof(unsigned long long)), fault(sizeof(PatternFault));
  for_each(1, StartLooking{first.as<unsigned long long>()});
  for_each(steps.count(), FindFault{steps, first.as<unsigned long long>()});
  for_each(1, TellFault{steps, first.as<const unsigned long long>(), fault.as<PatternFault>()});
  return read_from_device(fault.as<const PatternFault>(), "whether a sparse matrix's pattern is sound");
}

// One element of out = A dense.
template <class T>
struct Product {
  RowPattern pattern;
  Split width;
  std::int64_t columns;
  T* out;
  const T *values, *dense;

  REEL_DEVICE void operator()(std::int64_t i) const {
    auto [row, column] = width(i);
    T sum = 0;
    for (std::int64_t k = pattern.offsets[row]; k < pattern.offsets[row + 1]; ++k)
      sum += values[k] * dense[pattern.columns[k] * columns + column];
    out[i] = sum;
  }
};

// A product with one column: the threads of a warp share a row.
template <class T>
struct VectorProduct {
  RowPattern pattern;
  T* out;
  const T *values, *dense;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    auto partial = group.template per_thread<T>();
    group.each([&](int thread) {
      T sum = 0;
      for (std::int64_t k = pattern.offsets[group.index()] + thread; k < pattern.offsets[group.index() + 1];
           k += group.size())
        sum += values[k] * dense[pattern.columns[k]];
      partial[thread] = sum;
    });
    T sum = group.reduce(partial, [](T a, T b) { return a + b; });
    group.each([&](int thread) {
      if (thread == 0) out[group.index()] = sum;
    });
  }
};

template <class T>
void multiply(const View& out, const View& values, const View& dense, const RowPattern& pattern) {
  std::int64_t columns = out.dims[1];
  if (columns == 1)
    return for_each_group(pattern.row_count, warp_size, 0,
                          VectorProduct<T>{pattern, out.as<T>(), values.as<const T>(), dense.as<const T>()});
  for_each(out.numel, Product<T>{pattern, Split(columns, out.numel), columns, out.as<T>(), values.as<const T>(),
                                 dense.as<const T>()});
}

void product(const View& out, const View& values, const View& dense, const RowPattern& pattern) {
  if (out.numel == 0 || library_sparse_product(out, values, dense, pattern)) return;
  if (out.dtype == DType::f64)
    multiply<double>(out, values, dense, pattern);
  else
    multiply<float>(out, values, dense, pattern);
}

// Keys for the transposed pattern: sorts entries by column, those of one column by row.
struct ColumnKeys {
  const std::int32_t* columns;
  KeyedNumbers to;

  REEL_DEVICE void operator()(std::int64_t i) const {
    to.keys[i] = static_cast<std::uint64_t>(columns[i]);
    to.numbers[i] = static_cast<std::uint32_t>(i);
  }
};
struct ColumnOffsets {
  const std::uint64_t* keys;
  std::int64_t count;
  std::int64_t* offsets;

  // The number of entries in earlier columns.
  REEL_DEVICE void operator()(std::int64_t column) const {
    std::int64_t low = 0, high = count;
    while (low < high) {
      std::int64_t middle = (low + high) / 2;
      if (keys[middle] < static_cast<std::uint64_t>(column))
        low = middle + 1;
      else
        high = middle;
    }
    offsets[column] = low;
  }
};
template <class T>
struct ArrangeEntries {
  const std::uint32_t* numbers;
  const std::int64_t* offsets;
  std::int64_t row_count;
  const T* values;
  std::int32_t* rows;
  T* arranged;

  REEL_DEVICE void operator()(std::int64_t i) const {
    rows[i] = static_cast<std::int32_t>(row_of(offsets, row_count, numbers[i]));
    arranged[i] = values[numbers[i]];
  }
};

void transposed_product(const View& out, const View& values, const View& dense, const RowPattern& pattern) {
  if (out.numel == 0) return;
  std::int64_t count = pattern.entry_count;
  if (count == 0) return fill_with_zeros(out.data, static_cast<std::size_t>(out.numel) * size_of(out.dtype));
  check_countable(count);
  check_countable(2 * pattern.row_count);
  auto entries = static_cast<std::size_t>(count);
  Scratch keys(2 * entries * sizeof(std::uint64_t)), numbers(2 * entries * sizeof(std::uint32_t));
  Scratch offsets(static_cast<std::size_t>(pattern.column_count + 1) * sizeof(std::int64_t));
  Scratch rows(entries * sizeof(std::int32_t)), arranged(entries * size_of(values.dtype));
  KeyedNumbers given{keys.as<std::uint64_t>(), numbers.as<std::uint32_t>()};
  for_each(count, ColumnKeys{pattern.columns, given});
  int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(pattern.column_count)));
  KeyedNumbers sorted = sort_pairs(given, {given.keys + count, given.numbers + count}, count, bits);
  for_each(pattern.column_count + 1, ColumnOffsets{sorted.keys, count, offsets.as<std::int64_t>()});
  auto arrange = [&]<class T>(const T* from) {
    for_each(count, ArrangeEntries<T>{sorted.numbers, pattern.offsets, pattern.row_count, from, rows.as<std::int32_t>(),
                                      arranged.as<T>()});
  };
  if (values.dtype == DType::f64)
    arrange(values.as<const double>());
  else
    arrange(values.as<const float>());
  View sorted_values = values;
  sorted_values.data = arranged.as<void>();
  product(out, sorted_values, dense,
          {offsets.as<const std::int64_t>(), rows.as<const std::int32_t>(), pattern.column_count, pattern.row_count,
           count});
}

// One entry: the threads of a warp share the sum.
template <class T>
struct Sample {
  RowPattern pattern;
  std::int64_t size;
  T* out;
  const T *left, *right;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    auto partial = group.template per_thread<T>();
    group.each([&](int thread) {
      const T* a = left + row_of(pattern.offsets, pattern.row_count, group.index()) * size;
      const T* b = right + pattern.columns[group.index()] * size;
      T sum = 0;
      for (std::int64_t k = thread; k < size; k += group.size()) sum += a[k] * b[k];
      partial[thread] = sum;
    });
    T sum = group.reduce(partial, [](T a, T b) { return a + b; });
    group.each([&](int thread) {
      if (thread == 0) out[group.index()] = sum;
    });
  }
};

struct NarrowOffsets {
  const std::int64_t* from;
  std::int32_t* to;
  REEL_DEVICE void operator()(std::int64_t i) const { to[i] = static_cast<std::int32_t>(from[i]); }
};

void sampled_product(const View& out, const View& left, const View& right, const RowPattern& pattern) {
  auto sample = [&]<class T>(T* to) {
    for_each_group(pattern.entry_count, warp_size, 0,
                   Sample<T>{pattern, left.dims[1], to, left.as<const T>(), right.as<const T>()});
  };
  if (out.dtype == DType::f64)
    sample(out.as<double>());
  else
    sample(out.as<float>());
}

}  // namespace

void narrow_offsets(std::int32_t* out, const RowPattern& pattern) {
  for_each(pattern.row_count + 1, NarrowOffsets{pattern.offsets, out});
}

void fill_sparse(KernelTable& table) {
  static constexpr SparseKernels kernels{.find_fault = find_fault,
                                         .product = product,
                                         .transposed_product = transposed_product,
                                         .sampled_product = sampled_product,
                                         .order_rows = order_rows,
                                         .segment_sum_rows = segment_sum_rows};
  table.sparse = &kernels;
}

}  // namespace reel::detail::inline REEL_TARGET
