// Times ops beside libtorch's, in turn in one process: medians, for one thread and for two.

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <reel/reel.h>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

#include "cases.h"

// Both libraries run on GNU OpenMP.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int count);
}

namespace {

using reel_bench::PeerCase;
using reel_bench::PeerEntry;
using Clock = std::chrono::steady_clock;

constexpr int rounds = 15;

// What is asked of a group of cases: at most so much of libtorch's time and, where it is looked at, so many milliseconds
// more for the first call in a process than for later ones.
struct Goal {
  double ratio, first;
};
constexpr Goal op_goal{1.05, 0}, net_goal{1.0, 60};

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// After 20 ms of runs that do not count: OpenMP starts threads anew when their number has changed, and a processor that
// has slept, above all a virtual one, takes milliseconds to wake up.
double milliseconds(const std::function<void()>& run, int times) {
  Clock::time_point start = Clock::now();
  do run();
  while (since(start) < 20);
  start = Clock::now();
  for (int i = 0; i < times; ++i) run();
  return since(start) / times;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + rounds / 2, values.end());
  return values[rounds / 2];
}

// One thread stays on one processor; several have all that the process was given.
void use_threads(int count) {
  static const cpu_set_t all = [] {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  cpu_set_t chosen = all;
  if (count == 1) {
    CPU_ZERO(&chosen);
    for (int processor = 0; processor < CPU_SETSIZE && CPU_COUNT(&chosen) == 0; ++processor)
      if (CPU_ISSET(processor, &all)) CPU_SET(processor, &chosen);
  }
  sched_setaffinity(0, sizeof chosen, &chosen);
  omp_set_num_threads(count);
  at::set_num_threads(count);
}

// One side's times with one number of threads, a round each.
using Times = std::vector<double>;

struct Measured {
  Times ours, theirs;
};

Times divided(const Times& a, const Times& b) {
  Times ratios;
  for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  return ratios;
}

// In each round both sides run in turn with each number of threads, for about 20 ms each, so that whatever else happens on
// the machine meets all of them.
std::vector<Measured> measure(const PeerCase& one, const std::vector<int>& thread_counts) {
  std::vector<Measured> measured(thread_counts.size());
  std::vector<int> times(thread_counts.size());
  for (std::size_t i = 0; i < thread_counts.size(); ++i) {
    use_threads(thread_counts[i]);
    double longest = 0;
    for (int warming : {0, 1}) longest = warming * std::max(milliseconds(one.ours, 1), milliseconds(one.theirs, 1));
    times[i] = std::clamp(static_cast<int>(20 / longest), 1, 1000);
  }
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < thread_counts.size(); ++i) {
      use_threads(thread_counts[i]);
      bool first = round % 2 == 0;
      if (first) measured[i].ours.push_back(milliseconds(one.ours, times[i]));
      measured[i].theirs.push_back(milliseconds(one.theirs, times[i]));
      if (!first) measured[i].ours.push_back(milliseconds(one.ours, times[i]));
    }
  return measured;
}

// What the first call in a process costs beyond a later one. Nothing of the library may have run before.
void print_first(const PeerCase& one) {
  use_threads(1);
  auto timed = [&] {
    Clock::time_point start = Clock::now();
    one.ours();
    return since(start);
  };
  double first = timed();
  std::vector<double> later(rounds);
  for (double& time : later) time = timed();
  fmt::print("{}\n", first - median(later));
}

// Asks a process of its own.
double first_use(const PeerEntry& entry) {
  std::string command = fmt::format("/proc/{}/exe --first '{}/{}'", getpid(), entry.group, entry.name);
  std::unique_ptr<FILE, int (*)(FILE*)> answer(popen(command.c_str(), "r"), pclose);
  double milliseconds = NAN;
  if (!answer || std::fscanf(answer.get(), "%lf", &milliseconds) != 1) return NAN;
  return milliseconds;
}

