#include <algorithm>
#include <atomic>
#include <type_traits>
#include <utility>

#include "../../core/dtype_dispatch.h"
#include "../../core/iteration.h"
#include "../../core/threads/parallel.h"
#include "../../kernels/formulas/binary.h"
#include "../cpu_kernels.h"
#include "rows.h"

namespace reel::detail {
namespace {

// Calls f(indices) with the C++ type of the indices.
template <class F>
void with_indices(const View& indices, F f) {
  if (indices.dtype == DType::i64)
    f(indices.as<const std::int64_t>());
  else
    f(indices.as<const std::int32_t>());
}

template <class I>
bool all_within(const I* indices, std::int64_t count, std::int64_t step, std::int64_t size) {
  // The sign of the distance to either end, which vectors of any processor have.
  auto end = static_cast<std::uint64_t>(size);
  auto signs = [=](auto by) {
    std::uint64_t found = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      auto index = static_cast<std::uint64_t>(static_cast<std::int64_t>(indices[i * by]));
      found |= (index + end) | (end - 1 - index);
    }
    return found;
  };
  return (step == 1 ? signs(std::integral_constant<std::int64_t, 1>()) : signs(step)) >> 63 == 0;
}

bool indices_within(const View& indices, std::int64_t size, std::int64_t& bad) {
  // Repeated indices, along axes of stride 0, are checked once.
  std::int64_t dims[8];
  View once = indices;
  once.dims = dims;
  for (int axis = 0; axis < indices.rank; ++axis)
    dims[axis] = indices.strides[axis] == 0 ? std::min<std::int64_t>(1, indices.dims[axis]) : indices.dims[axis];
  Iteration<1> iteration({&once});
  std::int64_t step = iteration.strides[0][0];
  std::atomic<bool> within{true};
  with_indices(indices, [&](const auto* first) {
    iteration.for_each_row([&](const std::int64_t* offset) {
      parallel_for(iteration.dims[0], 4 * parallel_grain, [&](std::int64_t begin, std::int64_t end) {
        if (!all_within(first + offset[0] + begin * step, end - begin, step, size)) within = false;
      });
    });
    if (within) return;
    bool found = false;
    iteration.for_each_row([&](const std::int64_t* offset) {
      for (std::int64_t i = 0; !found && i < iteration.dims[0]; ++i) {
        bad = first[offset[0] + i * step];
        found = bad < -size || bad >= size;
      }
    });
  });
  return within;
}

// Indices from `begin` to before `end` of one axis.
struct Part {
  int axis;
  std::int64_t begin, end;
};

// Rows shorter than this are not worth a loop of their own.
constexpr std::int64_t short_row = 8;

// Calls f(offset in a, offset in b) for every element of a part of `index`: `a` has the layout of the index; in `b` the
// coordinate along the axis is the index itself.
template <class I, class F>
void for_each_indexed(const View& index, const I* indices, const View& a, const View& b, int axis, Part part, F f) {
  std::int64_t dims[8], steps[8];
  for (int k = 0; k < index.rank; ++k) {
    dims[k] = k == part.axis ? part.end - part.begin : index.dims[k];
    steps[k] = k == axis ? 0 : b.strides[k];
  }
  View places = index, listed = a, indexed = b;
  places.dims = listed.dims = indexed.dims = dims;
  indexed.strides = steps;
  Iteration<3> rows({&places, &listed, &indexed});
  if (rows.rank > 1 && rows.dims[0] < short_row && rows.dims[1] > rows.dims[0]) {
    std::swap(rows.dims[0], rows.dims[1]);
    for (auto& strides : rows.strides) std::swap(strides[0], strides[1]);
  }
  const std::int64_t count = rows.dims[0], size = b.dims[axis], stride = b.strides[axis];
  const std::int64_t index_step = rows.strides[0][0], here_step = rows.strides[1][0], there_step = rows.strides[2][0];
  indices += part.begin * index.strides[part.axis];
  const std::int64_t here = part.begin * a.strides[part.axis], there = part.begin * steps[part.axis];
  auto place = [=](std::int64_t at) {
    std::int64_t j = indices[at];
    return there + (j + (j < 0 ? size : 0)) * stride;
  };
  // Rows of b are scattered over memory, so they are prefetched some index rows ahead.
  constexpr std::int64_t ahead = 8;
  std::int64_t element = static_cast<std::int64_t>(size_of(b.dtype)), row = 0;
  rows.for_each_row([&](const std::int64_t* at) {
    if (rows.rank > 1) {
      if (row + ahead < rows.dims[1])
        __builtin_prefetch(b.as<const char>() +
                           (place(at[0] + ahead * rows.strides[0][1]) + at[2] + ahead * rows.strides[2][1]) * element);
      if (++row == rows.dims[1]) row = 0;
    }
    const I* next = indices + at[0];
    std::int64_t to = here + at[1], offset = there + at[2];
    for (std::int64_t i = 0; i < count; ++i, next += index_step, to += here_step, offset += there_step) {
      std::int64_t j = *next;
      f(to, offset + (j + (j < 0 ? size : 0)) * stride);
    }
  });
}

// The longest axis other than `but`.
int longest_axis(const View& x, int but) {
  int longest = but == 0 ? x.rank - 1 : 0;
  for (int k = 0; k < x.rank; ++k)
    if (k != but && x.dims[k] > x.dims[longest]) longest = k;
  return longest;
}

// Calls for_each_indexed for all of `index`; threads divide the axis `split`, and write adjacent parts of `written`.
template <class F>
void for_all_indexed(const View& index, const View& a, const View& b, int axis, int split, const View& written, F f) {
  if (index.numel == 0) return;
  // Threads that write to the same cache lines are slower than one thread.
  std::int64_t size = index.dims[split], apart = 64 / std::max<std::int64_t>(1, written.strides[split]),
               grain = std::max({std::int64_t{1}, apart, parallel_grain * size / index.numel});
  with_indices(index, [&](const auto* indices) {
    // Short rows are read by columns, in pieces that stay in the cache.
    std::int64_t piece = index.numel / size < short_row ? 4096 : size;
    parallel_for(size, grain, [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; begin += piece)
        for_each_indexed(index, indices, a, b, axis, {split, begin, std::min(end, begin + piece)}, f);
    });
  });
}

