#include "../../../kernels/element_summary.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "../../../core/convert.h"
#include "../../../core/dtype_dispatch.h"
#include "../../../core/iteration.h"
#include "../../../core/threads/parallel.h"
#include "../instruction_set.h"
#include "../vector/vector.h"

namespace reel::detail::inline REEL_TARGET {
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

// Adjacent f32 elements, as vectors.
class VectorSummary {
  using Floats = hn::ScalableTag<float>;
  using Bits = hn::RebindToUnsigned<Floats>;
  using Integers = hn::RebindToSigned<Floats>;
  // The elements whose sums are f32. More would make the mean and the norm of a large tensor inexact.
  static constexpr std::int64_t vectors_in_f32 = 8;
  // A block whose largest magnitude is smaller has squares that vanish in f32.
  static constexpr float least_in_f32 = 1e-15f;

 public:
  static constexpr std::int64_t block = 4096;

  static void add_statistics(ElementSummary& summary, const float* x, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += block) add_block(summary, x + i, std::min(block, count - i));
  }

  /// The sum of the hashes of `count` elements of 4 bytes; `index`: of the first.
  static std::uint32_t hash(const void* x, std::int64_t count, std::uint32_t index) {
    const Bits d;
    const auto* from = static_cast<const std::uint32_t*>(x);
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    auto place = hn::Mul(hn::Iota(d, index), hn::Set(d, index_factor));
    const auto step = hn::Set(d, static_cast<std::uint32_t>(lanes) * index_factor);
    auto sum = hn::Zero(d);
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      sum = hn::Add(sum, hashes(hn::LoadU(d, from + i), place));
      place = hn::Add(place, step);
    }
    std::uint32_t total = total_of(sum);
    for (; i < count; ++i) total += hash_of(from[i], index + static_cast<std::uint32_t>(i));
    return total;
  }

 private:
  template <class V>
  static V hashes(V bits, V place) {
    const Bits d;
    auto h = hn::Xor(bits, place);
    h = hn::Mul(h, hn::Set(d, first_factor));
    h = hn::Xor(h, hn::ShiftRight<13>(h));
    h = hn::Mul(h, hn::Set(d, second_factor));
    return hn::Xor(h, hn::ShiftRight<16>(h));
  }
  // Added as numbers of 64 bits, since SumOfLanes adds signed integers, whose sum must not overflow.
  template <class V>
  static std::uint32_t total_of(V sum) {
    if constexpr (hn::MaxLanes(Bits()) == 1) {
      return hn::GetLane(sum);
    } else {
      const hn::RepartitionToWide<Bits> wide;
      auto pairs = hn::BitCast(wide, sum);
      pairs = hn::Add(hn::And(pairs, hn::Set(wide, 0xFFFF'FFFFu)), hn::ShiftRight<32>(pairs));
      return static_cast<std::uint32_t>(hn::GetLane(hn::SumOfLanes(wide, pairs)));
    }
  }

  // The accumulators of a block, a lane each.
  struct Lanes {
    decltype(hn::Zero(Floats())) min, max;
    decltype(hn::Zero(Integers())) zeros;
    Vector<double> sum{0}, squares{0};

    void add_sums(Vector<float> part) { add_to(sum, part); }
    void add_squares(Vector<float> part) { add_to(squares, part); }
    static void add_to(Vector<double>& total, Vector<float> part) {
      total = total + lower_half(part);
      if constexpr (has_halves<Vector<float>>) total = total + upper_half(part);
    }
    static void add_squares_to(Vector<double>& total, Vector<float> part) {
      Vector<double> low = lower_half(part);
      total = total + low * low;
      if constexpr (has_halves<Vector<float>>) {
        Vector<double> high = upper_half(part);
        total = total + high * high;
      }
    }
  };

  static void add_block(ElementSummary& summary, const float* x, std::int64_t count) {
    const Floats d;
    if (count < static_cast<std::int64_t>(hn::Lanes(d))) return add_elements(summary, x, count, 1);
    if (add_block_as<true>(summary, x, count) || add_block_as<false>(summary, x, count)) return;
    add_elements(summary, x, count, 1);
  }

  // At least one vector of elements. Returns false, without having added anything, if there are NaNs or infinities, or
  // for `in_f32` if squares of f32 overflow or vanish.
  template <bool in_f32>
  static bool add_block_as(ElementSummary& summary, const float* x, std::int64_t count) {
    const Floats d;
    const Integers di;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    Lanes all{hn::LoadU(d, x), hn::LoadU(d, x), hn::Zero(di)};
    std::int64_t taken = count / lanes * lanes;
    for (std::int64_t i = 0; i < taken;) {
      auto sum = hn::Zero(d), squares = hn::Zero(d);
      for (std::int64_t end = std::min(taken, i + vectors_in_f32 * lanes); i < end; i += lanes) {
        auto v = hn::LoadU(d, x + i);
        all.min = hn::Min(all.min, v);
        all.max = hn::Max(all.max, v);
        all.zeros = hn::Sub(all.zeros, hn::BitCast(di, hn::VecFromMask(d, hn::Eq(v, hn::Zero(d)))));
        squares = hn::MulAdd(v, v, squares);
        if constexpr (in_f32) {
          sum = hn::Add(sum, v);
        } else {
          all.add_sums(Vector<float>(v));
          Lanes::add_squares_to(all.squares, Vector<float>(v));
        }
      }
      if constexpr (in_f32) {
        all.add_sums(Vector<float>(sum));
        all.add_squares(Vector<float>(squares));
      }
    }
    ElementSummary found;
    found.min = static_cast<double>(hn::GetLane(hn::MinOfLanes(d, all.min)));
    found.max = static_cast<double>(hn::GetLane(hn::MaxOfLanes(d, all.max)));
    const hn::ScalableTag<double> dd;
    found.sum = hn::GetLane(hn::SumOfLanes(dd, all.sum.raw));
    found.squares = hn::GetLane(hn::SumOfLanes(dd, all.squares.raw));
    found.zeros = hn::GetLane(hn::SumOfLanes(di, all.zeros));
    // NaN and infinity make the squares so. Min and Max may pass over NaN.
    if (!std::isfinite(found.squares)) return false;
    double largest = std::max(std::abs(found.min), std::abs(found.max));
    if (in_f32 && largest > 0 && largest < static_cast<double>(least_in_f32)) return false;
    summary.min = std::min(summary.min, found.min);
    summary.max = std::max(summary.max, found.max);
    summary.sum += found.sum;
    summary.squares += found.squares;
    summary.zeros += found.zeros;
    add_elements(summary, x + taken, count - taken, 1);
    return true;
  }
};

void merge(ElementSummary& summary, const ElementSummary& other) {
  summary.min = std::min(summary.min, other.min);
  summary.max = std::max(summary.max, other.max);
  summary.sum += other.sum;
  summary.squares += other.squares;
  summary.nans += other.nans;
  summary.infinities += other.infinities;
  summary.zeros += other.zeros;
  summary.fingerprint += other.fingerprint;
}

ElementSummary summary_of(const float* x, std::int64_t count, std::uint32_t index, bool statistics, bool fingerprint) {
  ElementSummary summary;
  if (statistics) VectorSummary::add_statistics(summary, x, count);
  if (fingerprint) summary.fingerprint = VectorSummary::hash(x, count, index);
  return summary;
}

// Summarises adjacent elements, in pieces of a fixed size, so that sums do not depend on the number of threads.
ElementSummary summary_of(const float* x, std::int64_t count, bool statistics, bool fingerprint) {
  constexpr std::int64_t piece = 4 * parallel_grain, most_pieces = 64;
  if (count <= piece) return summary_of(x, count, 0, statistics, fingerprint);
  ElementSummary summary;
  for (std::int64_t start = 0; start < count; start += piece * most_pieces) {
    std::array<ElementSummary, most_pieces> parts;
    std::int64_t pieces = std::min((count - start + piece - 1) / piece, most_pieces);
    parallel_for(pieces, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        std::int64_t first = start + i * piece;
        parts[static_cast<std::size_t>(i)] = summary_of(x + first, std::min(piece, count - first),
                                                        static_cast<std::uint32_t>(first), statistics, fingerprint);
      }
    });
    for (std::int64_t i = 0; i < pieces; ++i) merge(summary, parts[static_cast<std::size_t>(i)]);
  }
  return summary;
}