// Returns how many goals were missed. That more threads are slower counts from 3 % on: as much lies between two runs of
// the same code.
int run(const PeerEntry& entry, const Goal& goal, const std::vector<int>& thread_counts) {
  int missed = 0;
  PeerCase one = entry.make();
  std::vector<Measured> measured = measure(one, thread_counts);
  for (std::size_t i = 0; i < thread_counts.size(); ++i) {
    double ours = median(measured[i].ours), ratio = median(divided(measured[i].ours, measured[i].theirs));
    bool met = ratio <= goal.ratio, slower = i > 0 && median(divided(measured[i].ours, measured[0].ours)) > 1.03;
    fmt::print("{:<44}{:>3}{:>10.3f}{:>10.3f}{:>8.2f}{:>16}{:>13}{}\n", i == 0 ? one.name : "", thread_counts[i], ours,
               median(measured[i].theirs), ratio, fmt::format("{:.1f} {}", one.work / ours / 1e6, one.unit),
               fmt::format("{:.2f} {}", goal.ratio, met ? "met" : "MISSED"), slower ? "  slower than one thread" : "");
    missed += !met + slower;
  }
  if (goal.first > 0) {
    double first = first_use(entry);
    bool met = first <= goal.first;
    fmt::print("{:<47}{:>10.1f}{:>47}\n", "  its first use, beyond a later one", first,
               fmt::format("{:.0f} ms {}", goal.first, met ? "met" : "MISSED"));
    missed += !met;
  }
  return missed;
}

// What a run looks at, and what it has found.
struct Run {
  std::string_view filter;
  std::vector<int> thread_counts{1};
  int missed = 0;
  bool any = false;

  bool wants(const PeerEntry& entry) const {
    return filter.empty() || (entry.group + "/" + entry.name).find(filter) != std::string::npos;
  }
  void compare(const std::vector<PeerEntry>& entries, const Goal& goal) {
    for (const PeerEntry& entry : entries) {
      if (!wants(entry)) continue;
      if (!any)
        fmt::print("{:<44}{:>3}{:>10}{:>10}{:>8}{:>16}{:>13}\n", "case", "thr", "reel, ms", "torch, ms", "ratio",
                   "reel", "goal");
      any = true;
      missed += run(entry, goal, thread_counts);
    }
  }
};

// libtorch's warnings, that sparse tensors are new to it and the like, would stand in the middle of the table.
class Silence : public c10::WarningHandler {
 public:
  void process(const c10::SourceLocation&, const std::string&, const bool) override {}
};

int print_first(std::string_view name) {
  for (const PeerEntry& entry : reel_bench::net_cases())
    if (entry.group + "/" + entry.name == name) {
      print_first(entry.make());
      return 0;
    }
  return 2;
}

}  // namespace

namespace reel_bench {

std::vector<PeerEntry> net_cases() {
  std::vector<PeerEntry> all;
  for (auto family : {activation_cases, normalise_cases, convolve_cases, recurrent_cases, attend_cases, sparse_cases})
    for (PeerEntry& entry : family()) all.push_back(std::move(entry));
  return all;
}

}  // namespace reel_bench

int main(int argument_count, char** arguments) {
  reel::manual_seed(1);
  Silence silence;
  c10::Warning::WarningHandlerGuard silenced(&silence);
  c10::InferenceMode nothing_records;  // libtorch's counterpart of having no tape open
  if (argument_count == 3 && std::string_view(arguments[1]) == "--first") return print_first(arguments[2]);
  Run run{argument_count > 1 ? arguments[1] : ""};
  if (int most = omp_get_max_threads(); most > 1) run.thread_counts.push_back(most);
  bool all = run.filter.empty(), ops = all || run.filter == "ops", nets = all || run.filter == "nets";
  std::string_view filter = run.filter;
  if (ops || nets) run.filter = {};
  if (ops || !nets) run.compare(reel_bench::op_cases(), op_goal);
  if (nets || !ops) run.compare(reel_bench::net_cases(), net_goal);
  if (ops || std::string_view("ragged").find(filter) != std::string_view::npos) {
    omp_set_num_threads(1);
    reel_bench::ragged_products();
    run.any = true;
  }
  if (nets || std::string_view("ragged").find(filter) != std::string_view::npos) {
    omp_set_num_threads(1);
    reel_bench::ragged_lstm();
    run.any = true;
  }
  if (!run.any) {
    fmt::print(stderr, "reel_peer_bench: no case contains \"{}\"\n", filter);
    return 2;
  }
  fmt::print("\n{}\n", run.missed == 0 ? "every goal met" : fmt::format("{} goals missed", run.missed));
}
