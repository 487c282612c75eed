#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <vector>

#include "../../../core/dtype_dispatch.h"
#include "../../../core/halves.h"
#include "../../../core/iteration.h"
#include "../../../core/philox.h"
#include "../../../core/threads/parallel.h"
#include "../../../kernels/formulas/draw.h"
#include "../../cached_space.h"
#include "../instruction_set.h"
#include "../vector/half_rows.h"
#include "../vector/vector_exponential.h"
#include "../vector/vector_philox.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

using namespace formulas;

// Calls body(start, count, block) for parts of elements begin … end − 1, with `words` random words of each.
template <int words, class Body>
void for_each_block(std::int64_t begin, std::int64_t end, RandomCall call, Body body) {
  PhiloxBlock block;
  for (std::int64_t start = begin; start < end; start += PhiloxBlock::size) {
    std::int64_t count = std::min(PhiloxBlock::size, end - start);
    block.compute<words>(call.seed, call.call, static_cast<std::uint64_t>(start), count);
    body(start, count, block);
  }
}

// Elements are numbered in row-major order; outputs are contiguous.
template <class T, class Draw>
void fill_typed(const View& out, RandomCall call, Draw draw) {
  parallel_for(out.numel, parallel_grain, [&](std::int64_t begin, std::int64_t end) {
    for_each_block<4>(begin, end, call, [&](std::int64_t start, std::int64_t count, const PhiloxBlock& block) {
      T* to = out.as<T>() + start;
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(draw(block[i]));
    });
  });
}

// √(−2 log(1 − u)) cos 2πa
template <class T>
struct NormalVectors : NormalDraw<T> {
  using Number = T;
  Vector<T> operator()(Vector<T> u, Vector<T> angle) const {
    using V = Vector<T>;
    // The sine's series up to the digits of T.
    constexpr double single[] = {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800};
    constexpr double wide[] = {-1.0 / 6,
                               1.0 / 120,
                               -1.0 / 5040,
                               1.0 / 362880,
                               -1.0 / 39916800,
                               1.0 / 6227020800,
                               -7.647163731819816e-13,
                               2.8114572543455206e-15,
                               -8.22063524662433e-18,
                               1.9572941063391263e-20};
    // cos 2πa = sin 2π(|a − 1/2| − 1/4), whose differences are exact.
    V x = (abs(angle - V(0.5)) - V(0.25)) * V(6.283185307179586), square = x * x, series(0);
    if constexpr (sizeof(T) == 4)
      series = polynomial(square, single);
    else
      series = polynomial(square, wide);
    return sqrt(V(-2) * log(V(1) - u)) * multiply_add(series * square, x, x);
  }
};

template <class T>
struct GumbelVectors : GumbelDraw<T> {
  using Number = double;
  static double angle_part(PhiloxWords) { return 0; }
  Vector<double> operator()(Vector<double> u, Vector<double>) const { return -log(-log(u)); }
};

// The draw's operator takes vectors of its uniform numbers.
template <class T, class Draw>
void fill_vectors(const View& out, RandomCall call, Draw draw) {
  using Number = typename Draw::Number;
  using V = Vector<Number>;
  parallel_for(out.numel, parallel_grain / 4, [&](std::int64_t begin, std::int64_t end) {
    for_each_block<Draw::words>(begin, end, call,
                                [&](std::int64_t start, std::int64_t count, const PhiloxBlock& block) {
                                  alignas(64) Number u[PhiloxBlock::size] = {}, angle[PhiloxBlock::size] = {};
                                  for (std::int64_t i = 0; i < count; ++i)
                                    u[i] = Draw::logarithm_part(block[i]), angle[i] = Draw::angle_part(block[i]);
                                  for (std::int64_t i = 0; i < count; i += V::lanes)
                                    draw(V::load(u + i), V::load(angle + i)).store(u + i);
                                  T* to = out.as<T>() + start;
                                  if constexpr (std::is_same_v<Number, float> && is_half_v<T>)
                                    narrow_row(to, u, count);
                                  else
                                    for (std::int64_t i = 0; i < count; ++i)
                                      to[i] = static_cast<T>(static_cast<Wide<T>>(u[i]));
                                });
  });
}

void uniform(const View& out, RandomCall call) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) { fill_typed<T>(out, call, UniformDraw<T>()); });
}

void normal(const View& out, RandomCall call) {
  with_floating(out.dtype,
                [&]<class T>(std::type_identity<T>) { fill_vectors<T>(out, call, NormalVectors<Wide<T>>()); });
}

void gumbel(const View& out, RandomCall call) {
  with_floating(out.dtype,
                [&]<class T>(std::type_identity<T>) { fill_vectors<T>(out, call, GumbelVectors<Wide<T>>()); });
}

