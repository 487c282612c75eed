#pragma once

#include <algorithm>
#include <cstdint>

#include "../vector/vector.h"

namespace reel::detail::inline REEL_TARGET {

/// Places of the keys of a short row in ascending order; equal ones keep their order. It compares every key with every other
/// one, without branches, which a processor could not predict.
template <class K>
class KeyRanks {
 public:
  /// The longest row for which this is faster than sorting.
  static constexpr std::int64_t longest = 16 * HWY_LANES(K);

  /// The keys, to be written before `compute`.
  K* keys() { return keys_; }

  void compute(std::int64_t count) {
    for (std::int64_t start = 0; start < count; start += lanes) {
      Raw own = hn::Load(Tag(), keys_ + start), ranks = hn::Set(Tag(), static_cast<K>(start));
      std::int64_t next = std::min(start + lanes, count);
      auto add = [&](auto precedes) { ranks = hn::Sub(ranks, hn::VecFromMask(Tag(), precedes)); };
      // Earlier keys precede this one unless they are larger: AVX2 has no other comparison.
      for (std::int64_t i = 0; i < start; ++i)
        ranks = hn::Add(ranks, hn::VecFromMask(Tag(), hn::Lt(own, hn::Set(Tag(), keys_[i]))));
      for (std::int64_t i = start; i < next; ++i) {
        Raw key = hn::Set(Tag(), keys_[i]);
        auto later = hn::Gt(hn::Iota(Tag(), static_cast<K>(0)), hn::Set(Tag(), static_cast<K>(i - start)));
        add(hn::Or(hn::Lt(key, own), hn::And(hn::Eq(key, own), later)));
      }
      for (std::int64_t i = next; i < count; ++i) add(hn::Lt(hn::Set(Tag(), keys_[i]), own));
      hn::Store(ranks, Tag(), ranks_ + start);
    }
  }

  /// The place of key i.
  std::int64_t operator[](std::int64_t i) const { return static_cast<std::int64_t>(ranks_[i]); }
  /// The number of the key at a place; `count` as for `compute`.
  std::int64_t key_at(std::int64_t place, std::int64_t count) const {
    return std::find(ranks_, ranks_ + count, static_cast<K>(place)) - ranks_;
  }

 private:
  using Tag = hn::ScalableTag<K>;
  using Raw = hn::Vec<Tag>;
  static constexpr std::int64_t lanes = HWY_LANES(K);

  alignas(64) K keys_[longest + lanes], ranks_[longest + lanes];
};

}  // namespace reel::detail::inline REEL_TARGET
