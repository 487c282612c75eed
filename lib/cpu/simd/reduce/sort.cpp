#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../../core/dtype_dispatch.h"
#include "../../../core/iteration.h"
#include "../../../core/threads/parallel.h"
#include "../../cached_space.h"
#include "../elementwise/elementwise.h"
#include "../instruction_set.h"
#include "key_ranks.h"
#include "order_keys.h"

namespace reel::detail::inline REEL_TARGET {
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

// The number of rows of a size that is worth a thread.
std::int64_t grain(std::int64_t size) {
  return std::max<std::int64_t>(1, parallel_grain / std::max<std::int64_t>(1, size));
}

// One pass of a radix sort: writes `from` to `to`, stably ordered by a digit of the keys less the least of them.
template <int digit_bits, class E>
void order_by_digit(const E* from, E* to, std::int64_t size, std::uint64_t least, int shift, std::int64_t parts,
                    std::int64_t* starts) {
  constexpr int digits = 1 << digit_bits;
  auto digit_of = [&](E entry) { return static_cast<std::size_t>((entry.key() - least) >> shift) & (digits - 1); };
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

// Sorts by all digits in which the keys' distances from the least one differ; returns the one of the two arrays that holds
// the result.
template <int digit_bits, class E>
E* sorted_by_digits(E* entries, E* others, std::int64_t size) {
  constexpr std::int64_t digits = 1 << digit_bits;
  std::uint64_t least = entries[0].key(), differing = 0;
  for (std::int64_t i = 1; i < size; ++i) least = std::min(least, entries[i].key());
  for (std::int64_t i = 0; i < size; ++i) differing |= entries[i].key() - least;
  std::int64_t parts = std::clamp<std::int64_t>(size / parallel_grain, 1, parallel::threads()), own[digits];
  std::vector<std::int64_t> shared(static_cast<std::size_t>(parts > 1 ? digits * parts : 0));
  std::int64_t* starts = parts > 1 ? shared.data() : own;
  for (int shift = 0; shift < E::key_bits; shift += digit_bits) {
    if ((differing >> shift & (digits - 1)) == 0) continue;
    order_by_digit<digit_bits>(entries, others, size, least, shift, parts, starts);
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

// Writes as many entries to each row of the outputs as it has, in order: those that `choose(row, space)` returns, where
// `space` has room for `entries` entries.
template <class T, class E, class Choose>
void choose_rows(const View& values, const View& indices, const View& x, int axis, bool descending,
                 std::int64_t entries, Choose choose) {
  if (values.numel == 0) return;
  auto rows = rows_along<3>(axis, {values, indices, x});
  std::int64_t wanted = values.dims[axis], value_stride = values.strides[axis], index_stride = indices.strides[axis];
  Row<T> row{nullptr, x.dims[axis], x.strides[axis], static_cast<Key<T>>(descending ? ~Key<T>(0) : 0)};
  auto write_row = [=](T* value, std::int64_t* index, const T* first, E* space) {
    Row<T> from = row;
    from.first = first;
    const E* chosen = choose(from, space);
    auto write = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = begin; k < end; ++k) {
        std::int64_t place = chosen[k].place();
        value[k * value_stride] = first[place * from.step];
        index[k * index_stride] = place;
      }
    };
    if (wanted < parallel_grain) return write(0, wanted);
    parallel_for(wanted, parallel_grain, write);
  };
  parallel_for(x.numel / row.size, grain(row.size), [=](std::int64_t begin, std::int64_t end) {
    CachedSpace<E> space(entries);
    rows.for_each_part(begin, end, [&](const std::int64_t* offsets, std::int64_t count) {
      T* value = values.as<T>() + offsets[0];
      auto* index = indices.as<std::int64_t>() + offsets[1];
      const T* first = x.as<const T>() + offsets[2];
      const std::int64_t steps[] = {rows.strides[0][0], rows.strides[1][0], rows.strides[2][0]};
      if (row.size > 1) {
        for (std::int64_t i = 0; i < count; ++i)
          write_row(value + i * steps[0], index + i * steps[1], first + i * steps[2], space.get());
        return;
      }
      // Rows of one element are in order.
      for (std::int64_t i = 0; i < count; ++i) {
        value[i * steps[0]] = first[i * steps[2]];
        index[i * steps[1]] = 0;
      }
    });
  });
}

// Sorts the entries of a row that is short enough for their ranks.
template <class T, class E>
void order_few(const Row<T>& row, E* entries) {
  KeyRanks<Key<T>> ranks;
  for (std::int64_t place = 0; place < row.size; ++place) ranks.keys()[place] = row.key(place);
  ranks.compute(row.size);
  for (std::int64_t place = 0; place < row.size; ++place) entries[ranks[place]] = E(ranks.keys()[place], place);
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
  constexpr std::int64_t block = 64;
  if (row.size <= block) {
    for (std::int64_t place = count; place < row.size; ++place)
      if (E entry(row.key(place), place); entry < few[count - 1]) enter(entry, count - 1);
    return;
  }
  // Blocks without a better key, which most are, are skipped at once.
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

void sort(const View& values, const View& indices, const View& x, int axis, bool descending) {
  std::int64_t size = x.dims[axis];
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    with_entry<T>(size, [&]<class E>(std::type_identity<E>) {
      choose_rows<T, E>(values, indices, x, axis, descending, 2 * size, [size](const Row<T>& row, E* space) {
        if (size > KeyRanks<Key<T>>::longest) {
          row.load(space);
          return sorted(space, space + size, size);
        }
        size <= 4 ? first_few(row, space, size) : order_few(row, space);
        return space;
      });
    });
  });
}

void topk(const View& values, const View& indices, const View& x, int axis, bool largest) {
  std::int64_t size = x.dims[axis], count = values.dims[axis];
  if (count == 0) return;
  constexpr std::int64_t few = 64;
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    with_entry<T>(size, [&]<class E>(std::type_identity<E>) {
      if (count <= few)
        return choose_rows<T, E>(values, indices, x, axis, largest, std::max(count, KeyRanks<Key<T>>::longest),
                                 [=](const Row<T>& row, E* space) {
                                   if (count > 4 && size <= KeyRanks<Key<T>>::longest)
                                     order_few(row, space);
                                   else
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
  bool one_row = sorted.rank == 1;
  if (one_row && !values.contiguous) {
    // Searched for as one row, too.
    CachedSpace<std::byte> space(values.numel * static_cast<std::int64_t>(size_of(values.dtype)));
    View row = values;
    row.data = space.get();
    row.strides = out.strides;
    row.contiguous = true;
    copy_elements(row, values);
    return searchsorted(out, sorted, row, right);
  }
  std::int64_t size = sorted.dims[axis], length = one_row ? values.numel : values.dims[values.rank - 1];
  auto rows = rows_along<2>(values.rank - 1, {values, sorted});
  std::int64_t step = one_row ? 1 : values.strides[values.rank - 1];
  with_type(values.dtype, [&]<class T>(std::type_identity<T>) {
    Row<T> row{nullptr, size, sorted.strides[axis], 0};
    parallel_for(values.numel, parallel_grain / 16, [&](std::int64_t begin, std::int64_t end) {
      auto* count = out.as<std::int64_t>() + begin;
      auto count_row = [&](const T* value, const T* first, std::int64_t left) {
        Row<T> from = row;
        from.first = first;
        constexpr int together = 8;
        for (; left >= together; left -= together, value += together * step, count += together)
          count_before<together>(from, value, step, right, count);
        for (; left >= 4; left -= 4, value += 4 * step, count += 4) count_before<4>(from, value, step, right, count);
        for (; left > 0; --left, value += step) count_before<1>(from, value, step, right, count++);
      };
      while (begin < end) {
        std::int64_t i = begin / length, start = begin % length, left = std::min(end - begin, length - start);
        rows.for_each_part(i, i + 1, [&](const std::int64_t* offsets, std::int64_t) {
          count_row(values.as<const T>() + offsets[0] + start * step, sorted.as<const T>() + offsets[1], left);
        });
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

}  // namespace reel::detail::inline REEL_TARGET