template <class T>
bool bernoulli_typed(const View& out, const View& p, RandomCall call, double& bad) {
  auto probability = [&](std::int64_t i) { return static_cast<double>(p.as<T>()[i]); };
  for (std::int64_t i = 0; i < p.numel; ++i) {
    bad = probability(i);
    if (!(bad >= 0 && bad <= 1)) return false;
  }
  bool* flags = out.as<bool>();
  parallel_for(out.numel, parallel_grain, [&](std::int64_t begin, std::int64_t end) {
    for_each_block<1>(begin, end, call, [&](std::int64_t start, std::int64_t count, const PhiloxBlock& block) {
      for (std::int64_t i = 0; i < count; ++i)
        flags[start + i] = block.word(0)[i] < threshold_of(probability(p.numel == 1 ? 0 : start + i));
    });
  });
  return true;
}

bool bernoulli(const View& out, const View& p, RandomCall call, double& bad) {
  return with_floating(p.dtype, [&]<class T>(std::type_identity<T>) { return bernoulli_typed<T>(out, p, call, bad); });
}

void randint(const View& out, std::int64_t low, std::uint64_t count, RandomCall call) {
  IntegerDraw draw{low, count};
  with_integer(out.dtype, [&]<class T>(std::type_identity<T>) { fill_typed<T>(out, call, draw); });
}

// Sorts 64-bit random keys, which are uniformly distributed: their first bits divide them into buckets of some thousand,
// which stay in a cache; two digits of those that follow leave few out of order.
class KeySort {
 public:
  KeySort(std::int64_t count, RandomCall call) : call_(call), count_(count) {
    number_bits_ = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count)));
    bucket_bits_ = std::max(number_bits_ - 15, 0);
  }

  /// Writes the numbers of the keys in the keys' order, and in their own where keys are equal.
  template <class T>
  void write(T* to) const {
    std::int64_t buckets = std::int64_t{1} << bucket_bits_, mean = (count_ + buckets - 1) / buckets, capacity = mean;
    // It takes longer than this eight standard deviations of a bucket's size, which no seed of a lifetime exceeds.
    if (buckets > 1) capacity += 8 * static_cast<std::int64_t>(std::sqrt(static_cast<double>(mean)));
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(buckets));
    while (!distribute_and_write(to, capacity, sizes)) capacity *= 2;
  }

 private:
  static std::uint64_t key_of(std::uint32_t high, std::uint32_t low) {
    return static_cast<std::uint64_t>(high) << 32 | low;
  }
  std::uint64_t place_of_key(std::uint64_t key) const { return key & ((std::uint64_t{1} << number_bits_) - 1); }

  // The bits that the numbers have replaced matter only where all the others are equal.
  bool less(std::uint64_t a, std::uint64_t b) const {
    if ((a ^ b) >> number_bits_ != 0) [[likely]]
      return a < b;
    auto whole = [&](std::uint64_t key) {
      PhiloxWords w = philox(call_.seed, call_.call, place_of_key(key));
      return key_of(w.word[0], w.word[1]);
    };
    return std::pair(whole(a), a) < std::pair(whole(b), b);
  }

  template <class T>
  bool distribute_and_write(T* to, std::int64_t capacity, std::vector<std::int64_t>& sizes) const {
    CachedSpace<std::uint64_t> space(capacity * (std::ssize(sizes) + 1));
    std::uint64_t* keys = space.get();
    if (!distribute(keys, capacity, sizes)) return false;
    for (std::int64_t size : sizes) {
      sort_bucket(keys, space.get() + capacity * std::ssize(sizes), size);
      for (std::int64_t i = 0; i < size; ++i) *to++ = static_cast<T>(place_of_key(keys[i]));
      keys += capacity;
    }
    return true;
  }

  // Whether no bucket has more than `capacity` keys.
  bool distribute(std::uint64_t* keys, std::int64_t capacity, std::vector<std::int64_t>& sizes) const {
    std::ranges::fill(sizes, 0);
    bool fits = true;
    for_each_block<2>(0, count_, call_, [&](std::int64_t start, std::int64_t size, const PhiloxBlock& block) {
      std::uint64_t made[PhiloxBlock::size];
      std::uint64_t* to = bucket_bits_ == 0 ? keys + start : made;
      for (std::int64_t i = 0; i < size; ++i)
        to[i] = key_of(block.word(0)[i], block.word(1)[i]) >> number_bits_ << number_bits_ |
                static_cast<std::uint64_t>(start + i);
      if (bucket_bits_ == 0) return;
      for (std::int64_t i = 0; i < size && fits; ++i) {
        std::uint64_t bucket = made[i] >> (64 - bucket_bits_);
        std::int64_t place = sizes[bucket]++;
        fits = place < capacity;
        if (fits) keys[static_cast<std::int64_t>(bucket) * capacity + place] = made[i];
      }
    });
    if (bucket_bits_ == 0) sizes[0] = count_;
    return fits;
  }

  // Two passes from the lower digit to the upper, which keep the order of equal digits.
  void sort_bucket(std::uint64_t* keys, std::uint64_t* other, std::int64_t count) const {
    int bits = std::min((static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count))) + 4) / 2, 10);
    int upper = 64 - bucket_bits_ - bits, lower = upper - bits;
    std::uint64_t digits = std::uint64_t{1} << bits, mask = digits - 1;
    std::uint32_t of_lower[1024], of_upper[1024];
    std::fill_n(of_lower, digits, 0U);
    std::fill_n(of_upper, digits, 0U);
    for (std::int64_t i = 0; i < count; ++i) {
      ++of_lower[keys[i] >> lower & mask];
      ++of_upper[keys[i] >> upper & mask];
    }
    std::exclusive_scan(of_lower, of_lower + digits, of_lower, 0U);
    std::exclusive_scan(of_upper, of_upper + digits, of_upper, 0U);
    for (std::int64_t i = 0; i < count; ++i) other[of_lower[keys[i] >> lower & mask]++] = keys[i];
    for (std::int64_t i = 0; i < count; ++i) keys[of_upper[other[i] >> upper & mask]++] = other[i];
    for (std::int64_t i = 1; i < count; ++i) {
      std::uint64_t key = keys[i];
      std::int64_t free = i;
      for (; free > 0 && less(key, keys[free - 1]); --free) keys[free] = keys[free - 1];
      keys[free] = key;
    }
  }

  RandomCall call_;
  std::int64_t count_;
  int number_bits_, bucket_bits_;
};

