// Times ops and models of reel and libtorch alternately in one process: medians, for one thread and for two.

#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <reel/reel.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "cases.h"
#include "compare_models.h"
#include "cpu/processor.h"
#include "report.h"
#include "timing.h"
#include "version.h"

// Both libraries run on GNU OpenMP.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int count);
}

namespace {

using reel_bench::divided;
using reel_bench::Finding;
using reel_bench::Measured;
using reel_bench::median;
using reel_bench::PeerCase;
using reel_bench::PeerEntry;
using reel_bench::Repeats;
using reel_bench::repeats_of;
using reel_bench::rounds;
using reel_bench::time_of;
using reel_bench::use_threads;

// The goals of a group of cases: the largest ratio to libtorch's time and, where it is measured, the milliseconds by which
// the first call in a process may exceed later ones.
struct Goal {
  double ratio, first;
};
constexpr Goal op_goal{1.05, 0}, net_goal{1.0, 60}, optim_goal{1 / 1.5, 0};

struct Sides {
  Measured ours, theirs;
};

// In each round both sides run alternately with each number of threads, for about 20 ms each, so that other
// load on the machine affects all of them.
std::vector<Sides> measure(const PeerCase& one, const std::vector<int>& thread_counts) {
  std::vector<Sides> measured(thread_counts.size());
  std::vector<Repeats> times(thread_counts.size());
  for (std::size_t i = 0; i < thread_counts.size(); ++i) {
    use_threads(thread_counts[i]);
    Repeats ours = repeats_of(one.ours), theirs = repeats_of(one.theirs);
    times[i] = {std::min({ours.times, theirs.times, 1000}), true};
  }
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < thread_counts.size(); ++i) {
      int threads = thread_counts[i];
      use_threads(threads);
      bool first = round % 2 == 0;
      if (first) measured[i].ours.add(time_of(one.ours, times[i]), threads);
      measured[i].theirs.add(time_of(one.theirs, times[i]), threads);
      if (!first) measured[i].ours.add(time_of(one.ours, times[i]), threads);
    }
  return measured;
}

// The time by which the first call in a process exceeds a later one. The library must not have run before.
void print_first(const PeerCase& one) {
  use_threads(1);
  auto timed = [&] {
    reel_bench::Stopwatch watch;
    one.ours();
    return watch.elapsed().wall;
  };
  double first = timed();
  std::vector<double> later(rounds);
  for (double& time : later) time = timed();
  fmt::print("{}\n", first - median(later));
}

// Measures it in a new process.
double first_use(const PeerEntry& entry) {
  std::string command = fmt::format("/proc/{}/exe --first '{}/{}'", getpid(), entry.group, entry.name);
  std::unique_ptr<FILE, int (*)(FILE*)> answer(popen(command.c_str(), "r"), pclose);
  double milliseconds = NAN;
  if (!answer || std::fscanf(answer.get(), "%lf", &milliseconds) != 1) return NAN;
  return milliseconds;
}

