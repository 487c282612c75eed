#include "optimise_norm.h"

#include <cmath>
#include <vector>

#include "../../device/formula_loop.h"
#include "../../device/tensor_parts.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// Σx² in f64, which holds the square of every f32 number.
struct PlainSum {
  double sum;

  REEL_DEVICE void add(double x) { sum += x * x; }
  REEL_DEVICE static PlainSum joined(const PlainSum& a, const PlainSum& b) { return {a.sum + b.sum}; }
  REEL_DEVICE double root() const { return std::sqrt(sum); }
};

// Σx² of f64 numbers in three sums: of those whose squares would overflow, divided by 2⁵³⁸; of those whose squares would
// underflow, times 2⁵³⁷; and of the others.
// Source: Anderson, Algorithm 978: Safe scaling in the level 1 BLAS (2017).
struct ScaledSum {
  double large, sum, small;

  static constexpr double most = 0x1p486, least = 0x1p-511, down = 0x1p-538, up = 0x1p537;

  REEL_DEVICE void add(double x) {
    double size = std::abs(x);
    if (size > most)
      large += (x * down) * (x * down);
    else if (size < least)
      small += (x * up) * (x * up);
    else
      sum += x * x;  // NaN, too
  }
  REEL_DEVICE static ScaledSum joined(const ScaledSum& a, const ScaledSum& b) {
    return {a.large + b.large, a.sum + b.sum, a.small + b.small};
  }
  REEL_DEVICE double root() const {
    if (large != 0) return std::sqrt(large + sum * down * down) / down;
    if (small == 0) return std::sqrt(sum);
    double root = std::sqrt(sum), other = std::sqrt(small) / up;
    double greater = root > other ? root : other, ratio = root > other ? other / root : root / other;
    return sum != sum ? sum : greater * std::sqrt(1 + ratio * ratio);
  }
};

constexpr int norm_threads = 256, finish_threads = most_threads;

// The sum of the squares of a chunk or, if it is the only one, its root.
template <class T, class Sum>
struct SumChunk {
  static constexpr int lanes = 16 / sizeof(T), packs = 8;
  static constexpr std::int64_t chunk = std::int64_t{norm_threads} * lanes * packs;

  TensorParts<1> parts;
  Sum* sums;
  double* norm;  // null if there are several chunks

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    std::int64_t number = parts.number(group.index());
    auto found = parts.chunk(number, chunk);
    const T* x = static_cast<const T*>(found.part.data[0]) + found.begin;
    std::int64_t rest = found.part.count - found.begin, count = rest < chunk ? rest : chunk;
    bool aligned = reinterpret_cast<std::uintptr_t>(x) % 16 == 0;
    auto own = group.template per_thread<Sum>();
    group.each([&](int thread) {
      Sum sum{};
      for (std::int64_t at = std::int64_t{thread} * lanes; at < count; at += norm_threads * lanes) {
        if (aligned && count - at >= lanes) {
          Pack<T, lanes> some = *reinterpret_cast<const Pack<T, lanes>*>(x + at);
#pragma unroll
          for (int lane = 0; lane < lanes; ++lane) sum.add(some.element[lane]);
        } else {
          for (std::int64_t i = at; i < count && i < at + lanes; ++i) sum.add(x[i]);
        }
      }
      own[thread] = sum;
    });
    Sum whole = group.reduce(own, [](const Sum& a, const Sum& b) { return Sum::joined(a, b); });
    group.each([&](int thread) {
      if (thread != 0) return;
      if (norm)
        *norm = whole.root();
      else
        sums[number] = whole;
    });
  }
};

// The root of the sum of all chunks, by one group.
template <class Sum>
struct FinishNorm {
  const Sum* sums;
  std::int64_t count;
  double* norm;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    auto own = group.template per_thread<Sum>();
    group.each([&](int thread) {
      Sum sum{};
      for (std::int64_t i = thread; i < count; i += finish_threads) sum = Sum::joined(sum, sums[i]);
      own[thread] = sum;
    });
    Sum whole = group.reduce(own, [](const Sum& a, const Sum& b) { return Sum::joined(a, b); });
    group.each([&](int thread) {
      if (thread == 0) *norm = whole.root();
    });
  }
};

template <class T, class Sum>
void run_norm(double* norm, std::span<const TensorSlice> tensors) {
  std::vector<TensorPart<1>> parts;
  for (const TensorSlice& x : tensors) parts.push_back({{const_cast<void*>(x.values)}, x.count});
  std::int64_t chunks = divide_into_chunks(parts, SumChunk<T, Sum>::chunk);
  Scratch sums(static_cast<std::size_t>(chunks + 1) * sizeof(Sum));
  for_each_chunk(parts, norm_threads, [&](const auto& some) {
    return SumChunk<T, Sum>{some, sums.as<Sum>(), chunks == 1 ? norm : nullptr};
  });
  if (chunks != 1) for_each_block(1, finish_threads, 0, FinishNorm<Sum>{sums.as<const Sum>(), chunks, norm});
}

}  // namespace

void norm_of_tensors(double* norm, std::span<const TensorSlice> tensors) {
  if (!tensors.empty() && tensors[0].dtype == DType::f64)
    run_norm<double, ScaledSum>(norm, tensors);
  else
    run_norm<float, PlainSum>(norm, tensors);
}

}  // namespace reel::detail::inline REEL_TARGET