// True for types whose elements are f32 without rounding, and bits of up to 4 bytes.
template <class T>
constexpr bool fits_f32 = sizeof(T) <= 2 || std::is_same_v<T, float>;

// Collects elements of any strides, so that they are treated as adjacent ones are.
template <class T>
class Collector {
 public:
  Collector(ElementSummary& summary, bool statistics, bool fingerprint)
      : summary_(summary), statistics_(statistics), fingerprint_(fingerprint) {}

  void add(const T* row, std::int64_t count, std::int64_t step) {
    while (count > 0) {
      std::int64_t part = std::min(count, most - count_);
      for (std::int64_t i = 0; i < part; ++i) {
        values_[count_ + i] = static_cast<float>(row[i * step]);
        if constexpr (!std::is_same_v<T, float>) bits_[count_ + i] = bits_of(row[i * step]);
      }
      count_ += part;
      row += part * step;
      count -= part;
      if (count_ == most) finish();
    }
  }
  void finish() {
    if (statistics_) VectorSummary::add_statistics(summary_, values_, count_);
    const void* bits = bits_;
    if constexpr (std::is_same_v<T, float>) bits = values_;
    if (fingerprint_) summary_.fingerprint += VectorSummary::hash(bits, count_, index_);
    index_ += static_cast<std::uint32_t>(count_);
    count_ = 0;
  }

 private:
  // Few, since it may run on the small stack of a fibre.
  static constexpr std::int64_t most = 1024;
  ElementSummary& summary_;
  bool statistics_, fingerprint_;
  std::uint32_t index_ = 0;
  std::int64_t count_ = 0;
  float values_[most];
  std::uint32_t bits_[std::is_same_v<T, float> ? 1 : most];
};

ElementSummary summarise(const View& x, bool statistics, bool fingerprint) {
  ElementSummary summary;
  if (x.numel == 0) return summary;
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, float>)
      if (x.contiguous) {
        summary = summary_of(x.as<T>(), x.numel, statistics, fingerprint);
        return;
      }
    Iteration<1> iteration({&x});
    std::int64_t count = iteration.dims[0], step = iteration.strides[0][0];
    if constexpr (fits_f32<T>) {
      Collector<T> collector(summary, statistics, fingerprint);
      iteration.for_each_row([&](const std::int64_t* offset) { collector.add(x.as<T>() + offset[0], count, step); });
      collector.finish();
    } else {
      // 32 bits of the index are enough: only equal elements 2³² apart may change places unseen.
      std::uint32_t index = 0;
      iteration.for_each_row([&](const std::int64_t* offset) {
        const T* row = x.as<T>() + offset[0];
        if (statistics) add_elements(summary, row, count, step);
        if (fingerprint) summary.fingerprint += hash(row, count, step, index);
        index += static_cast<std::uint32_t>(count);
      });
    }
  });
  return summary;
}

}  // namespace

void fill_element_summary(KernelTable& table) { table.summarise = summarise; }

}  // namespace reel::detail::inline REEL_TARGET
