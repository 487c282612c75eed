#include "indexed_sums.h"

#include <bit>
#include <type_traits>

#include "../../../lib/core/dtype_dispatch.h"
#include "../../device/device.h"
#include "../../device/element.h"
#include "../../device/launch.h"

namespace reel::detail::inline REEL_TARGET {
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

// How a group divides a chunk of sorted terms: `across` columns, a power of two, each by `lanes` threads with `span`
// consecutive terms.
struct RunsGrid {
  static constexpr int threads = 256, widest = 32;
  static constexpr std::int64_t longest_span = 64, usual_span = 16;

  int across = 1, lanes;
  std::int64_t span, chunk, chunks, tiles;  // tiles: of columns

  RunsGrid(std::int64_t count, std::int64_t columns) {
    while (across < columns && across < widest) across *= 2;
    lanes = threads / across;
    bool is_last = count <= lanes * longest_span;
    bool is_large = across == widest && count * columns >= std::int64_t{1} << 20;
    span = is_last ? (count + lanes - 1) / lanes : is_large ? longest_span : usual_span;
    chunk = lanes * span;
    chunks = (count + chunk - 1) / chunk;
    tiles = (columns + across - 1) / across;
  }
};

// Sums sorted terms in chunks, a group for each chunk and tile of columns. A run of equal keys within a thread's terms is
// added to its result; then one thread for each column joins the parts of runs that cross threads. The parts of runs that
// cross the chunk's beginning and end become two terms of the next level, with their keys: 0 if there is no such part, so
// that every sum is completed in exactly one chunk.
template <class T, class Term, class Terms>
struct AddRuns {
  Terms terms;
  const std::uint64_t* keys;
  const std::uint32_t* numbers;  // null: the terms are in order, row by row
  const Term* from;
  T* to;
  Wide<T>* rest;
  std::uint64_t* rest_keys;
  std::int64_t count, columns;
  std::uint64_t last;
  RunsGrid grid;

  // How a thread's terms cut runs: the first run began before them; it ends among them; one begins and does not end there.
  enum Crossing : std::int32_t { continues = 1, ends = 2, goes_on = 4 };

  static constexpr std::size_t shared_bytes =
      RunsGrid::threads * (2 * sizeof(Wide<T>) + sizeof(std::int32_t)) + std::size_t{3} * 16;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    std::int64_t chunk = group.index() / grid.tiles, first_column = group.index() % grid.tiles * grid.across;
    std::int64_t begin = chunk * grid.chunk, end = begin + grid.chunk < count ? begin + grid.chunk : count;
    auto* leading = group.template shared<Wide<T>>(RunsGrid::threads);
    auto* trailing = group.template shared<Wide<T>>(RunsGrid::threads);
    auto* crossings = group.template shared<std::int32_t>(RunsGrid::threads);
    group.each([&](int thread) {
      std::int64_t first = begin + thread / grid.across * grid.span, column = first_column + thread % grid.across;
      bool has_terms = first < end && column < columns;
      crossings[thread] = has_terms ? add_terms(first, first + grid.span < end ? first + grid.span : end, column,
                                                leading[thread], trailing[thread])
                                    : 0;
    });
    group.each([&](int thread) {
      std::int64_t column = first_column + thread;
      if (thread >= grid.across || column >= columns) return;
      // The open run's sum within the chunk, and whether the run began before the chunk.
      Wide<T> sum = 0;
      bool is_first = true;
      Wide<T> before = 0;
      for (int lane = 0; lane < grid.lanes; ++lane) {
        int place = lane * grid.across + thread;
        std::int32_t crossing = crossings[place];
        if (crossing & continues) sum = plus(sum, leading[place]);
        if (crossing & ends) {
          if (is_first)
            before = sum;
          else
            add(keys[begin + lane * grid.span], column, sum);
          sum = 0;
          is_first = false;
        }
        if (crossing & goes_on) {
          sum = trailing[place];
          is_first = false;
        }
      }
      if (!rest) return;
      rest[2 * chunk * columns + column] = is_first ? sum : before;
      rest[(2 * chunk + 1) * columns + column] = is_first ? Wide<T>(0) : sum;
      if (column > 0) return;
      rest_keys[2 * chunk] = keys[begin];
      rest_keys[2 * chunk + 1] = keys[end - 1];
    });
  }

 private:
  REEL_DEVICE Wide<T> term(std::int64_t p, std::int64_t column) const {
    return loaded(numbers ? from[terms.from(numbers[p], column)] : from[p * columns + column]);
  }
  REEL_DEVICE void add(std::uint64_t key, std::int64_t column, Wide<T> sum) const {
    if (key >= last) return;
    T& target = to[terms.to(key, column)];
    target = stored<T>(plus(loaded(target), sum));
  }
  // Adds the runs that begin and end among a thread's terms; `leading` gets the sum of one that began before, `trailing`
  // that of one that goes on.
  REEL_DEVICE std::int32_t add_terms(std::int64_t first, std::int64_t end, std::int64_t column, Wide<T>& leading,
                                     Wide<T>& trailing) const {
    bool is_open = first > 0 && keys[first - 1] == keys[first];  // the present run began before
    std::int32_t crossing = is_open ? continues : 0;
    Wide<T> sum = 0;
    for (std::int64_t p = first; p < end; ++p) {
      std::uint64_t key = keys[p];
      sum = plus(sum, term(p, column));
      bool is_last = p + 1 == count || keys[p + 1] != key;
      if (!is_last && p + 1 < end) continue;
      if (is_open) {
        leading = sum;
        if (is_last) crossing |= ends;
      } else if (is_last) {
        add(key, column, sum);
      } else {
        trailing = sum;
        crossing |= goes_on;
      }
      sum = 0;
      is_open = false;
    }
    return crossing;
  }
};

template <class T, class Term, class Terms>
void add_runs(const Terms& terms, KeyedNumbers sorted, const Term* from, T* to, std::int64_t count,
              std::int64_t columns, std::uint64_t last) {
  RunsGrid grid(count, columns);
  AddRuns<T, Term, Terms> runs{terms,   sorted.keys, sorted.numbers, from, to,  nullptr,
                               nullptr, count,       columns,        last, grid};
  auto run = [&] {
    for_each_block(grid.chunks * grid.tiles, RunsGrid::threads, AddRuns<T, Term, Terms>::shared_bytes, runs);
  };
  if (grid.chunks == 1) return run();
  auto rests = static_cast<std::size_t>(2 * grid.chunks);
  Scratch rest(rests * static_cast<std::size_t>(columns) * sizeof(Wide<T>)), keys(rests * sizeof(std::uint64_t));
  runs.rest = rest.as<Wide<T>>();
  runs.rest_keys = keys.as<std::uint64_t>();
  run();
  add_runs<T, Wide<T>>(terms, {runs.rest_keys, nullptr}, const_cast<const Wide<T>*>(runs.rest), to, 2 * grid.chunks,
                       columns, last);
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

}  // namespace reel::detail::inline REEL_TARGET
