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
#include "../instruction_set.h"
#include "../vector/half_rows.h"
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

void uniform(const View& out, RandomCall call) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) { fill_typed<T>(out, call, UniformDraw<T>()); });
}

void normal(const View& out, RandomCall call) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) { fill_typed<T>(out, call, NormalDraw<Wide<T>>()); });
}

void gumbel(const View& out, RandomCall call) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) { fill_typed<T>(out, call, GumbelDraw<Wide<T>>()); });
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

void randperm(const View& out, RandomCall call) {
  struct Numbered {
    std::uint64_t key;
    std::int64_t number;
    bool operator<(const Numbered& other) const { return key != other.key ? key < other.key : number < other.number; }
  };
  // Keys are uniformly distributed: sorting by their first bits leaves only a few elements of each bucket unordered.
  int bucket_bits = std::max(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(out.numel))) - 3, 1);
  auto key_of = [&](std::int64_t i) {
    PhiloxWords w = philox(call.seed, call.call, static_cast<std::uint64_t>(i));
    return static_cast<std::uint64_t>(w.word[0]) << 32 | w.word[1];
  };
  auto bucket_of = [&](std::uint64_t key) { return static_cast<std::size_t>(key >> (64 - bucket_bits)); };
  std::vector<std::int64_t> ends((std::size_t{1} << bucket_bits) + 1);
  for (std::int64_t i = 0; i < out.numel; ++i) ++ends[bucket_of(key_of(i)) + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<Numbered> numbers(static_cast<std::size_t>(out.numel));
  for (std::int64_t i = 0; i < out.numel; ++i) {
    std::uint64_t key = key_of(i);
    numbers[static_cast<std::size_t>(ends[bucket_of(key)]++)] = {key, i};
  }
  for (std::size_t bucket = 0; bucket + 1 < ends.size(); ++bucket)
    std::sort(numbers.begin() + (bucket == 0 ? 0 : ends[bucket - 1]), numbers.begin() + ends[bucket]);
  with_integer(out.dtype, [&]<class T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < out.numel; ++i)
      out.as<T>()[i] = static_cast<T>(numbers[static_cast<std::size_t>(i)].number);
  });
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
