#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include <reel/error.h>

#include "../libraries/sort_pairs.h"
#include "launch.h"
#include "split.h"

// Sorts rows of numbers by their keys, stably. The source of the keys is a struct with
//
//   int bits                                   keys are below 2^bits
//   std::int64_t start(row)                    the argument of key() for a row
//   std::uint64_t key(start, place)
//
// and the consumer of a sorted row is one with
//
//   void operator()(row, k, sorted)            called for each k below `wanted`; reads sorted.key(k), sorted.place(k)
//                                              and those of all other k
//
// Short rows are sorted by a block each; the first few elements of long rows are found by such blocks in rounds, and
// all else is sorted by sort_pairs.

namespace reel::detail::inline REEL_TARGET {

/// A key and its index, ordered by both: no two are equal, so every sorting algorithm is stable.
struct NarrowEntry {
  std::uint64_t bits;
  REEL_DEVICE static NarrowEntry of(std::uint64_t key, std::int64_t place) {
    return {key << 32 | static_cast<std::uint64_t>(place)};
  }
  REEL_DEVICE static NarrowEntry last() { return {~std::uint64_t{0}}; }
  REEL_DEVICE std::uint64_t key() const { return bits >> 32; }
  REEL_DEVICE std::int64_t place() const { return static_cast<std::uint32_t>(bits); }
  REEL_DEVICE bool before(const NarrowEntry& other) const { return bits < other.bits; }
};

struct WideEntry {
  std::uint64_t bits;
  std::int64_t position;
  REEL_DEVICE static WideEntry of(std::uint64_t key, std::int64_t place) { return {key, place}; }
  REEL_DEVICE static WideEntry last() { return {~std::uint64_t{0}, INT64_MAX}; }
  REEL_DEVICE std::uint64_t key() const { return bits; }
  REEL_DEVICE std::int64_t place() const { return position; }
  REEL_DEVICE bool before(const WideEntry& other) const {
    return bits < other.bits || (bits == other.bits && position < other.position);
  }
};

/// Sorted entries.
template <class Entry>
struct SortedEntries {
  const Entry* entries;
  REEL_DEVICE std::uint64_t key(std::int64_t k) const { return entries[k].key(); }
  REEL_DEVICE std::int64_t place(std::int64_t k) const { return entries[k].place(); }
};

/// The entries that a round sorts: the rows themselves, or those that an earlier round has kept.
template <class Entry, class Source>
struct EntriesOfKeys {
  Source source;
  REEL_DEVICE std::int64_t start(std::int64_t row) const { return source.start(row); }
  REEL_DEVICE Entry entry(std::int64_t start, std::int64_t i) const { return Entry::of(source.key(start, i), i); }
};

template <class Entry>
struct EntriesInMemory {
  const Entry* entries;
  std::int64_t size;
  REEL_DEVICE std::int64_t start(std::int64_t row) const { return row * size; }
  REEL_DEVICE Entry entry(std::int64_t start, std::int64_t i) const { return entries[start + i]; }
};

/// Keeps the first entries of each chunk: (rows, chunks, kept).
template <class Entry>
struct KeepEntries {
  Entry* kept;
  std::int64_t wanted;
  REEL_DEVICE void operator()(std::int64_t chunk, std::int64_t k, const SortedEntries<Entry>& sorted) const {
    kept[chunk * wanted + k] = sorted.entries[k];
  }
};

constexpr int most_in_chunk = 2048;
constexpr std::int64_t most_in_row = std::int64_t{1} << 31;

/// Sorts chunks of rows in a block's shared memory, by a bitonic network.
template <class Entry, class Entries, class Finish>
struct SortChunks {
  Entries from;
  Finish finish;
  std::int64_t size, chunks;
  int room;  // a power of two
  std::int64_t wanted;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    Entry* entries = group.template shared<Entry>(room);
    std::int64_t row = group.index() / chunks, first = group.index() % chunks * room;
    group.each([&](int thread) {
      std::int64_t start = from.start(row);
      for (int i = thread; i < room; i += group.size())
        entries[i] = first + i < size ? from.entry(start, first + i) : Entry::last();
    });
    for (int width = 2; width <= room; width *= 2)
      for (int by = width / 2; by > 0; by /= 2)
        group.each([&](int thread) {
          for (int pair = thread; pair < room / 2; pair += group.size()) {
            int low = 2 * pair - (pair & (by - 1)), high = low + by;
            Entry a = entries[low], b = entries[high];
            bool rises = (low & width) == 0;
            if (b.before(a) != rises) continue;
            entries[low] = b;
            entries[high] = a;
          }
        });
    group.each([&](int thread) {
      for (std::int64_t k = thread; k < wanted; k += group.size())
        finish(group.index(), k, SortedEntries<Entry>{entries});
    });
  }
};

