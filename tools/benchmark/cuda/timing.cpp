#include <algorithm>
#include <chrono>
#include <cmath>

#include "cases.h"

namespace reel_bench {

namespace {

using Clock = std::chrono::steady_clock;

// These are also pytorch.py's.
constexpr int repetitions = 11;
constexpr double warm_up = 0.1, repetition = 0.02;  // s

double seconds(const std::function<void()>& run, int count, const std::function<void()>& synchronise) {
  synchronise();
  auto start = Clock::now();
  for (int i = 0; i < count; ++i) run();
  synchronise();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

CudaTimes time_of(const std::function<void()>& run, const std::function<void()>& synchronise) {
  seconds(run, 1, synchronise);  // chooses algorithms, loads kernels
  int count = 1;
  double took = 0;
  for (double spent = 0; spent < warm_up; spent += took) {
    took = seconds(run, count, synchronise);
    count = std::clamp(static_cast<int>(std::ceil(repetition * count / took)), 1, 2 * count);
  }
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) times.push_back(1e6 * seconds(run, count, synchronise) / count);
  std::sort(times.begin(), times.end());
  return {times[repetitions / 4], times[repetitions / 2], times[repetitions - 1 - repetitions / 4]};
}

}  // namespace reel_bench
