#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../core/dtype_dispatch.h"
#include "../../core/iteration.h"
#include "../../core/threads/parallel.h"
#include "../cached_space.h"
#include "../cpu_kernels.h"
#include "order_keys.h"

namespace reel::detail {
namespace {

// An element's key and index, ordered by both: no two are equal, so every sorting algorithm is stable.
struct ShortEntry {
  static constexpr int key_bits = 32;
  std::uint64_t bits;
  ShortEntry() = default;
  ShortEntry(std::uint32_t key, std::int64_t place)
      : bits(static_cast<std::uint64_t>(key) << 32 | static_cast<std::uint64_t>(place)) {}
  std::uint64_t key() const { return bits >> 32; }
  std::int64_t place() const { return static_cast<std::uint32_t>(bits); }
  friend bool operator<(ShortEntry a, ShortEntry b) { return a.bits < b.bits; }
};

struct LongEntry {
  static constexpr int key_bits = 64;
  std::uint64_t bits;
  std::int64_t position;
  LongEntry() = default;
  LongEntry(std::uint64_t key, std::int64_t place) : bits(key), position(place) {}
  std::uint64_t key() const { return bits; }
  std::int64_t place() const { return position; }
  friend bool operator<(LongEntry a, LongEntry b) {
    return a.bits < b.bits || (a.bits == b.bits && a.position < b.position);
  }
};

// Calls f with the type of the entries of a row of x.
template <class T, class F>
void with_entry(std::int64_t size, F f) {
  if constexpr (sizeof(Key<T>) == 4)
    if (size <= std::int64_t{1} << 32) return f(std::type_identity<ShortEntry>());
  f(std::type_identity<LongEntry>());
}

// The rows of several tensors along an axis; their sizes on all other axes are equal.
class Rows {
 public:
  Rows(const View& x, int axis) : count(1) {
    for (int k = 0; k < x.rank; ++k) {
      if (k == axis) continue;
      axes_[rank_] = k;
      dims_[rank_++] = x.dims[k];
      count *= x.dims[k];
    }
  }
  /// Offset in x of the first element of row i.
  std::int64_t offset(const View& x, std::int64_t i) const {
    std::int64_t offset = 0;
    for (int k = rank_; k-- > 0;) {
      offset += i % dims_[k] * x.strides[axes_[k]];
      i /= dims_[k];
    }
    return offset;
  }

  std::int64_t count;

 private:
  int rank_ = 0, axes_[8];
  std::int64_t dims_[8];
};

// The number of rows of a size that is worth a thread.
std::int64_t grain(std::int64_t size) {
  return std::max<std::int64_t>(1, parallel_grain / std::max<std::int64_t>(1, size));
}

// One pass of a radix sort: writes `from` to `to`, stably ordered by a digit of the keys.
template <int digit_bits, class E>
void order_by_digit(const E* from, E* to, std::int64_t size, int shift, std::int64_t parts, std::int64_t* starts) {
  constexpr int digits = 1 << digit_bits;
  auto digit_of = [&](E entry) { return static_cast<std::size_t>(entry.key() >> shift) & (digits - 1); };
  auto end_of = [&](std::int64_t part) { return size * part / parts; };
  std::fill_n(starts, digits * parts, 0);
  parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part)
      for (std::int64_t i = end_of(part); i < end_of(part + 1); ++i) ++starts[part * digits + digit_of(from[i])];
  });
  std::int64_t start = 0;
  for (int digit = 0; digit < digits; ++digit)
    for (std::int64_t part = 0; part < parts; ++part) start += std::exchange(starts[part * digits + digit], start);
  parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part)
      for (std::int64_t i = end_of(part); i < end_of(part + 1); ++i)
        to[starts[part * digits + digit_of(from[i])]++] = from[i];
  });
}

