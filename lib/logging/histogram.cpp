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
  Counters() : counts_(2 * Leading<T>::magnitudes) {}

  void add(const T* x, std::size_t size) {
    std::int64_t* counts = counts_.data();
    for (std::size_t i = 0; i < size; ++i) {
      typename Leading<T>::Bits bits;
      std::memcpy(&bits, x + i, sizeof bits);
      ++counts[bits >> Leading<T>::shift];
    }
  }
  std::int64_t count(bool negative, std::size_t bucket) const {
    return counts_[(negative ? Leading<T>::magnitudes : 0) + bucket];
  }
  /// The number of elements that are NaN or infinite.
  std::int64_t not_finite() const {
    std::int64_t sum = 0;
    for (std::size_t bucket = Leading<T>::finite; bucket < Leading<T>::magnitudes; ++bucket)
      sum += count(false, bucket) + count(true, bucket);
    return sum;
  }

 private:
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
  std::size_t whole = size - size % lanes;
  // One loop for each sum is vectorised, which one loop for all is not.
  for (const T* values = x; values != x + whole; values += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += static_cast<double>(values[lane]);
    for (std::size_t lane = 0; lane < lanes; ++lane)
      squares[lane] += static_cast<double>(values[lane]) * static_cast<double>(values[lane]);
    for (std::size_t lane = 0; lane < lanes; ++lane)
      least[lane] = values[lane] < least[lane] ? values[lane] : least[lane];
    for (std::size_t lane = 0; lane < lanes; ++lane) most[lane] = values[lane] > most[lane] ? values[lane] : most[lane];
  }
  for (std::size_t i = whole; i < size; ++i) {
    sums[0] += static_cast<double>(x[i]);
    squares[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    least[0] = std::min(least[0], x[i]);
    most[0] = std::max(most[0], x[i]);
  }
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
  std::array<T, 1024> finite;
  std::size_t count = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (std::isfinite(x[i]))
      finite[count++] = x[i];
    else
      ++(std::isnan(x[i]) ? histogram.nans : histogram.infinities);
    if (count < finite.size()) continue;
    add_finite(histogram, finite.data(), count);
    count = 0;
  }
  add_finite(histogram, finite.data(), count);
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
  Counters<T> counters;
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
