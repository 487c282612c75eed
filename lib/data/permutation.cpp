#include "permutation.h"

#include <algorithm>
#include <bit>

#include "../core/philox.h"

namespace reel::detail {

namespace {

// Keys of permutations and of items have seeds of their own, so that none of their Philox counters coincide.
constexpr std::uint64_t permutation_domain = 0x9D2C5680A6F0B1C3, item_domain = 0x5851F42D4C957F2D;

// The finaliser of SplitMix64: every bit of the result depends on every bit of x.
// Source: Steele, Lea and Flood, Fast splittable pseudorandom number generators (OOPSLA 2014).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

std::uint64_t low_mask(int bits) { return (std::uint64_t{1} << bits) - 1; }

std::uint64_t joined(std::uint32_t high, std::uint32_t low) { return std::uint64_t{high} << 32 | low; }

}  // namespace

std::uint64_t derived_key(std::uint64_t seed, std::uint64_t high, std::uint64_t low) {
  PhiloxWords words = philox(seed ^ item_domain, high, low);
  return joined(words.word[0], words.word[1]);
}

Permutation::Permutation(std::int64_t size, std::uint64_t seed, std::uint64_t stream)
    : size_(static_cast<std::uint64_t>(size)) {
  // On fewer bits a Feistel network does not give all permutations equally often.
  constexpr int least_bits = 6;
  int bits = std::max(least_bits, static_cast<int>(std::bit_width(size_ > 0 ? size_ - 1 : 0)));
  high_bits_ = bits / 2;
  low_bits_ = bits - high_bits_;
  for (std::size_t round = 0; round < keys_.size(); round += 2) {
    PhiloxWords words = philox(seed ^ permutation_domain, stream, round);
    keys_[round] = joined(words.word[0], words.word[1]);
    keys_[round + 1] = joined(words.word[2], words.word[3]);
  }
}

// Two rounds at a time: each half of the bits is changed by the other one, so that halves may differ in size.
std::uint64_t Permutation::encrypt(std::uint64_t value) const {
  std::uint64_t low = value & low_mask(low_bits_), high = value >> low_bits_;
  for (std::size_t round = 0; round < keys_.size(); round += 2) {
    low ^= mixed(high ^ keys_[round]) & low_mask(low_bits_);
    high ^= mixed(low ^ keys_[round + 1]) & low_mask(high_bits_);
  }
  return high << low_bits_ | low;
}

std::int64_t Permutation::operator[](std::int64_t index) const {
  auto value = static_cast<std::uint64_t>(index);
  do value = encrypt(value);
  while (value >= size_);
  return static_cast<std::int64_t>(value);
}

}  // namespace reel::detail
