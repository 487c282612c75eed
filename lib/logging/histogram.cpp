#include "histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include <reel/no_record.h>

#include "../core/op_error.h"
#include "../ops/if_needed.h"

namespace reel::logging {

namespace {

// The leading bits of a number, its sign, exponent and three bits of its fraction, are the index of its bucket.
template <class T>
struct Leading {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static constexpr int exponent_bits = sizeof(T) == 4 ? 8 : 11;
  static constexpr int shift = static_cast<int>(sizeof(T)) * 8 - 1 - exponent_bits - 3;
  static constexpr std::size_t magnitudes = std::size_t{1} << (exponent_bits + 3);
  static constexpr std::size_t finite = magnitudes - 8;

  // The least magnitude in a bucket; at the end of the finite ones the largest finite number.
  static double lower(std::size_t bucket) {
    if (bucket >= finite) return static_cast<double>(std::numeric_limits<T>::max());
    return static_cast<double>(std::bit_cast<T>(static_cast<Bits>(bucket) << shift));
  }
};

// Counts the elements in each bucket.
template <class T>
class Counters {
 public:
  explicit Counters(std::size_t size)
      : sets_(size < several_from ? 1 : several), counts_(sets_ * 2 * Leading<T>::magnitudes) {}

  void add(const T* x, std::size_t size) {
    if (sets_ == 1)
      add_to<1>(x, size);
    else
      add_to<several>(x, size);
  }
  std::int64_t count(bool negative, std::size_t bucket) const {
    std::int64_t sum = 0;
    for (std::size_t set = 0; set < sets_; ++set)
      sum += counts_[(2 * set + (negative ? 1 : 0)) * Leading<T>::magnitudes + bucket];
    return sum;
  }
  /// The number of elements that are NaN or infinite.
  std::int64_t not_finite() const {
    std::int64_t sum = 0;
    for (std::size_t bucket = Leading<T>::finite; bucket < Leading<T>::magnitudes; ++bucket)
      sum += count(false, bucket) + count(true, bucket);
    return sum;
  }

 private:
  // Neighbours often belong to one bucket, and an increment would wait for the one before it, so that several sets of
  // counters are faster; for a small tensor they would take longer to add up.
  static constexpr std::size_t several = 4, several_from = 1 << 16;

  template <std::size_t sets>
  void add_to(const T* x, std::size_t size) {
    std::int64_t* counts = counts_.data();
    auto increment = [&](std::size_t set, std::size_t i) {
      typename Leading<T>::Bits bits;
      std::memcpy(&bits, x + i, sizeof bits);
      ++counts[set * 2 * Leading<T>::magnitudes + static_cast<std::size_t>(bits >> Leading<T>::shift)];
    };
    std::size_t i = 0;
    for (; i + sets <= size; i += sets)
      for (std::size_t set = 0; set < sets; ++set) increment(set, i + set);
    for (; i < size; ++i) increment(0, i);
  }

  std::size_t sets_;
  std::vector<std::int64_t> counts_;
};

// Adds finite elements to sums and bounds.
template <class T>
void add_finite(Histogram& histogram, const T* x, std::size_t size) {
  // Several sums at a time, as the compiler must not reorder one.
  constexpr std::size_t lanes = 8;
  std::array<double, lanes> sums{}, squares{};
  std::array<T, lanes> least, most;
  least.fill(std::numeric_limits<T>::infinity());
  most.fill(-std::numeric_limits<T>::infinity());
  auto add = [&](T value, std::size_t lane) {
    auto number = static_cast<double>(value);
    sums[lane] += number;
    squares[lane] += number * number;
    least[lane] = value < least[lane] ? value : least[lane];
    most[lane] = value > most[lane] ? value : most[lane];
  };
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) add(x[i + lane], lane);
  for (; i < size; ++i) add(x[i], 0);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    histogram.sum += sums[lane];
    histogram.sum_of_squares += squares[lane];
    histogram.min = std::min(histogram.min, static_cast<double>(least[lane]));
    histogram.max = std::max(histogram.max, static_cast<double>(most[lane]));
  }
  histogram.count += static_cast<std::int64_t>(size);
}

// Adds the elements of a tensor that has some that are not finite.
template <class T>
void add_some(Histogram& histogram, const T* x, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    if (std::isfinite(x[i]))
      add_finite(histogram, x + i, 1);
    else
      ++(std::isnan(x[i]) ? histogram.nans : histogram.infinities);
  }
}

struct Bucket {
  double lower, upper;
  std::int64_t count;
};

// The buckets of one sign that hold elements, from the smallest magnitude up.
template <class T>
std::vector<Bucket> magnitudes_of(const Counters<T>& counters, bool negative, double largest) {
  std::vector<Bucket> buckets;
  double fine_from = std::ldexp(largest, -8);
  for (std::size_t bucket = 0; bucket < Leading<T>::finite; ++bucket) {
    std::int64_t count = counters.count(negative, bucket);
    if (count == 0) continue;
    // Below 2^-8 of the largest magnitude a bucket is a whole power of two; the first one, with zero, stays as it is.
    bool is_whole_power = bucket >= 8 && Leading<T>::lower(bucket | 7) < fine_from;
    std::size_t from = is_whole_power ? bucket & ~std::size_t{7} : bucket;
    std::size_t to = is_whole_power ? from + 8 : bucket + 1;
    if (!buckets.empty() && buckets.back().lower == Leading<T>::lower(from))
      buckets.back().count += count;
    else
      buckets.push_back({Leading<T>::lower(from), Leading<T>::lower(to), count});
  }
  return buckets;
}

void add_bucket(Histogram& histogram, double lower, double upper, std::int64_t count) {
  // An empty bucket fills a gap.
  if (!histogram.limits.empty() && histogram.limits.back() < lower) {
    histogram.limits.push_back(lower);
    histogram.in_bucket.push_back(0);
  }
  histogram.limits.push_back(upper);
  histogram.in_bucket.push_back(static_cast<double>(count));
}

template <class T>
Histogram counted(const T* x, std::size_t size) {
  Histogram histogram;
  Counters<T> counters(size);
  counters.add(x, size);
  if (counters.not_finite() == 0)
    add_finite(histogram, x, size);
  else
    add_some(histogram, x, size);
  double largest = std::max(std::abs(histogram.min), std::abs(histogram.max));
  std::vector<Bucket> negative = magnitudes_of(counters, true, largest);
  std::reverse(negative.begin(), negative.end());
  for (const Bucket& bucket : negative) add_bucket(histogram, -bucket.upper, -bucket.lower, bucket.count);
  for (const Bucket& bucket : magnitudes_of(counters, false, largest))
    add_bucket(histogram, bucket.lower, bucket.upper, bucket.count);
  if (histogram.count == 0) histogram.min = histogram.max = 0;
  // TensorBoard's reader takes no histogram without a bucket.
  if (histogram.limits.empty()) add_bucket(histogram, histogram.min, histogram.max, 0);
  return histogram;
}

}  // namespace

Histogram histogram_of(const Tensor& x, Location where) {
  NoRecord pause;
  Arg arg(x, where);
  const Tensor& given = detail::tensor_of("logging::Writer::histogram", arg);
  // Integers of 64 bits are rounded.
  bool is_wide = size_of(given.dtype()) == 8 || given.dtype() == i32;
  Tensor here =
      detail::contiguous_if_needed(detail::to_if_needed(detail::to_if_needed(given, cpu), is_wide ? f64 : f32));
  auto size = static_cast<std::size_t>(here.numel());
  return is_wide ? counted(here.data<double>(), size) : counted(here.data<float>(), size);
}

}  // namespace reel::logging