template <class Entry, class Entries, class Finish>
void sort_chunks(const Entries& from, const Finish& finish, std::int64_t rows, std::int64_t size, std::int64_t wanted) {
  int room = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::min<std::int64_t>(size, most_in_chunk))));
  std::int64_t chunks = (size + room - 1) / room;
  for_each_block(rows * chunks, std::clamp(room / 2, 64, 512), static_cast<std::size_t>(room) * sizeof(Entry),
                 SortChunks<Entry, Entries, Finish>{from, finish, size, chunks, room, wanted});
}

/// Sorts in rounds, each of which keeps the first entries of every chunk.
template <class Entry, class Source, class Finish>
void sort_in_rounds(const Source& source, const Finish& finish, std::int64_t rows, std::int64_t size,
                    std::int64_t wanted) {
  EntriesOfKeys<Entry, Source> from{source};
  if (size <= most_in_chunk) return sort_chunks<Entry>(from, finish, rows, size, wanted);
  auto left = [=](std::int64_t size) { return (size + most_in_chunk - 1) / most_in_chunk * wanted; };
  std::int64_t next = left(size);
  auto bytes = [=](std::int64_t size) { return static_cast<std::size_t>(rows * size) * sizeof(Entry); };
  Scratch first(bytes(next)), second(bytes(left(next)));
  auto *kept = first.as<Entry>(), *other = second.as<Entry>();
  sort_chunks<Entry>(from, KeepEntries<Entry>{kept, wanted}, rows, size, wanted);
  for (; next > most_in_chunk; std::swap(kept, other)) {
    sort_chunks<Entry>(EntriesInMemory<Entry>{kept, next}, KeepEntries<Entry>{other, wanted}, rows, next, wanted);
    next = left(next);
  }
  sort_chunks<Entry>(EntriesInMemory<Entry>{kept, next}, finish, rows, next, wanted);
}

/// A row sorted by sort_pairs: the sorted numbers are indices, or their remainder is one.
template <class Source>
struct SortedNumbers {
  Source source;
  std::int64_t start;
  const std::uint32_t* numbers;
  std::uint32_t size;
  REEL_DEVICE std::uint64_t key(std::int64_t k) const { return source.key(start, place(k)); }
  REEL_DEVICE std::int64_t place(std::int64_t k) const { return numbers[k] % size; }
};

template <class Source, class Finish>
struct FinishSortedNumbers {
  Source source;
  Finish finish;
  const std::uint32_t* numbers;
  std::int64_t first_row, size;
  Split by_wanted;
  REEL_DEVICE void operator()(std::int64_t i) const {
    Split::Parts parts = by_wanted(i);
    finish(first_row + parts.whole, parts.rest,
           SortedNumbers<Source>{source, source.start(first_row + parts.whole), numbers + parts.whole * size,
                                 static_cast<std::uint32_t>(size)});
  }
};

/// Loads keys with the row in the bits above them, if there is room, so that one sort sorts all rows.
template <class Key, class Source>
struct LoadKeys {
  Source source;
  Keyed<Key> to;
  std::int64_t first_row;
  Split by_size;
  bool with_rows;
  REEL_DEVICE void operator()(std::int64_t i) const {
    Split::Parts parts = by_size(i);
    std::uint64_t key = source.key(source.start(first_row + parts.whole), parts.rest);
    to.keys[i] = static_cast<Key>(with_rows ? static_cast<std::uint64_t>(parts.whole) << source.bits | key : key);
    to.numbers[i] = static_cast<std::uint32_t>(i);
  }
};

struct RowsOfNumbers {
  Keyed<std::uint32_t> pairs;
  std::uint32_t size;
  REEL_DEVICE void operator()(std::int64_t i) const { pairs.keys[i] = pairs.numbers[i] / size; }
};

/// Two buffers for pairs of keys and numbers.
template <class Key>
class KeyedScratch {
 public:
  explicit KeyedScratch(std::int64_t count)
      : count_(count), keys_(2 * bytes(sizeof(Key))), numbers_(2 * bytes(sizeof(std::uint32_t))) {}
  Keyed<Key> at(int which) const {
    return {keys_.as<Key>() + which * count_, numbers_.as<std::uint32_t>() + which * count_};
  }

