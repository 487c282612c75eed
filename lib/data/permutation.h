#pragma once

#include <array>
#include <cstdint>

namespace reel::detail {

/// A pseudorandom permutation of the integers 0 … size − 1 under a key, computed for one index at a time and without
/// memory: a Feistel network on the least power of two that is not below the size, applied again to results that are
/// too large.
/// Source: Black and Rogaway, Ciphers with arbitrary finite domains (CT-RSA 2002), section 4.
class Permutation {
 public:
  /// The permutation for a seed and a stream of it, such as an epoch. `size`: at least 0.
  Permutation(std::int64_t size, std::uint64_t seed, std::uint64_t stream);
  /// The integer at `index`, which is in [0, size).
  std::int64_t operator[](std::int64_t index) const;

 private:
  static constexpr int rounds = 10;
  std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t size_;
  int low_bits_, high_bits_;
  std::array<std::uint64_t, rounds> keys_;
};

/// A 64-bit key for random numbers that belong to two integers under a seed.
std::uint64_t derived_key(std::uint64_t seed, std::uint64_t high, std::uint64_t low);

}  // namespace reel::detail
