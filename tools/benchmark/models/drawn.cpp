#include "drawn.h"

namespace reel_bench {

namespace {

constexpr std::uint64_t increment = 0x9E3779B97F4A7C15;

}  // namespace

std::uint64_t mix(std::uint64_t x) {
  x += increment;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

std::uint64_t Splitmix::next() {
  std::uint64_t value = mix(state_);
  state_ += increment;
  return value;
}

std::vector<float> drawn(std::uint64_t seed, float scale, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    float u = static_cast<float>(mix(seed * 1000003 + i) >> 40) / static_cast<float>(1 << 24);
    values[i] = scale * (2 * u - 1);
  }
  return values;
}

std::vector<std::int64_t> drawn_classes(std::uint64_t seed, std::uint64_t below, std::size_t count) {
  std::vector<std::int64_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::int64_t>(mix(seed * 1000003 + i) % below);
  return values;
}

}  // namespace reel_bench
