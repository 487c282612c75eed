#include <fmt/format.h>
#include <reel/reel.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <vector>

#include "cases.h"

// Ragged batches: each product has another row count, so that a cache with one kernel per shape is useless.

namespace reel_bench {

namespace {

using Clock = std::chrono::steady_clock;

double products(const std::vector<reel::Tensor>& rows, const reel::Tensor& weight) {
  Clock::time_point start = Clock::now();
  for (const reel::Tensor& x : rows) reel::matmul(x, weight);
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// 500 products with 1 … 500 rows in random order, and 500 with 250 or 251 rows: equal numbers of multiplications.
void compare(reel::DType dtype) {
  constexpr int count = 500, size = 256;
  reel::Tensor weight = reel::to(reel::rand({size, size}), dtype);
  std::vector<std::int64_t> counts(count);
  std::iota(counts.begin(), counts.end(), 1);
  std::shuffle(counts.begin(), counts.end(), std::mt19937_64(7));
  std::vector<reel::Tensor> distinct, fixed;
  for (int i = 0; i < count; ++i) {
    distinct.push_back(reel::to(reel::rand({counts[static_cast<std::size_t>(i)], size}), dtype));
    fixed.push_back(reel::to(reel::rand({count / 2 + i % 2, size}), dtype));
  }
  std::vector<double> distinct_times, fixed_times;
  products({fixed[0], fixed[1]}, weight);     // one-time costs of a process
  double first = products(distinct, weight);  // every row count for the first time
  products(fixed, weight);
  for (int round = 0; round < 11; ++round) {
    distinct_times.push_back(products(distinct, weight));
    fixed_times.push_back(products(fixed, weight));
  }
  double ragged = median(distinct_times) / count, same = median(fixed_times) / count;
  fmt::print("{:<44}{:>12.2f}{:>12.2f}{:>8.2f}{:>14}\n",
             fmt::format("matmul (n, {0}) x ({0}, {0}) {1}", size, reel::name_of(dtype)), ragged, same, ragged / same,
             ragged <= 1.3 * same ? "1.30 met" : "1.30 MISSED");
  fmt::print("{:<44}{:>12.2f}{:>12}{:>8.2f}{:>14}\n", "  each row count for the first time", first / count, "",
             first / count / same, first / count <= 1.3 * same ? "1.30 met" : "1.30 MISSED");
}

}  // namespace

void ragged_products() {
  fmt::print("\n{:<44}{:>12}{:>12}{:>8}{:>14}\n", "500 distinct row counts, µs a product", "distinct", "fixed", "ratio",
             "goal");
  compare(reel::f32);
  compare(reel::bf16);
}

}  // namespace reel_bench