// Returns the number of missed goals. More threads may be up to 3 % slower: the difference between two runs of
// one program.
int run(const PeerEntry& entry, const Goal& goal, const std::vector<int>& thread_counts,
        std::vector<Finding>& findings) {
  int missed = 0;
  PeerCase one = entry.make();
  std::vector<Sides> measured = measure(one, thread_counts);
  for (std::size_t i = 0; i < thread_counts.size(); ++i) {
    Finding found{entry.group,
                  one.name,
                  thread_counts[i],
                  "ms",
                  measured[i].ours.fair,
                  measured[i].theirs.fair,
                  divided(measured[i].ours.fair, measured[i].theirs.fair),
                  goal.ratio};
    found.slower = i > 0 && slower_than_one(measured[i].ours, measured[0].ours, 1.03);
    double ours = median(found.ours), ratio = median(found.ratios);
    fmt::print("{:<44}{:>3}{:>10.3f}{:>10.3f}{:>8.2f}{:>16}{:>13}{}\n", i == 0 ? one.name : "", thread_counts[i], ours,
               median(found.theirs), ratio, fmt::format("{:.1f} {}", one.work / ours / 1e6, one.unit),
               fmt::format("{:.2f} {}", goal.ratio, found.met() ? "met" : "MISSED"),
               found.slower ? "  slower than one thread" : "");
    missed += !found.met() + found.slower;
    findings.push_back(std::move(found));
    std::fflush(stdout);
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

// The selection of a run, and its results.
struct Run {
  std::string_view filter;
  std::vector<int> thread_counts{1};
  int missed = 0, wrong = 0;
  bool any = false, headed = false;
  std::vector<Finding> findings;

  bool wants(const PeerEntry& entry) const {
    return filter.empty() || (entry.group + "/" + entry.name).find(filter) != std::string::npos;
  }
  void compare(const std::vector<PeerEntry>& entries, const Goal& goal) {
    for (const PeerEntry& entry : entries) {
      if (!wants(entry)) continue;
      if (!headed)
        fmt::print("{:<44}{:>3}{:>10}{:>10}{:>8}{:>16}{:>13}\n", "case", "thr", "reel, ms", "torch, ms", "ratio",
                   "reel", "goal");
      any = headed = true;
      missed += run(entry, goal, thread_counts, findings);
    }
  }
};

int print_first(std::string_view name) {
  for (const PeerEntry& entry : reel_bench::net_cases())
    if (entry.group + "/" + entry.name == name) {
      print_first(entry.make());
      return 0;
    }
  return 2;
}

// All ops and layers, or those that the filter names.
void compare_layers(Run& run) {
  c10::InferenceMode nothing_records;  // libtorch's counterpart of having no tape open
  std::string_view filter = run.filter;
  bool all = filter.empty(), ops = all || filter == "ops", nets = all || filter == "nets";
  run.compare(reel_bench::optim_cases(), optim_goal);
  if (ops || nets) run.filter = {};
  if (ops || !nets) run.compare(reel_bench::op_cases(), op_goal);
  if (nets || !ops) run.compare(reel_bench::net_cases(), net_goal);
  run.filter = filter;
  bool ragged = std::string_view("ragged").find(filter) != std::string_view::npos;
  use_threads(1);
  if (ops || ragged) reel_bench::ragged_products();
  if (nets || ragged) reel_bench::ragged_lstm();
  run.any = run.any || ops || nets || ragged;
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
  reel_bench::ignore_torch_warnings();
  std::vector<std::string_view> words(arguments + 1, arguments + argument_count);
  std::optional<reel_bench::BusyProcess> busy;
  if (std::erase(words, "--busy") > 0) busy.emplace();
  std::string json;
  if (words.size() > 1 && words[words.size() - 2] == "--json") {
    json = words.back();
    words.resize(words.size() - 2);
  }
  if (words.size() == 2 && words[0] == "--first") {
    c10::InferenceMode nothing_records;
    return print_first(words[1]);
  }
  fmt::print("reel ({}) beside libtorch {} on {}\n\n", name_of(reel::detail::instruction_set()),
             reel_bench::torch_version(), reel_bench::processor_name());
  Run run{words.empty() ? "" : words[0]};
  if (int most = omp_get_max_threads(); most > 1) run.thread_counts.push_back(most);
  reel_bench::Compared models = reel_bench::compare_models(run.filter, run.thread_counts, run.findings);
  run.missed = models.missed;
  run.wrong = models.wrong;
  run.any = models.any;
  compare_layers(run);
  if (!run.any) {
    fmt::print(stderr, "reel_peer_bench: no case contains \"{}\"\n", run.filter);
    return 2;
  }
  if (run.wrong > 0) fmt::print("\n{} results are WRONG\n", run.wrong);
  fmt::print("\n{}\n", run.missed == 0 ? "every goal met" : fmt::format("{} goals missed", run.missed));
  if (!json.empty() && !reel_bench::write_report(json, run.findings)) {
    fmt::print(stderr, "reel_peer_bench: cannot write {}\n", json);
    return 1;
  }
  return run.wrong == 0 ? 0 : 1;
}
