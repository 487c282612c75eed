#pragma once

#include <cstdint>

#include "../../../core/philox.h"
#include "vector.h"

namespace reel::detail::inline REEL_TARGET {

/// Computes what `philox` gives for consecutive counters, a vector of them at a time.
class PhiloxBlock {
 public:
  /// The number of counters in a block.
  static constexpr std::int64_t size = 64;

  /// Computes the first `words` words of at least `count` counters, which is at most `size`: `first`, `first` + 1, ….
  template <int words>
  void compute(std::uint64_t key, std::uint64_t high, std::uint64_t first, std::int64_t count) {
    constexpr std::int64_t lanes = HWY_LANES(std::uint32_t);
    static_assert(size % lanes == 0);
    bool carries = static_cast<std::uint32_t>(first) > static_cast<std::uint32_t>(first + size);
    if constexpr (lanes > 1)
      if (!carries) {
        for (std::int64_t i = 0; i < count; i += lanes)
          store_lanes<words>(hn::ScalableTag<std::uint32_t>(), key, high, first + static_cast<std::uint64_t>(i), i);
        return;
      }
    for (std::int64_t i = 0; i < count; ++i) {
      PhiloxWords made = philox(key, high, first + static_cast<std::uint64_t>(i));
      for (int k = 0; k < words; ++k) word_[k][i] = made.word[k];
    }
  }
  /// Word `k` of each computed counter.
  const std::uint32_t* word(int k) const { return word_[k]; }
  /// The four words of the i-th computed counter.
  PhiloxWords operator[](std::int64_t i) const { return {{word_[0][i], word_[1][i], word_[2][i], word_[3][i]}}; }

 private:
  // The upper and lower halves of 64-bit products.
  template <class Tag>
  struct Product {
    hn::Vec<Tag> high, low;

    Product(hn::Vec<Tag> x, std::uint32_t factor) {
      const hn::RepartitionToWide<Tag> wide;
      auto f = hn::Set(Tag(), factor), odd_first = hn::BitCast(Tag(), hn::ShiftRight<32>(hn::BitCast(wide, x)));
      auto even = hn::MulEven(x, f), odd = hn::MulEven(odd_first, f);
      high = hn::OddEven(hn::BitCast(Tag(), odd), hn::BitCast(Tag(), hn::ShiftRight<32>(even)));
      low = hn::OddEven(hn::BitCast(Tag(), hn::ShiftLeft<32>(odd)), hn::BitCast(Tag(), even));
    }
  };

  // Stores the words of counters `first`, … at element i, as many as a vector has lanes. Their upper halves are equal.
  template <int words, class Tag>
  void store_lanes(Tag tag, std::uint64_t key, std::uint64_t high, std::uint64_t first, std::int64_t i) {
    auto set = [&](std::uint64_t number) { return hn::Set(tag, static_cast<std::uint32_t>(number)); };
    auto c0 = hn::Add(set(first), hn::Iota(tag, 0)), c1 = set(first >> 32), c2 = set(high), c3 = set(high >> 32);
    auto key0 = static_cast<std::uint32_t>(key), key1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < philox_rounds; ++round) {
      Product<Tag> product0(c0, philox_factor0), product1(c2, philox_factor2);
      c0 = hn::Xor(hn::Xor(product1.high, c1), set(key0));
      c1 = product1.low;
      c2 = hn::Xor(hn::Xor(product0.high, c3), set(key1));
      c3 = product0.low;
      key0 += philox_step0;
      key1 += philox_step1;
    }
    const hn::Vec<Tag> made[] = {c0, c1, c2, c3};
    for (int k = 0; k < words; ++k) hn::Store(made[k], tag, word_[k] + i);
  }

  alignas(64) std::uint32_t word_[4][size];
};

}  // namespace reel::detail::inline REEL_TARGET
