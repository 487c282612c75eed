#include "../../../kernels/element_summary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "../../../core/convert.h"
#include "../../../core/dtype_dispatch.h"
#include "../../../core/iteration.h"
#include "../instruction_set.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

// For a given index this is a bijection of the bits, so that a changed element changes the sum of the hashes.
inline std::uint32_t hash_of(std::uint32_t bits, std::uint32_t index) {
  std::uint32_t h = bits ^ (index * 0x9E3779B9u);
  h *= 0x85EBCA6Bu;
  h ^= h >> 13;
  h *= 0xC2B2AE35u;
  return h ^ h >> 16;
}

inline std::uint32_t hash_of(std::uint64_t bits, std::uint32_t index) {
  return hash_of(static_cast<std::uint32_t>(bits), index) +
         hash_of(static_cast<std::uint32_t>(bits >> 32), ~index) * 0x27D4EB2Fu;
}

template <class T>
auto bits_of(const T& element) {
  if constexpr (sizeof(T) == 8) {
    return std::bit_cast<std::uint64_t>(element);
  } else if constexpr (sizeof(T) == 4) {
    return std::bit_cast<std::uint32_t>(element);
  } else {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &element, sizeof element);
    return bits;
  }
}

constexpr std::int64_t lanes = 16;

// Adjacent f32 elements, a multiple of `lanes` of them: loops over arrays of lanes, which the compiler vectorises
// although it must not change the order of sums. Sums of a block are f64, since squares of f32 may overflow.
struct Lanes {
  float min[lanes], max[lanes];
  double sum[lanes] = {}, squares[lanes] = {};
  std::uint32_t nans[lanes] = {}, infinities[lanes] = {}, zeros[lanes] = {};

  Lanes() {
    std::fill_n(min, lanes, std::numeric_limits<float>::infinity());
    std::fill_n(max, lanes, -std::numeric_limits<float>::infinity());
  }
  void add(const float* x) {
    constexpr std::uint32_t infinity_bits = 0x7f80'0000;
    float value[lanes];
    for (std::int64_t j = 0; j < lanes; ++j) {
      std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x[j]) & 0x7fff'ffffu;
      nans[j] += magnitude > infinity_bits;
      infinities[j] += magnitude == infinity_bits;
      zeros[j] += magnitude == 0;
      value[j] = magnitude < infinity_bits ? x[j] : 0.0f;
    }
    for (std::int64_t j = 0; j < lanes; ++j) {
      // NaN and −infinity lose both comparisons, +infinity only the first.
      min[j] = x[j] < min[j] && value[j] == x[j] ? x[j] : min[j];
      max[j] = x[j] > max[j] && value[j] == x[j] ? x[j] : max[j];
    }
    for (std::int64_t j = 0; j < lanes; ++j) {
      auto wide = static_cast<double>(value[j]);
      sum[j] += wide;
      squares[j] += wide * wide;
    }
  }
  void add_to(ElementSummary& summary) const {
    for (std::int64_t j = 0; j < lanes; ++j) {
      summary.min = std::min(summary.min, static_cast<double>(min[j]));
      summary.max = std::max(summary.max, static_cast<double>(max[j]));
      summary.sum += sum[j];
      summary.squares += squares[j];
      summary.nans += nans[j];
      summary.infinities += infinities[j];
      summary.zeros += zeros[j];
    }
  }
};

template <class T>
void add_statistics(ElementSummary& summary, const T* x, std::int64_t count, std::int64_t step) {
  std::int64_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    // 2^32 elements of a lane fit into its counters.
    if (step == 1 && count >= lanes && count < std::int64_t{1} << 36) {
      Lanes sums;
      for (; i + lanes <= count; i += lanes) sums.add(x + i);
      sums.add_to(summary);
    }
  }
  for (; i < count; ++i) {
    auto number = static_cast<double>(x[i * step]);
    if (std::isnan(number)) {
      ++summary.nans;
    } else if (std::isinf(number)) {
      ++summary.infinities;
    } else {
      summary.min = std::min(summary.min, number);
      summary.max = std::max(summary.max, number);
      summary.sum += number;
      summary.squares += number * number;
      summary.zeros += number == 0;
    }
  }
}

template <class T>
std::uint32_t hash(const T* x, std::int64_t count, std::int64_t step, std::int64_t index) {
  std::uint32_t sum = 0;
  // 32 bits of the index are enough: equal elements 2³² apart may change places unseen.
  auto first = static_cast<std::uint32_t>(index);
  if (step == 1)
    for (std::int64_t i = 0; i < count; ++i) sum += hash_of(bits_of(x[i]), first + static_cast<std::uint32_t>(i));
  else
    for (std::int64_t i = 0; i < count; ++i)
      sum += hash_of(bits_of(x[i * step]), first + static_cast<std::uint32_t>(i));
  return sum;
}

ElementSummary summarise(const View& x, bool statistics, bool fingerprint) {
  ElementSummary summary;
  if (x.numel == 0) return summary;
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    Iteration<1> iteration({&x});
    std::int64_t index = 0;
    iteration.for_each_row([&](const std::int64_t* offset) {
      const T* row = x.as<T>() + offset[0];
      std::int64_t count = iteration.dims[0], step = iteration.strides[0][0];
      if (statistics) add_statistics(summary, row, count, step);
      if (fingerprint) summary.fingerprint += hash(row, count, step, index);
      index += count;
    });
  });
  return summary;
}

}  // namespace

void fill_element_summary(KernelTable& table) { table.summarise = summarise; }

}  // namespace REEL_TARGET
}  // namespace reel::detail