 private:
  std::size_t bytes(std::size_t size) const { return static_cast<std::size_t>(count_) * size; }
  std::int64_t count_;
  Scratch keys_, numbers_;
};

template <class Source, class Finish>
class LongRows {
 public:
  LongRows(const Source& source, const Finish& finish, std::int64_t size, std::int64_t wanted)
      : source_(source), finish_(finish), size_(size), wanted_(wanted) {}

  void sort(std::int64_t first_row, std::int64_t rows) const {
    int row_bits = std::bit_width(static_cast<std::uint64_t>(rows - 1));
    int bits = source_.bits + row_bits;
    if (bits <= 32) return sort_at_once<std::uint32_t>(first_row, rows, bits);
    if (bits <= 64) return sort_at_once<std::uint64_t>(first_row, rows, bits);
    // Sorts by key, and then stably by row.
    std::int64_t count = rows * size_;
    KeyedScratch<std::uint64_t> scratch(count);
    load(scratch.at(0), first_row, count, false);
    Keyed<std::uint64_t> by_keys = sort_pairs(scratch.at(0), scratch.at(1), count, source_.bits);
    std::uint32_t* other = scratch.at(by_keys.numbers == scratch.at(0).numbers ? 1 : 0).numbers;
    Scratch rows_of_numbers(2 * static_cast<std::size_t>(count) * sizeof(std::uint32_t));
    auto* keys = rows_of_numbers.as<std::uint32_t>();
    Keyed<std::uint32_t> by_rows{keys, by_keys.numbers};
    for_each(count, RowsOfNumbers{by_rows, static_cast<std::uint32_t>(size_)});
    finish(sort_pairs(by_rows, {keys + count, other}, count, row_bits).numbers, first_row, rows);
  }

 private:
  template <class Key>
  void sort_at_once(std::int64_t first_row, std::int64_t rows, int bits) const {
    KeyedScratch<Key> scratch(rows * size_);
    load(scratch.at(0), first_row, rows * size_, rows > 1);
    finish(sort_pairs(scratch.at(0), scratch.at(1), rows * size_, bits).numbers, first_row, rows);
  }
  template <class Key>
  void load(Keyed<Key> to, std::int64_t first_row, std::int64_t count, bool with_rows) const {
    for_each(count, LoadKeys<Key, Source>{source_, to, first_row, Split(size_, count), with_rows});
  }
  void finish(const std::uint32_t* numbers, std::int64_t first_row, std::int64_t rows) const {
    for_each(rows * wanted_, FinishSortedNumbers<Source, Finish>{source_, finish_, numbers, first_row, size_,
                                                                 Split(wanted_, rows * wanted_)});
  }

  Source source_;
  Finish finish_;
  std::int64_t size_, wanted_;
};

template <class Source, class Finish>
void sort_by_blocks(const Source& source, const Finish& finish, std::int64_t rows, std::int64_t size,
                    std::int64_t wanted) {
  if (source.bits <= 32 && size <= most_in_row)
    sort_in_rounds<NarrowEntry>(source, finish, rows, size, wanted);
  else
    sort_in_rounds<WideEntry>(source, finish, rows, size, wanted);
}

/// Sorts `rows` rows of `size` numbers; the consumer of each of the first `wanted` may read the whole row.
template <class Source, class Finish>
void sort_whole_rows(const Source& source, const Finish& finish, std::int64_t rows, std::int64_t size,
                     std::int64_t wanted) {
  if (rows == 0 || wanted == 0) return;
  if (size <= most_in_chunk) return sort_by_blocks(source, finish, rows, size, wanted);
  if (size > most_in_row)
    throw MemoryError("a row of more than 2^31 elements cannot be sorted on a device", Location{});
  std::int64_t at_once = std::max<std::int64_t>((std::int64_t{1} << 28) / size, 1);
  LongRows long_rows(source, finish, size, wanted);
  for (std::int64_t row = 0; row < rows; row += at_once) long_rows.sort(row, std::min(at_once, rows - row));
}

/// Sorts `rows` rows of `size` numbers; the consumer of each of the first `wanted` reads that number only.
template <class Source, class Finish>
void sort_rows(const Source& source, const Finish& finish, std::int64_t rows, std::int64_t size, std::int64_t wanted) {
  if (rows == 0 || wanted == 0) return;
  if (wanted <= most_in_chunk / 4) return sort_by_blocks(source, finish, rows, size, wanted);
  sort_whole_rows(source, finish, rows, size, wanted);
}

}  // namespace reel::detail::inline REEL_TARGET
