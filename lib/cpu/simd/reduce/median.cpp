#include <algorithm>
#include <bit>

#include "../../../core/dtype_dispatch.h"
#include "../../../core/iteration.h"
#include "../../../core/threads/parallel.h"
#include "../../cached_space.h"
#include "../instruction_set.h"
#include "key_ranks.h"
#include "order_keys.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// A key, and how many are smaller.
template <class K>
struct Ranked {
  K key;
  std::int64_t smaller;
};

// Finds the key of a rank. Each pass counts the keys in equal parts of their range and keeps the part with the rank.
// `space` has room for all keys.
template <class K>
Ranked<K> select_rank(const K* keys, K* space, std::int64_t count, std::int64_t rank) {
  constexpr std::int64_t few = 256;
  const int part_bits = count <= 4096 ? 8 : 11;
  std::int64_t smaller = 0, sizes[1 << 11];
  while (count > few) {
    K least = keys[0], most = keys[0];
    for (std::int64_t i = 1; i < count; ++i) least = std::min(least, keys[i]), most = std::max(most, keys[i]);
    int shift = std::max(static_cast<int>(std::bit_width(static_cast<K>(most - least))) - part_bits, 0);
    std::int64_t before = 0, part = 0;
    std::fill_n(sizes, 1 << part_bits, 0);
    for (std::int64_t i = 0; i < count; ++i) ++sizes[(keys[i] - least) >> shift];
    while (before + sizes[part] <= rank - smaller) before += sizes[part++];
    smaller += before;
    if (shift == 0) return {static_cast<K>(least + static_cast<K>(part)), smaller};
    std::int64_t kept = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      K key = keys[i];
      space[kept] = key;
      kept += static_cast<std::int64_t>((key - least) >> shift) == part;
    }
    keys = space;
    count = kept;
  }
  if (keys != space) std::copy_n(keys, count, space);
  K* found = space + (rank - smaller);
  std::nth_element(space, found, space + count);
  return {*found, smaller + std::count_if(space, found, [&](K key) { return key < *found; })};
}

// The key of the rank that follows a known one.
template <class K>
Ranked<K> next_rank(Ranked<K> known, const K* keys, std::int64_t count, std::int64_t rank) {
  std::int64_t up_to = 0;
  K next = ~K(0);
  for (std::int64_t i = 0; i < count; ++i) {
    bool above = keys[i] > known.key;
    up_to += !above;
    next = above ? std::min(next, keys[i]) : next;
  }
  return rank < up_to ? known : Ranked<K>{next, up_to};
}

// The index of the key that is equal to `key` and preceded by `skipped` of these.
template <class K>
std::int64_t place_of(const K* keys, K key, std::int64_t skipped) {
  constexpr std::int64_t block = 64;
  std::int64_t place = 0;
  for (; skipped >= block; place += block)  // at least as many keys follow
    skipped -= std::count(keys + place, keys + place + block, key);
  while (keys[place] != key || skipped-- > 0) ++place;
  return place;
}

template <class T>
void find_places(std::int64_t* places, const std::int64_t* ranks, std::int64_t wanted, const Row<T>& row,
                 Key<T>* space) {
  using K = Key<T>;
  KeyRanks<K> order;
  std::int64_t count = row.size, known = -1, not_a_number = count;
  bool is_short = count <= KeyRanks<K>::longest, has_nan = false;
  K* keys = is_short ? order.keys() : space;
  for (std::int64_t i = 0; i < count; ++i) {
    keys[i] = row.key(i);
    has_nan |= keys[i] == ~K(0);
  }
  if (has_nan && !std::is_integral_v<T>) not_a_number = std::find(keys, keys + count, ~K(0)) - keys;
  if (is_short) order.compute(count);
  Ranked<K> found{};
  for (std::int64_t k = 0; k < wanted; ++k) {
    std::int64_t rank = ranks[k];
    if (rank >= 0 && not_a_number < count) {
      places[k] = not_a_number;
      continue;
    }
    if (rank < 0) rank = ~rank;
    if (is_short) {
      places[k] = order.key_at(rank, count);
      continue;
    }
    found = known >= 0 && rank == known + 1 ? next_rank(found, keys, count, rank)
                                            : select_rank(keys, keys + count, count, rank);
    known = rank;
    places[k] = place_of(keys, found.key, rank - found.smaller);
  }
}

void places_of_ranks(const View& out, const View& x, const std::int64_t (&ranks)[2]) {
  if (out.numel == 0) return;
  int axis = x.rank - 1;
  std::int64_t count = x.dims[axis], wanted = out.dims[axis];
  if (count == 1) return static_cast<void>(std::fill_n(out.as<std::int64_t>(), out.numel, 0));
  auto rows = rows_along<1>(axis, {x});
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    parallel_for(x.numel / count, (parallel_grain + count - 1) / count, [&](std::int64_t begin, std::int64_t end) {
      CachedSpace<Key<T>> space(2 * count);
      auto* places = out.as<std::int64_t>() + begin * wanted;
      rows.for_each_part(begin, end, [&](const std::int64_t* offsets, std::int64_t together) {
        for (const T* first = x.as<const T>() + offsets[0]; together > 0;
             --together, first += rows.strides[0][0], places += wanted)
          find_places(places, ranks, wanted, Row<T>{first, count, x.strides[axis], 0}, space.get());
      });
    });
  });
}

}  // namespace

void fill_median(KernelTable& table) { table.places_of_ranks = places_of_ranks; }

}  // namespace reel::detail::inline REEL_TARGET
