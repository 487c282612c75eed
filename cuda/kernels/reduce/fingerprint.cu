#include "fingerprint.h"

#include <algorithm>

#include "../../device/launch.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

REEL_DEVICE std::uint64_t mixed(std::uint64_t word, std::uint64_t place) {
  std::uint64_t state = (word + 0x9E3779B97F4A7C15u * (place + 1)) * 0xBF58476D1CE4E5B9u;
  state = (state ^ (state >> 31)) * 0x94D049BB133111EBu;
  return state ^ (state >> 29);
}

REEL_DEVICE std::uint32_t unit_of(const Fingerprinted& x, std::int64_t i) {
  if (x.unit == 4) return static_cast<const std::uint32_t*>(x.data)[i];
  if (x.unit == 2) return static_cast<const std::uint16_t*>(x.data)[i];
  return static_cast<const std::uint8_t*>(x.data)[i];
}

struct Add {
  REEL_DEVICE std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return a + b; }
};

// Sums that wrap around, and so do not depend on the order: each group sums the units of one part.
struct PartSums {
  Fingerprinted x;
  std::int64_t part;
  std::uint64_t* sums;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    auto partial = group.template per_thread<std::uint64_t>();
    std::int64_t begin = group.index() * part, end = begin + part < x.count ? begin + part : x.count;
    group.each([&](int thread) {
      std::uint64_t sum = 0;
      for (std::int64_t i = begin + thread; i < end; i += group.size())
        sum += mixed(unit_of(x, i), static_cast<std::uint64_t>(i));
      partial[thread] = sum;
    });
    std::uint64_t total = group.reduce(partial, Add());
    group.each([&](int thread) {
      if (thread == 0) sums[group.index()] = total;
    });
  }
};

REEL_DEVICE std::uint64_t sum_of(const std::uint64_t* sums, std::int64_t parts) {
  std::uint64_t total = 0;
  for (std::int64_t i = 0; i < parts; ++i) total += sums[i];
  return total;
}

struct Write {
  const std::uint64_t* sums;
  std::int64_t parts;
  std::uint64_t* place;
  REEL_DEVICE void operator()(std::int64_t) const { *place = sum_of(sums, parts); }
};

struct Compare {
  const std::uint64_t* sums;
  std::int64_t parts;
  const std::uint64_t* place;
  std::int64_t result;
  FaultReporter reporter;
  REEL_DEVICE void operator()(std::int64_t) const {
    if (*place != sum_of(sums, parts)) reporter.report(Fault::changed, result, 0);
  }
};

std::int64_t parts_of(const Fingerprinted& x) {
  return std::clamp<std::int64_t>((x.count + (1 << 14) - 1) >> 14, 1, 256);
}

void sum_parts(const Fingerprinted& x, std::int64_t parts, std::uint64_t* sums) {
  for_each_group(parts, 256, 0, PartSums{x, (x.count + parts - 1) / parts, sums});
}

}  // namespace

void write_fingerprint(std::uint64_t* place, const Fingerprinted& x) {
  std::int64_t parts = parts_of(x);
  Scratch sums(static_cast<std::size_t>(parts) * sizeof(std::uint64_t));
  sum_parts(x, parts, sums.as<std::uint64_t>());
  for_each(1, Write{sums.as<std::uint64_t>(), parts, place});
}

void compare_fingerprint(const std::uint64_t* place, const Fingerprinted& x, std::int64_t result,
                         FaultReporter reporter) {
  std::int64_t parts = parts_of(x);
  Scratch sums(static_cast<std::size_t>(parts) * sizeof(std::uint64_t));
  sum_parts(x, parts, sums.as<std::uint64_t>());
  for_each(1, Compare{sums.as<std::uint64_t>(), parts, place, result, reporter});
}

}  // namespace reel::detail::inline REEL_TARGET