void randperm(const View& out, RandomCall call) {
  with_integer(out.dtype, [&]<class T>(std::type_identity<T>) { KeySort(out.numel, call).write(out.as<T>()); });
}

// Drops the elements whose word is less than `least`. `step`: a number, or a constant.
template <class T, class Wide, class Step>
void drop_some(T* to, const T* from, Step step, const std::uint32_t* word, std::int64_t count, Wide scale,
               std::uint32_t least) {
  // A mask in place of a choice: that of one product or none, g++ 12 does not vectorise.
  using Bits = std::conditional_t<sizeof(Wide) == 4, std::uint32_t, std::uint64_t>;
  Wide kept[PhiloxBlock::size];
  for (std::int64_t i = 0; i < count; ++i) {
    Bits mask = -static_cast<Bits>(word[i] >= least);
    kept[i] = std::bit_cast<Wide>(std::bit_cast<Bits>(static_cast<Wide>(from[i * step]) * scale) & mask);
  }
  if constexpr (std::is_same_v<T, Wide>)
    std::copy_n(kept, count, to);
  else
    narrow_row(to, kept, count);
}

template <class T, class Wide>
void dropout_row(T* to, const T* from, std::int64_t step, std::int64_t first, std::int64_t count, Wide scale,
                 std::uint64_t threshold, RandomCall call) {
  // Beyond what a word can be: nothing is kept.
  if (threshold >> 32 != 0) {
    std::fill_n(to, count, T(Wide(0)));
    return;
  }
  auto least = static_cast<std::uint32_t>(threshold);
  for_each_block<1>(first, first + count, call, [&](std::int64_t start, std::int64_t size, const PhiloxBlock& block) {
    std::int64_t i = start - first;
    if (step == 1)
      drop_some(to + i, from + i, std::integral_constant<std::int64_t, 1>(), block.word(0), size, scale, least);
    else
      drop_some(to + i, from + i * step, step, block.word(0), size, scale, least);
  });
}

template <class T, class Wide>
void dropout_typed(const View& out, const View& x, double probability, RandomCall call) {
  Wide scale = probability < 1 ? static_cast<Wide>(1 / (1 - probability)) : Wide(0);
  std::uint64_t threshold = threshold_of(probability);
  if (x.contiguous)
    return parallel_for(out.numel, parallel_grain, [&](std::int64_t begin, std::int64_t end) {
      dropout_row(out.as<T>() + begin, x.as<T>() + begin, 1, begin, end - begin, scale, threshold, call);
    });
  Iteration<2> iteration({&out, &x});
  std::int64_t first = 0;
  iteration.for_each_row([&](const std::int64_t* offset) {
    dropout_row(out.as<T>() + offset[0], x.as<T>() + offset[1], iteration.strides[1][0], first, iteration.dims[0],
                scale, threshold, call);
    first += iteration.dims[0];
  });
}

void dropout(const View& out, const View& x, double probability, RandomCall call) {
  with_floating(out.dtype,
                [&]<class T>(std::type_identity<T>) { dropout_typed<T, Wide<T>>(out, x, probability, call); });
}

}  // namespace

void fill_random(KernelTable& table) {
  table.uniform = uniform;
  table.normal = normal;
  table.gumbel = gumbel;
  table.bernoulli = bernoulli;
  table.randint = randint;
  table.randperm = randperm;
  table.dropout = dropout;
}

}  // namespace reel::detail::inline REEL_TARGET