// If the index is constant off its axis, sets `list` to it and returns true: then whole rows are moved.
bool picks_rows(const View& index, int axis, View& list) {
  for (int k = 0; k < index.rank; ++k)
    if (k != axis && index.dims[k] != 1 && index.strides[k] != 0) return false;
  list = index;
  list.dims += axis;
  list.strides += axis;
  list.rank = 1;
  list.numel = list.dims[0];
  return true;
}

bool gather(const View& out, const View& x, const View& index, int axis, std::int64_t& bad) {
  if (!indices_within(index, x.dims[axis], bad)) return false;
  View list;
  if (picks_rows(index, axis, list)) {
    read_rows(out, x, list, axis);
    return true;
  }
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_all_indexed(
        index, out, x, axis, longest_axis(index, -1), out,
        [to = out.as<T>(), from = x.as<const T>()](std::int64_t here, std::int64_t there) { to[here] = from[there]; });
  });
  return true;
}

void scatter(const View& out, const View& source, const View& index, int axis) {
  View list;
  if (picks_rows(index, axis, list)) return write_rows(out, source, list, axis);
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_all_indexed(index, source, out, axis, longest_axis(index, axis), out,
                    [to = out.as<T>(), from = source.as<const T>()](std::int64_t here, std::int64_t there) {
                      to[there] = from[here];
                    });
  });
}

void scatter_add(const View& out, const View& updates, const View& index, int axis) {
  View list;
  bool rows = picks_rows(index, axis, list);
  with_wide_sums(out, [&](const View& sums) {
    if (rows) return add_rows(sums, updates, list, axis);
    with_type(updates.dtype, [&]<class T>(std::type_identity<T>) {
      using Sum = Wide<T>;
      for_all_indexed(index, updates, sums, axis, longest_axis(index, axis), sums,
                      [to = sums.as<Sum>(), from = updates.as<const T>()](std::int64_t here, std::int64_t there) {
                        to[there] = plus(to[there], static_cast<Sum>(from[here]));
                      });
    });
  });
}

void scatter_extreme(const View& out, const View& source, const View& index, int axis, bool largest) {
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    auto run = [&](auto extreme) {
      for_all_indexed(index, source, out, axis, longest_axis(index, axis), out,
                      [to = out.as<T>(), from = source.as<const T>(), extreme](std::int64_t here, std::int64_t there) {
                        auto joined = extreme(static_cast<Wide<T>>(from[here]), static_cast<Wide<T>>(to[there]));
                        to[there] = static_cast<T>(joined);
                      });
    };
    largest ? run(formulas::Maximum()) : run(formulas::Minimum());
  });
}

bool take(const View& out, const View& x, const View& indices, int axis, std::int64_t& bad) {
  if (!indices_within(indices, x.dims[axis], bad)) return false;
  read_rows(out, x, indices, axis);
  return true;
}

void index_add(const View& out, const View& source, const View& indices, int axis) {
  with_wide_sums(out, [&](const View& sums) { add_rows(sums, source, indices, axis); });
}

}  // namespace

void fill_index(KernelTable& table) {
  table.indices_within = indices_within;
  table.gather = gather;
  table.scatter = scatter;
  table.scatter_add = scatter_add;
  table.scatter_extreme = scatter_extreme;
  table.take = take;
  table.index_add = index_add;
  table.index_copy = write_rows;
}

}  // namespace reel::detail
