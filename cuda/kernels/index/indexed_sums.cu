#include "indexed_sums.h"

#include <bit>
#include <type_traits>

#include "../../../lib/core/dtype_dispatch.h"
#include "../../device/device.h"
#include "../../device/element.h"
#include "../../device/launch.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

// a + b; integers wrap around.
template <class T>
REEL_DEVICE T plus(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return a + b;
}

// The first element of a list with an index adds those of all equal indices.
template <class T>
struct AddFew {
  IndexPairs pairs;
  IndexList indices;
  T* to;
  const T* from;

  REEL_DEVICE void operator()(std::int64_t i) const {
    auto pair = pairs.pair(i);
    auto column = pairs.column(pair.column);
    std::int64_t place = indices.place(pairs.listed(pair.place).index + column.index);
    if (place < 0) return;
    for (std::int64_t earlier = 0; earlier < pair.place; ++earlier)
      if (indices.place(pairs.listed(earlier).index + column.index) == place) return;
    T& target = to[column.indexed + place * pairs.step()];
    Wide<T> sum = loaded(target);
    for (std::int64_t other = pair.place; other < pairs.list_count(); ++other) {
      auto listed = pairs.listed(other);
      if (indices.place(listed.index + column.index) == place)
        sum = plus(sum, loaded(from[listed.listed + column.listed]));
    }
    target = stored<T>(sum);
  }
};

// Keys for sorting a list: the index of each element, with a range of keys for each column. Elements out of range get
// the largest key.
struct ListKeys {
  IndexPairs pairs;
  IndexList indices;
  KeyedNumbers to;
  std::uint64_t last;

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t column = i / pairs.list_count(), number = i % pairs.list_count();
    std::int64_t place = indices.place(pairs.listed(number).index + pairs.column(column).index);
    to.keys[i] = place < 0 ? last : static_cast<std::uint64_t>(column * indices.size() + place);
    to.numbers[i] = static_cast<std::uint32_t>(i);
  }
};

// The offsets of the terms of sorted keys, and of their sums.
struct TermsOfRows {
  IndexPairs pairs;
  REEL_DEVICE std::int64_t from(std::uint32_t number, std::int64_t column) const {
    return pairs.listed(number).listed + pairs.column(column).listed;
  }
  REEL_DEVICE std::int64_t to(std::uint64_t key, std::int64_t column) const {
    return static_cast<std::int64_t>(key) * pairs.step() + pairs.column(column).indexed;
  }
};
struct TermsOfElements {
  IndexPairs pairs;
  Split list, size;
  REEL_DEVICE std::int64_t from(std::uint32_t number, std::int64_t) const {
    auto parts = list(number);
    return pairs.listed(parts.rest).listed + pairs.column(parts.whole).listed;
  }
  REEL_DEVICE std::int64_t to(std::uint64_t key, std::int64_t) const {
    auto parts = size(static_cast<std::int64_t>(key));
    return parts.rest * pairs.step() + pairs.column(parts.whole).indexed;
  }
};

// Sums sorted terms in chunks, one thread for each chunk and column. A run of equal keys within a chunk is added to its
// result. The parts of runs that cross the chunk's beginning and end become two terms of the next level, with their
// keys: 0 if there is no such part, so that every sum is completed in exactly one chunk.
template <class T, class Term, class Terms>
struct AddRuns {
  Terms terms;
  const std::uint64_t* keys;
  const std::uint32_t* numbers;  // null: the terms are in order, row by row
  const Term* from;
  T* to;
  Wide<T>* rest;
  std::uint64_t* rest_keys;
  std::int64_t count, chunk, columns;
  std::uint64_t last;
  Split split;