// Sorts by all digits in which keys differ; returns the one of the two arrays that holds the result.
template <int digit_bits, class E>
E* sorted_by_digits(E* entries, E* others, std::int64_t size) {
  constexpr std::int64_t digits = 1 << digit_bits;
  std::uint64_t differing = 0;
  for (std::int64_t i = 1; i < size; ++i) differing |= entries[i].key() ^ entries[0].key();
  std::int64_t parts = std::clamp<std::int64_t>(size / parallel_grain, 1, parallel::threads()), own[digits];
  std::vector<std::int64_t> shared(static_cast<std::size_t>(parts > 1 ? digits * parts : 0));
  std::int64_t* starts = parts > 1 ? shared.data() : own;
  for (int shift = 0; shift < E::key_bits; shift += digit_bits) {
    if ((differing >> shift & (digits - 1)) == 0) continue;
    order_by_digit<digit_bits>(entries, others, size, shift, parts, starts);
    std::swap(entries, others);
  }
  return entries;
}

// Sorts `entries` with the buffer `others` of equal size; returns the one that holds the result.
template <class E>
E* sorted(E* entries, E* others, std::int64_t size) {
  constexpr std::int64_t few = 200;
  if (size <= few) {
    std::sort(entries, entries + size);
    return entries;
  }
  // Counts of few elements by many digits would take longer than the elements.
  return size <= 8192 ? sorted_by_digits<8>(entries, others, size) : sorted_by_digits<11>(entries, others, size);
}

// Rows of one element are in order.
template <class T>
void copy_single(const View& values, const View& indices, const View& x) {
  Iteration<3> rows({&values, &indices, &x});
  parallel_for(x.numel, parallel_grain, [&](std::int64_t begin, std::int64_t end) {
    rows.for_each_part(begin, end, [&](const std::int64_t* offsets, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        values.as<T>()[offsets[0] + i * rows.strides[0][0]] = x.as<const T>()[offsets[2] + i * rows.strides[2][0]];
        indices.as<std::int64_t>()[offsets[1] + i * rows.strides[1][0]] = 0;
      }
    });
  });
}

// Writes as many entries to each row of the outputs as it has, in order: those that `choose(row, space)` returns, where
// `space` has room for `entries` entries.
template <class T, class E, class Choose>
void choose_rows(const View& values, const View& indices, const View& x, int axis, bool descending,
                 std::int64_t entries, Choose choose) {
  if (x.dims[axis] == 1 && values.dims[axis] == 1) return copy_single<T>(values, indices, x);
  Rows rows(x, axis);
  std::int64_t wanted = values.dims[axis], value_stride = values.strides[axis], index_stride = indices.strides[axis];
  Row<T> row{nullptr, x.dims[axis], x.strides[axis], static_cast<Key<T>>(descending ? ~Key<T>(0) : 0)};
  parallel_for(rows.count, grain(row.size), [=](std::int64_t begin, std::int64_t end) {
    CachedSpace<E> space(entries);
    for (std::int64_t i = begin; i < end; ++i) {
      Row<T> from = row;
      from.first = x.as<const T>() + rows.offset(x, i);
      const E* chosen = choose(from, space.get());
      T* value = values.as<T>() + rows.offset(values, i);
      auto* index = indices.as<std::int64_t>() + rows.offset(indices, i);
      parallel_for(wanted, parallel_grain, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t k = first; k < last; ++k) {
          std::int64_t place = chosen[k].place();
          value[k * value_stride] = from.first[place * from.step];
          index[k * index_stride] = place;
        }
      });
    }
  });
}

void sort(const View& values, const View& indices, const View& x, int axis, bool descending) {
  std::int64_t size = x.dims[axis];
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    with_entry<T>(size, [&]<class E>(std::type_identity<E>) {
      choose_rows<T, E>(values, indices, x, axis, descending, 2 * size, [size](const Row<T>& row, E* space) {
        row.load(space);
        return sorted(space, space + size, size);
      });
    });
  });
}

