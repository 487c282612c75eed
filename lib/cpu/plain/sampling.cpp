#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "../../core/dtype_dispatch.h"
#include "../../core/philox.h"
#include "../../core/threads/parallel.h"
#include "../../kernels/sampling.h"
#include "../cpu_kernels.h"

namespace reel::detail {
namespace {

template <class T>
bool rows_serve(const View& probabilities, std::int64_t wanted, BadRow& bad) {
  std::int64_t classes = probabilities.dims[1];
  const T* p = probabilities.as<T>();
  for (bad.row = 0; bad.row < probabilities.dims[0]; ++bad.row, p += classes) {
    bad.classes = 0;
    bad.is_probability = true;
    for (std::int64_t c = 0; c < classes; ++c) {
      bad.probability = static_cast<double>(p[c]);
      if (!(bad.probability >= 0 && std::isfinite(bad.probability))) return false;
      bad.classes += bad.probability > 0;
    }
    bad.is_probability = false;
    if (bad.classes < wanted) return false;
  }
  return true;
}

// Draws the class in whose interval of [0, Σ p) a random number is.
template <class T>
void draw_with_replacement(std::int64_t* out, const T* p, std::int64_t row, std::int64_t count, RandomCall call,
                           std::vector<double>& sums) {
  // Weights are scaled to at most 1, so that no sum overflows.
  double largest = 0, sum = 0;
  for (std::size_t c = 0; c < sums.size(); ++c) largest = std::max(largest, static_cast<double>(p[c]));
  for (std::size_t c = 0; c < sums.size(); ++c) sums[c] = sum += static_cast<double>(p[c]) / largest;
  // A product that is rounded up to the sum is assigned to the last class above 0.
  auto last = std::lower_bound(sums.begin(), sums.end(), sum);
  for (std::int64_t i = 0; i < count; ++i) {
    PhiloxWords w = philox(call.seed, call.call, static_cast<std::uint64_t>(row * count + i));
    double number = unit_double(w.word[0], w.word[1]) * sum;
    out[i] = std::min(std::upper_bound(sums.begin(), sums.end(), number), last) - sums.begin();
  }
}

// Draws the classes with the smallest exponential random numbers of rate p.
template <class T>
void draw_without_replacement(std::int64_t* out, const T* p, std::int64_t row, std::int64_t count, RandomCall call,
                              std::vector<std::pair<double, std::int64_t>>& keys) {
  auto classes = static_cast<std::int64_t>(keys.size());
  for (std::int64_t c = 0; c < classes; ++c) {
    PhiloxWords w = philox(call.seed, call.call, static_cast<std::uint64_t>(row * classes + c));
    std::uint64_t bits = (static_cast<std::uint64_t>(w.word[0]) << 32 | w.word[1]) >> 12;
    double u = (static_cast<double>(bits) + 0.5) * 0x1p-52, probability = static_cast<double>(p[c]);
    // The logarithm of the quotient, which would overflow for tiny probabilities.
    double key = probability > 0 ? std::log(-std::log(u)) - std::log(probability) : HUGE_VAL;
    keys[static_cast<std::size_t>(c)] = {key, c};
  }
  std::partial_sort(keys.begin(), keys.begin() + count, keys.end());
  for (std::int64_t i = 0; i < count; ++i) out[i] = keys[static_cast<std::size_t>(i)].second;
}

template <class T>
bool multinomial_typed(const View& out, const View& probabilities, bool replacement, RandomCall call, BadRow& bad) {
  std::int64_t rows = probabilities.dims[0], classes = probabilities.dims[1], count = out.dims[1];
  if (!rows_serve<T>(probabilities, replacement ? std::min<std::int64_t>(count, 1) : count, bad)) return false;
  if (out.numel == 0) return true;
  std::int64_t steps = std::max(classes, count) * 10;
  parallel_for(rows, std::max<std::int64_t>(parallel_grain / steps, 1), [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> sums(replacement ? static_cast<std::size_t>(classes) : 0);
    std::vector<std::pair<double, std::int64_t>> keys(replacement ? 0 : static_cast<std::size_t>(classes));
    for (std::int64_t row = begin; row < end; ++row) {
      auto* to = out.as<std::int64_t>() + row * count;
      const T* p = probabilities.as<T>() + row * classes;
      if (replacement)
        draw_with_replacement(to, p, row, count, call, sums);
      else
        draw_without_replacement(to, p, row, count, call, keys);
    }
  });
  return true;
}

bool multinomial(const View& out, const View& probabilities, bool replacement, RandomCall call, BadRow& bad) {
  return with_floating(probabilities.dtype, [&]<class T>(std::type_identity<T>) {
    return multinomial_typed<T>(out, probabilities, replacement, call, bad);
  });
}

constexpr SamplingKernels sampling_kernels{.multinomial = multinomial};

}  // namespace

void fill_sampling(KernelTable& table) { table.sampling = &sampling_kernels; }

}  // namespace reel::detail
