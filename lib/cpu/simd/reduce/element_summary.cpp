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
#include "../vector/vector.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

// Odd, so that for a given index the hash is a bijection of the bits: a changed element changes the sum of the hashes.
constexpr std::uint32_t index_factor = 0x9E3779B9, first_factor = 0x85EBCA6B, second_factor = 0xC2B2AE35;

inline std::uint32_t hash_of(std::uint32_t bits, std::uint32_t index) {
  std::uint32_t h = bits ^ (index * index_factor);
  h *= first_factor;
  h ^= h >> 13;
  h *= second_factor;
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

template <class T>
void add_elements(ElementSummary& summary, const T* x, std::int64_t count, std::int64_t step) {
  for (std::int64_t i = 0; i < count; ++i) {
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
std::uint32_t hash(const T* x, std::int64_t count, std::int64_t step, std::uint32_t index) {
  std::uint32_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += hash_of(bits_of(x[i * step]), index + static_cast<std::uint32_t>(i));
  return sum;
}

// Adjacent f32 elements, as vectors. Sums are f64, since squares of f32 may overflow or vanish.
class VectorSummary {
  using Floats = hn::ScalableTag<float>;
  using Bits = hn::RebindToUnsigned<Floats>;
  using Integers = hn::RebindToSigned<Floats>;
  static constexpr std::int32_t infinity_bits = 0x7f80'0000;
  static constexpr std::int64_t block = 4096;

 public:
  /// Adds count elements that are adjacent; `index`: of the first. Returns the number that it took, all but a few.
  static std::int64_t add(ElementSummary& summary, const float* x, std::int64_t count, std::uint32_t index,
                          bool statistics, bool fingerprint) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
    std::int64_t taken = count / lanes * lanes;
    for (std::int64_t i = 0; i < taken; i += block) {
      std::int64_t part = std::min(block, taken - i);
      if (statistics) add_block(summary, x + i, part);
      if (fingerprint) summary.fingerprint += hash_block(x + i, part, index + static_cast<std::uint32_t>(i));
    }
    return taken;
  }

 private:
  static void add_block(ElementSummary& summary, const float* x, std::int64_t count) {
    const Floats d;
    const Integers di;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    auto min = hn::Set(d, std::numeric_limits<float>::infinity()), max = hn::Neg(min);
    auto largest = hn::Zero(di), zeros = hn::Zero(di);
    Vector<double> sum(0), squares(0);
    for (std::int64_t i = 0; i < count; i += lanes) {
      auto v = hn::LoadU(d, x + i);
      auto magnitude = hn::BitCast(di, hn::Abs(v));
      largest = hn::Max(largest, magnitude);
      zeros = hn::Sub(zeros, hn::VecFromMask(di, hn::Eq(magnitude, hn::Zero(di))));
      min = hn::Min(min, v);
      max = hn::Max(max, v);
      Vector<double> low = lower_half(Vector<float>(v));
      Vector<double> both = low, both_squares = low * low;
      if constexpr (has_halves<Vector<float>>) {
        Vector<double> high = upper_half(Vector<float>(v));
        both = both + high;
        both_squares = both_squares + high * high;
      }
      sum = sum + both;
      squares = squares + both_squares;
    }
    if (hn::GetLane(hn::MaxOfLanes(di, largest)) >= infinity_bits) return add_elements(summary, x, count, 1);
    summary.min = std::min(summary.min, static_cast<double>(hn::GetLane(hn::MinOfLanes(d, min))));
    summary.max = std::max(summary.max, static_cast<double>(hn::GetLane(hn::MaxOfLanes(d, max))));
    const hn::ScalableTag<double> dd;
    summary.sum += hn::GetLane(hn::SumOfLanes(dd, sum.raw));
    summary.squares += hn::GetLane(hn::SumOfLanes(dd, squares.raw));
    summary.zeros += hn::GetLane(hn::SumOfLanes(di, zeros));
  }

  static std::uint32_t hash_block(const float* x, std::int64_t count, std::uint32_t index) {
    const Bits d;
    const auto lanes = static_cast<std::uint32_t>(hn::Lanes(d));
    auto place = hn::Mul(hn::Iota(d, index), hn::Set(d, index_factor));
    const auto step = hn::Set(d, lanes * index_factor);
    auto sum = hn::Zero(d);
    for (std::int64_t i = 0; i < count; i += lanes) {
      auto h = hn::Xor(hn::BitCast(d, hn::LoadU(Floats(), x + i)), place);
      h = hn::Mul(h, hn::Set(d, first_factor));
      h = hn::Xor(h, hn::ShiftRight<13>(h));
      h = hn::Mul(h, hn::Set(d, second_factor));
      sum = hn::Add(sum, hn::Xor(h, hn::ShiftRight<16>(h)));
      place = hn::Add(place, step);
    }
    // Not by SumOfLanes, which adds the lanes as signed integers, whose sum overflows.
    std::uint32_t parts[HWY_LANES(std::uint32_t)];
    hn::StoreU(sum, d, parts);
    std::uint32_t total = 0;
    for (std::uint32_t part : parts) total += part;
    return total;
  }
};

ElementSummary summarise(const View& x, bool statistics, bool fingerprint) {
  ElementSummary summary;
  if (x.numel == 0) return summary;
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    Iteration<1> iteration({&x});
    std::int64_t index = 0;
    iteration.for_each_row([&](const std::int64_t* offset) {
      const T* row = x.as<T>() + offset[0];
      std::int64_t count = iteration.dims[0], step = iteration.strides[0][0], taken = 0;
      // 32 bits of the index are enough: only equal elements 2³² apart may change places unseen.
      auto first = static_cast<std::uint32_t>(index);
      if constexpr (std::is_same_v<T, float>)
        if (step == 1) taken = VectorSummary::add(summary, row, count, first, statistics, fingerprint);
      row += taken * step;
      first += static_cast<std::uint32_t>(taken);
      if (statistics) add_elements(summary, row, count - taken, step);
      if (fingerprint) summary.fingerprint += hash(row, count - taken, step, first);
      index += count;
    });
  });
  return summary;
}

}  // namespace

void fill_element_summary(KernelTable& table) { table.summarise = summarise; }

}  // namespace REEL_TARGET
}  // namespace reel::detail