  REEL_DEVICE Wide<T> term(std::int64_t p, std::int64_t column) const {
    return loaded(numbers ? from[terms.from(numbers[p], column)] : from[p * columns + column]);
  }
  REEL_DEVICE void operator()(std::int64_t i) const {
    auto [number, column] = split(i);
    std::int64_t begin = number * chunk, end = begin + chunk < count ? begin + chunk : count;
    bool continues = begin > 0 && keys[begin - 1] == keys[begin];
    Wide<T> leading = 0, trailing = 0, sum = 0;
    for (std::int64_t p = begin; p < end; ++p) {
      std::uint64_t key = keys[p];
      sum = plus(sum, term(p, column));
      bool is_last = p + 1 == count || keys[p + 1] != key;
      if (!is_last && p + 1 < end) continue;
      if (continues)
        leading = sum;
      else if (!is_last)
        trailing = sum;
      else if (key < last)
        add(to[terms.to(key, column)], sum);
      sum = 0;
      continues = false;
    }
    if (!rest) return;
    rest[2 * number * columns + column] = leading;
    rest[(2 * number + 1) * columns + column] = trailing;
    if (column > 0) return;
    rest_keys[2 * number] = keys[begin];
    rest_keys[2 * number + 1] = keys[end - 1];
  }
  REEL_DEVICE static void add(T& target, Wide<T> sum) { target = stored<T>(plus(loaded(target), sum)); }
};

template <class T, class Term, class Terms>
void add_runs(const Terms& terms, KeyedNumbers sorted, const Term* from, T* to, std::int64_t count,
              std::int64_t columns, std::uint64_t last) {
  std::int64_t chunk = count * columns < (std::int64_t{1} << 20) ? 16 : 64;
  std::int64_t chunks = (count + chunk - 1) / chunk;
  AddRuns<T, Term, Terms> runs{terms,   sorted.keys, sorted.numbers, from,    to,   nullptr,
                               nullptr, count,       chunk,          columns, last, Split(columns, chunks * columns)};
  if (chunks == 1) return for_each(columns, runs);
  auto rests = static_cast<std::size_t>(2 * chunks);
  Scratch rest(rests * static_cast<std::size_t>(columns) * sizeof(Wide<T>)), keys(rests * sizeof(std::uint64_t));
  runs.rest = rest.as<Wide<T>>();
  runs.rest_keys = keys.as<std::uint64_t>();
  for_each(chunks * columns, runs);
  add_runs<T, Wide<T>>(terms, {runs.rest_keys, nullptr}, const_cast<const Wide<T>*>(runs.rest), to, 2 * chunks, columns,
                       last);
}

template <class Terms>
void add_sorted(const View& out, const View& listed, const Terms& terms, KeyedNumbers sorted, std::int64_t count,
                std::int64_t columns, std::uint64_t last) {
  if (count == 0 || columns == 0) return;
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    add_runs(terms, sorted, listed.as<const T>(), out.as<T>(), count, columns, last);
  });
}

}  // namespace

void add_pairs(const View& out, const View& listed, const View& index, IndexAxes axes) {
  IndexPairs pairs(axes);
  if (pairs.count() == 0 || axes.size == 0) return;
  IndexList indices(index, axes.size);
  if (pairs.are_few())
    return with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
      for_each(pairs.count(), AddFew<T>{pairs, indices, out.as<T>(), listed.as<const T>()});
    });
  bool rows = axes.are_rows();
  std::int64_t lists = rows ? 1 : pairs.columns(), count = lists * pairs.list_count();
  check_countable(count);
  auto last = static_cast<std::uint64_t>(lists * axes.size);
  auto places = static_cast<std::size_t>(count);
  Scratch keys(2 * places * sizeof(std::uint64_t)), numbers(2 * places * sizeof(std::uint32_t));
  KeyedNumbers given{keys.as<std::uint64_t>(), numbers.as<std::uint32_t>()};
  for_each(count, ListKeys{pairs, indices, given, last});
  KeyedNumbers sorted =
      sort_pairs(given, {given.keys + count, given.numbers + count}, count, static_cast<int>(std::bit_width(last)));
  if (rows)
    add_sorted(out, listed, TermsOfRows{pairs}, sorted, count, pairs.columns(), last);
  else
    add_sorted(
        out, listed,
        TermsOfElements{pairs, Split(pairs.list_count(), count), Split(axes.size, static_cast<std::int64_t>(last))},
        sorted, count, 1, last);
}

void add_sorted_rows(const View& out, const View& listed, KeyedNumbers sorted, std::int64_t count) {
  View list = listed;  // its dims and strides replace those of the indices
  list.rank = 1;
  IndexPairs pairs(IndexAxes::of_rows(listed, out, list, 0));
  add_sorted(out, listed, TermsOfRows{pairs}, sorted, count, pairs.columns(), static_cast<std::uint64_t>(out.dims[0]));
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
