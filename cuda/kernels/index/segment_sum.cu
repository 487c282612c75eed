#include "segment_sum.h"

#include <bit>

#include "../../device/device.h"
#include "../../device/launch.h"
#include "../../libraries/sort_pairs.h"
#include "index_pairs.h"
#include "indexed_sums.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

struct RowKeys {
  IndexList indices;
  KeyedNumbers to;

  REEL_DEVICE void operator()(std::int64_t i) const {
    to.keys[i] = static_cast<std::uint64_t>(indices.place(i));
    to.numbers[i] = static_cast<std::uint32_t>(i);
  }
};

struct WidenNumbers {
  const std::uint32_t* from;
  std::int64_t* to;
  REEL_DEVICE void operator()(std::int64_t i) const { to[i] = from[i]; }
};

// Sorted keys in chunks of `chunk`: counts the keys in each chunk that differ from the one before, and those before
// each chunk.
constexpr std::int64_t chunk = 64;
constexpr int scan_threads = most_threads;

struct CountRows {
  const std::uint64_t* keys;
  std::int64_t count;
  std::int64_t* found;

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t end = (i + 1) * chunk < count ? (i + 1) * chunk : count, rows = 0;
    for (std::int64_t p = i * chunk; p < end; ++p) rows += p == 0 || keys[p] != keys[p - 1];
    found[i] = rows;
  }
};

// Run by one group: each thread has a part of the chunks.
struct AddUp {
  std::int64_t* found;
  std::int64_t count;
  std::int64_t* whole;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    auto* sums = group.template shared<std::int64_t>(scan_threads);
    std::int64_t share = (count + group.size() - 1) / group.size();
    group.each([&](int thread) {
      std::int64_t sum = 0;
      for (std::int64_t i = thread * share; i < (thread + 1) * share && i < count; ++i) sum += found[i];
      sums[thread] = sum;
    });
    group.each([&](int thread) {
      if (thread > 0) return;
      std::int64_t sum = 0;
      for (int i = 0; i < group.size(); ++i) {
        std::int64_t own = sums[i];
        sums[i] = sum;
        sum += own;
      }
      *whole = sum;
    });
    group.each([&](int thread) {
      std::int64_t sum = sums[thread];
      for (std::int64_t i = thread * share; i < (thread + 1) * share && i < count; ++i) {
        std::int64_t own = found[i];
        found[i] = sum;
        sum += own;
      }
    });
  }
};

// Writes the number of distinct rows of sorted keys to `whole`, and the number before each chunk to `before`.
void count_rows(const std::uint64_t* keys, std::int64_t count, std::int64_t* before, std::int64_t* whole) {
  std::int64_t chunks = (count + chunk - 1) / chunk;
  for_each(chunks, CountRows{keys, count, before});
  for_each_group(1, scan_threads, scan_threads * sizeof(std::int64_t), AddUp{before, chunks, whole});
}

std::size_t chunk_bytes(std::int64_t count) {
  return static_cast<std::size_t>((count + chunk - 1) / chunk + 1) * sizeof(std::int64_t);
}

struct KeysInOrder {
  IndexList indices;
  const std::int64_t* numbers;
  KeyedNumbers to;

  REEL_DEVICE void operator()(std::int64_t i) const {
    to.keys[i] = static_cast<std::uint64_t>(indices.place(numbers[i]));
    to.numbers[i] = static_cast<std::uint32_t>(numbers[i]);
  }
};

// Finds the index among the distinct rows of each key.
struct NumberRows {
  const std::uint64_t* keys;
  std::int64_t count;
  const std::int64_t* before;
  std::int64_t* rows;
  std::uint64_t* owners;

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t end = (i + 1) * chunk < count ? (i + 1) * chunk : count, next = before[i];
    for (std::int64_t p = i * chunk; p < end; ++p) {
      if (p == 0 || keys[p] != keys[p - 1]) rows[next++] = static_cast<std::int64_t>(keys[p]);
      owners[p] = static_cast<std::uint64_t>(next - 1);
    }
  }
};

}  // namespace

void order_rows(const View& numbers, const View& distinct, const View& indices, std::int64_t row_count) {
  std::int64_t count = indices.numel;
  if (count == 0) return fill_with_zeros(distinct.data, sizeof(std::int64_t));
  check_countable(count);
  auto places = static_cast<std::size_t>(count);
  Scratch keys(2 * places * sizeof(std::uint64_t)), order(2 * places * sizeof(std::uint32_t)),
      before(chunk_bytes(count));
  KeyedNumbers given{keys.as<std::uint64_t>(), order.as<std::uint32_t>()};
  for_each(count, RowKeys{IndexList(indices, row_count), given});
  int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(row_count)));
  KeyedNumbers sorted = sort_pairs(given, {given.keys + count, given.numbers + count}, count, bits);
  for_each(count, WidenNumbers{sorted.numbers, numbers.as<std::int64_t>()});
  count_rows(sorted.keys, count, before.as<std::int64_t>(), distinct.as<std::int64_t>());
}

void segment_sum_rows(const View& rows, const View& sums, const View& values, const View& indices, const View& numbers,
                      std::int64_t row_count) {
  std::int64_t count = numbers.numel;
  if (count == 0) return;
  auto places = static_cast<std::size_t>(count);
  Scratch keys(2 * places * sizeof(std::uint64_t)), order(places * sizeof(std::uint32_t)), before(chunk_bytes(count)),
      whole(sizeof(std::int64_t));
  KeyedNumbers sorted{keys.as<std::uint64_t>(), order.as<std::uint32_t>()};
  std::uint64_t* owners = sorted.keys + count;
  for_each(count, KeysInOrder{IndexList(indices, row_count), numbers.as<const std::int64_t>(), sorted});
  count_rows(sorted.keys, count, before.as<std::int64_t>(), whole.as<std::int64_t>());
  for_each((count + chunk - 1) / chunk,
           NumberRows{sorted.keys, count, before.as<const std::int64_t>(), rows.as<std::int64_t>(), owners});
  fill_with_zeros(sums.data, static_cast<std::size_t>(sums.numel) * size_of(sums.dtype));
  add_sorted_rows(sums, values, {owners, sorted.numbers}, count);
}

}  // namespace reel::detail::inline REEL_TARGET