// Finds the first `count` entries of a row, for a small count: a sorted list into which a better entry is inserted from
// the end.
template <class T, class E>
void first_few(const Row<T>& row, E* few, std::int64_t count) {
  auto enter = [&](E entry, std::int64_t free) {
    for (; free > 0 && entry < few[free - 1]; --free) few[free] = few[free - 1];
    few[free] = entry;
  };
  for (std::int64_t place = 0; place < count; ++place) enter(E(row.key(place), place), place);
  // Blocks without a better key, which most are, are skipped at once.
  constexpr std::int64_t block = 64;
  Key<T> keys[block];
  for (std::int64_t start = count; start < row.size; start += block) {
    std::int64_t length = std::min(block, row.size - start);
    auto worst = static_cast<Key<T>>(few[count - 1].key());
    Key<T> best = worst;
    for (std::int64_t i = 0; i < length; ++i) {
      keys[i] = row.key(start + i);
      best = std::min(best, keys[i]);
    }
    if (best == worst) continue;
    for (std::int64_t i = 0; i < length; ++i)
      if (keys[i] < worst) {
        enter(E(keys[i], start + i), count - 1);
        worst = static_cast<Key<T>>(few[count - 1].key());
      }
  }
}

void topk(const View& values, const View& indices, const View& x, int axis, bool largest) {
  std::int64_t size = x.dims[axis], count = values.dims[axis];
  if (count == 0) return;
  constexpr std::int64_t few = 64;
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    with_entry<T>(size, [&]<class E>(std::type_identity<E>) {
      if (count <= few)
        return choose_rows<T, E>(values, indices, x, axis, largest, count, [=](const Row<T>& row, E* space) {
          first_few(row, space, count);
          return space;
        });
      choose_rows<T, E>(values, indices, x, axis, largest, size, [=](const Row<T>& row, E* space) {
        row.load(space);
        std::nth_element(space, space + count - 1, space + size);
        std::sort(space, space + count);  // by index too: partitioning has changed the order of equal keys
        return space;
      });
    });
  });
}

// The numbers of elements of a sorted row that are smaller than each of `together` values, or at most equal with `right`.
// Searches for several values at once wait for memory together, and no step has a branch.
template <int together, class T>
void count_before(const Row<T>& sorted, const T* values, std::int64_t step, bool right, std::int64_t* counts) {
  Key<T> keys[together];
  std::int64_t begin[together] = {};
  for (int k = 0; k < together; ++k) keys[k] = key_of(values[k * step]);
  for (std::int64_t size = sorted.size; size > 0;) {
    std::int64_t half = size / 2;
    for (int k = 0; k < together; ++k) {
      Key<T> middle = sorted.key(begin[k] + half);
      bool before = right ? middle <= keys[k] : middle < keys[k];
      begin[k] += before ? size - half : 0;
    }
    size = half;
  }
  for (int k = 0; k < together; ++k) counts[k] = begin[k];
}

void searchsorted(const View& out, const View& sorted, const View& values, bool right) {
  int axis = sorted.rank - 1;
  std::int64_t size = sorted.dims[axis], length = values.rank == 0 ? 1 : values.dims[values.rank - 1];
  Rows value_rows(values, values.rank - 1), sorted_rows(sorted, axis);
  auto* count = out.as<std::int64_t>();
  with_type(values.dtype, [&]<class T>(std::type_identity<T>) {
    parallel_for(values.numel, parallel_grain / 16, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {
        std::int64_t i = begin / length, first = begin % length, left = std::min(end - begin, length - first);
        std::int64_t step = values.rank == 0 ? 0 : values.strides[values.rank - 1];
        const T* value = values.as<const T>() + value_rows.offset(values, i) + first * step;
        const T* row = sorted.as<const T>() + (sorted.rank == 1 ? 0 : sorted_rows.offset(sorted, i));
        Row<T> from{row, size, sorted.strides[axis], 0};
        constexpr int together = 8;
        std::int64_t k = 0;
        for (; k + together <= left; k += together)
          count_before<together>(from, value + k * step, step, right, count + begin + k);
        for (; k < left; ++k) count_before<1>(from, value + k * step, step, right, count + begin + k);
        begin += left;
      }
    });
  });
}

}  // namespace

void fill_sort(KernelTable& table) {
  table.sort = sort;
  table.topk = topk;
  table.searchsorted = searchsorted;
}

}  // namespace reel::detail
