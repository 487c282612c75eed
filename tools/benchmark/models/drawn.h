#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace reel_bench {

/// splitmix64's output function of `x` plus its increment, from which all workloads draw their values.
/// Source: Steele, Lea and Flood, Fast splittable pseudorandom number generators (OOPSLA 2014).
std::uint64_t mix(std::uint64_t x);

/// The splitmix64 generator.
class Splitmix {
 public:
  explicit Splitmix(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();

 private:
  std::uint64_t state_;
};

/// `count` numbers on [−scale, scale), equal for all callers: scale (2 u − 1), u = (mix(1000003 seed + i) >> 40) / 2²⁴.
std::vector<float> drawn(std::uint64_t seed, float scale, std::size_t count);

/// `count` numbers in [0, below).
std::vector<std::int64_t> drawn_classes(std::uint64_t seed, std::uint64_t below, std::size_t count);

}  // namespace reel_bench
