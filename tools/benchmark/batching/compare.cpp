#include "compare.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

namespace reel_bench {

namespace {

using ProgramTimes = std::vector<std::vector<Measured>>;  // by thread count and program

// In each round all programs run alternately with each number of threads, in reverse order every other round.
ProgramTimes measure(const std::vector<Program>& programs, const std::vector<int>& thread_counts) {
  ProgramTimes times(thread_counts.size(), std::vector<Measured>(programs.size()));
  std::vector<std::vector<Repeats>> repeats(thread_counts.size());
  for (std::size_t i = 0; i < thread_counts.size(); ++i) {
    use_threads(thread_counts[i]);
    for (const Program& one : programs) repeats[i].push_back(repeats_of(one.run));
  }
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < thread_counts.size(); ++i) {
      use_threads(thread_counts[i]);
      for (std::size_t k = 0; k < programs.size(); ++k) {
        std::size_t program = round % 2 == 0 ? k : programs.size() - 1 - k;
        times[i][program].add(time_of(programs[program].run, repeats[i][program]), thread_counts[i]);
      }
    }
  return times;
}

Times found(const Ratio& ratio, const std::vector<Program>& programs, const std::vector<Measured>& times) {
  const Times &own = times[ratio.program].fair, &other = times[ratio.other].fair;
  double operations = programs[ratio.program].operations, of_other = programs[ratio.other].operations;
  Times values;
  for (std::size_t i = 0; i < own.size(); ++i) {
    double each = own[i] / operations, each_other = other[i] / of_other;
    if (ratio.kind == RatioKind::speed) values.push_back(each_other / each);
    if (ratio.kind == RatioKind::time) values.push_back(each / each_other);
    if (ratio.kind == RatioKind::added) values.push_back((each - each_other) * 1e6);
  }
  return values;
}

// Returns true if the goal is met.
bool print(const Ratio& ratio, const Times& values) {
  double value = median(values);
  bool met = ratio.goal == 0 || (ratio.kind == RatioKind::speed ? value >= ratio.goal : value <= ratio.goal);
  std::string goal;
  if (ratio.goal != 0)
    goal = fmt::format("{} {} {}", ratio.kind == RatioKind::speed ? "≥" : "≤", ratio.goal, met ? "met" : "MISSED");
  fmt::print("{:>9.3g} {:<28}{:>20}{:>15}\n", value, ratio.of,
             fmt::format("{:.3g} … {:.3g}", quartile(values, 1), quartile(values, 3)), goal);
  return met;
}

void check_results(const Comparison& comparison, Outcome& outcome) {
  double first = NAN;
  for (const Program& one : comparison.programs) {
    double result = one.run();
    if (!one.result) continue;
    if (std::isnan(first)) first = result;
    if (std::abs(result - first) <= 1e-4 * std::abs(first) + 1e-6) continue;
    fmt::print("{}: {} finds {}, {} finds {}: NOT THE SAME WORK\n", comparison.name, comparison.programs[0].name, first,
               one.name, result);
    ++outcome.wrong;
  }
}

}  // namespace

void compare(const Comparison& comparison, const std::vector<int>& thread_counts, Outcome& outcome) {
  use_threads(1);
  check_results(comparison, outcome);
  fmt::print("\n{}\n", comparison.name);
  for (const std::string& note : comparison.notes) fmt::print("  ({})\n", note);
  ProgramTimes times = measure(comparison.programs, thread_counts);
  for (std::size_t program = 0; program < comparison.programs.size(); ++program)
    for (std::size_t i = 0; i < thread_counts.size(); ++i) {
      const Program& one = comparison.programs[program];
      double rate = one.operations / median(times[i][program].fair) * 1e3;
      std::string figure = comparison.unit == "op" ? fmt::format("{:.4g} ns/op", 1e9 / rate)
                                                   : fmt::format("{:.4g} {}/s", rate, comparison.unit);
      fmt::print("  {:<36}{:>3}{:>22}", i == 0 ? one.name : "", thread_counts[i], figure);
      bool any = false;
      for (const Ratio& ratio : comparison.ratios) {
        if (ratio.program != program) continue;
        if (any) fmt::print("{:63}", "");
        any = true;
        outcome.missed += !print(ratio, found(ratio, comparison.programs, times[i]));
      }
      if (!any) fmt::print("\n");
    }
  std::fflush(stdout);
}

}  // namespace reel_bench
