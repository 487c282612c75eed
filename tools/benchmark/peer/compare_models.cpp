#include "compare_models.h"

#include <fmt/format.h>

#include <cmath>

#include "models.h"
#include "processes.h"

namespace reel_bench {

namespace {

bool contains(const std::string& name, std::string_view filter) {
  return ("models/" + name).find(filter) != std::string::npos;
}

void print_heading() {
  static bool printed = false;
  if (printed) return;
  printed = true;
  fmt::print("{:<52}{:>4}{:>12}{:>12} {:<10}{:>8}{:>18}{:>15}{:>16}\n", "workload", "thr", "reel", "libtorch", "",
             "ratio", "middle half", "goal", "DyNet's ratio*");
}

void print(const Finding& one, const std::string& name) {
  fmt::print("{:<52}{:>4}{:>12.4g}{:>12.4g} {:<10}{:>8.3f}{:>18}{:>15}{:>16}{}\n", name,
             one.threads ? fmt::format("{}", one.threads) : "", median(one.ours), median(one.theirs), one.unit,
             median(one.ratios), fmt::format("{:.3f} … {:.3f}", quartile(one.ratios, 1), quartile(one.ratios, 3)),
             one.goal > 0 ? fmt::format("{:.3f} {}", one.goal, one.met() ? "met" : "MISSED") : "",
             one.elsewhere > 0 ? fmt::format("{:.3f}", one.elsewhere) : "",
             one.slower ? "  SLOWER THAN ONE THREAD" : "");
  std::fflush(stdout);
}

// The times of each way, by thread count and way.
using WayTimes = std::vector<std::vector<Measured>>;

// In each round all ways of both sides run alternately with each number of threads, in reverse order every other round.
WayTimes measure(const std::vector<Work>& ways, const std::vector<int>& thread_counts) {
  WayTimes times(thread_counts.size(), std::vector<Measured>(ways.size()));
  std::vector<std::vector<Repeats>> repeats(thread_counts.size());
  for (std::size_t i = 0; i < thread_counts.size(); ++i) {
    use_threads(thread_counts[i]);
    for (const Work& way : ways) repeats[i].push_back(repeats_of(way));
  }
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < thread_counts.size(); ++i) {
      use_threads(thread_counts[i]);
      for (std::size_t k = 0; k < ways.size(); ++k) {
        std::size_t way = round % 2 == 0 ? k : ways.size() - 1 - k;
        times[i][way].add(time_of(ways[way], repeats[i][way]), thread_counts[i]);
      }
    }
  return times;
}

Times in_unit(const Unit& unit, Times times) {
  for (double& time : times) time = unit.of(time);
  return times;
}

bool same(double a, double b) { return std::abs(a - b) <= 2e-3 * std::max(std::abs(a), std::abs(b)) + 1e-6; }

void compare(const ModelCase& one, const std::vector<int>& thread_counts, Compared& outcome,
             std::vector<Finding>& findings) {
  std::vector<Work> ways = one.ours(), theirs = one.theirs();
  std::size_t our_count = ways.size();
  ways.insert(ways.end(), theirs.begin(), theirs.end());
  use_threads(1);
  double ours_found = ways.front()(), theirs_found = theirs.front()();
  if (!same(ours_found, theirs_found)) {
    fmt::print("{}: reel finds {}, libtorch {}: NOT THE SAME WORK\n", one.name, ours_found, theirs_found);
    ++outcome.wrong;
  }
  WayTimes times = measure(ways, thread_counts);
  for (const Row& row : one.rows)
    for (std::size_t i = 0; i < thread_counts.size(); ++i) {
      const Times &our_times = times[i][row.ours].fair, &their_times = times[i][our_count + row.theirs].fair;
      Finding found{"models",
                    row.variant.empty() ? one.name : one.name + ": " + row.variant,
                    thread_counts[i],
                    one.unit.name,
                    in_unit(one.unit, our_times),
                    in_unit(one.unit, their_times),
                    divided(our_times, their_times),
                    row.goal};
      found.elsewhere = row.dynet;
      found.slower = i > 0 && slower_than_one(times[i][row.ours], times[0][row.ours], 1.05);
      print(found, i > 0 ? "" : row.variant.empty() ? one.name : "  " + row.variant);
      outcome.missed += !found.met() + found.slower;
      findings.push_back(std::move(found));
    }
}

// Compares reel with itself: denormal numbers must not cost more than normal ones where they are
// flushed.
void compare_vanishing(const std::vector<int>& thread_counts, Compared& outcome, std::vector<Finding>& findings) {
  WayTimes times = measure({vanishing(false, true), vanishing(true, true), vanishing(true, false)}, thread_counts);
  for (std::size_t way : {1, 2})
    for (std::size_t i = 0; i < thread_counts.size(); ++i) {
      const Times &small = times[i][way].fair, &normal = times[i][0].fair;
      Finding found{"models",
                    "vanishing gradients beside normal ones, both ours",
                    thread_counts[i],
                    "ms",
                    small,
                    normal,
                    divided(small, normal)};
      if (way == 2) found.name += ": not flushed";
      if (way == 1) found.goal = 1.05;
      print(found, i > 0 ? "" : way == 1 ? found.name : "  not flushed");
      outcome.missed += !found.met();
      findings.push_back(std::move(found));
    }
}

// Returns the number of wrong results.
int check_losses() {
  int wrong = 0;
  std::vector<Tree> trees = random_trees();
  for (const tree_net::ExpectedLosses& expected : tree_net::expected_losses) {
    TreeTraining ours;
    TorchTreeTraining theirs, by_level;
    for (double loss : expected.epochs) {
      double found[] = {ours.epoch(trees, expected.minibatch), theirs.epoch(trees, expected.minibatch, false),
                        by_level.epoch(trees, expected.minibatch, true)};
      bool agrees = true;
      for (double one : found) agrees = agrees && std::abs(one - loss) <= 1e-5 * loss;
      fmt::print("  losses of an epoch, minibatch {}: {:.3f}; reel {:.3f}, libtorch {:.3f}, by level {:.3f}: {}\n",
                 expected.minibatch, loss, found[0], found[1], found[2], agrees ? "pass" : "FAIL");
      std::fflush(stdout);
      wrong += !agrees;
    }
  }
  return wrong;
}

}  // namespace

Compared compare_models(std::string_view filter, const std::vector<int>& thread_counts,
                        std::vector<Finding>& findings) {
  Compared outcome{};
  std::size_t found_before = findings.size();
  for (const ModelCase& one : model_cases()) {
    if (!contains(one.name, filter)) continue;
    print_heading();
    compare(one, thread_counts, outcome, findings);
  }
  if (contains("vanishing", filter)) {
    print_heading();
    compare_vanishing(thread_counts, outcome, findings);
  }
  for (const std::string& name : process_cases()) {
    if (!contains(name, filter)) continue;
    print_heading();
    for (Finding& found : compare_processes(name)) {
      print(found, found.name);
      outcome.missed += !found.met();
      findings.push_back(std::move(found));
    }
  }
  outcome.any = findings.size() > found_before;
  if (outcome.any) fmt::print("* DyNet's time over libtorch's as measured elsewhere; not rerun here\n");
  if (contains("tree_lstm losses", filter)) {
    outcome.any = true;
    use_threads(1);
    outcome.wrong += check_losses();
  }
  return outcome;
}

}  // namespace reel_bench
