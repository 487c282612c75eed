// Runs the benchmarks: a table of medians, and with --json FILE Google Benchmark's report. With --count CASE TIMES it
// only runs one case TIMES times, for a tool that counts instructions.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "cases.h"

namespace {

using reel_bench::Case;

std::vector<Case> all_cases() {
  std::vector<Case> cases = reel_bench::op_overhead();
  for (auto family : {reel_bench::tape, reel_bench::optim, reel_bench::data_loading, reel_bench::files,
                      reel_bench::logs, reel_bench::debugging, reel_bench::models})
    for (Case& one : family()) cases.push_back(std::move(one));
  return cases;
}

// Collects the repetitions of each case and prints one line for it.
class Table : public benchmark::BenchmarkReporter {
 public:
  explicit Table(std::vector<Case> cases) : cases_(std::move(cases)) {}

  bool ReportContext(const Context&) override {
    fmt::print("{:<36}{:>12}{:>22}{:>18}\n", "case", "ns/op", "middle half", "goal");
    return true;
  }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (run.run_type == Run::RT_Iteration)
        times_[run.run_name.function_name].push_back(run.real_accumulated_time / static_cast<double>(run.iterations) *
                                                     1e9);
  }
  void Finalize() override {
    std::map<std::string, double> medians;
    for (const Case& one : cases_) {
      std::vector<double>& times = times_[one.group + "/" + one.name];
      if (times.empty()) continue;
      std::sort(times.begin(), times.end());
      auto at = [&](std::size_t quarter) { return times[(times.size() - 1) * quarter / 4] / one.operations; };
      medians[one.group + "/" + one.name] = at(2);
      double goal = one.beside ? one.goal * medians[one.group + "/" + one.beside] : one.goal;
      fmt::print("{:<36}{:>12.1f}{:>22}{:>18}\n", one.group + "/" + one.name, at(2),
                 fmt::format("{:.1f} … {:.1f}", at(1), at(3)),
                 goal == 0 ? "" : fmt::format("{:.1f} {}", goal, at(2) <= goal ? "met" : "missed"));
    }
  }

 private:
  std::vector<Case> cases_;
  std::map<std::string, std::vector<double>> times_;
};

int count(const std::vector<Case>& cases, std::string_view name, int times) {
  for (const Case& one : cases) {
    if (one.group + "/" + one.name != name) continue;
    for (int i = 0; i < times; ++i) one.run();
    return 0;
  }
  fmt::print(stderr, "reel_bench: there is no case {}\n", name);
  return 2;
}

int list(const std::vector<Case>& cases) {
  for (const Case& one : cases) fmt::print("{}/{} {} {}\n", one.group, one.name, one.operations, one.instructions);
  return 0;
}

}  // namespace

int main(int argument_count, char** arguments) {
  std::vector<Case> cases = all_cases();
  if (argument_count == 2 && std::string_view(arguments[1]) == "--list") return list(cases);
  if (argument_count == 4 && std::string_view(arguments[1]) == "--count")
    return count(cases, arguments[2], std::stoi(arguments[3]));

  for (const Case& one : cases)
    benchmark::RegisterBenchmark((one.group + "/" + one.name).c_str(),
                                 [run = one.run](benchmark::State& state) {
                                   for (auto _ : state) state.SetIterationTime(run() * 1e-9);
                                 })
        ->UseManualTime()
        ->Repetitions(11)
        ->MinTime(0.1);
  benchmark::Initialize(&argument_count, arguments);
  if (benchmark::ReportUnrecognizedArguments(argument_count, arguments)) return 2;
  Table table(cases);
  benchmark::RunSpecifiedBenchmarks(&table);
}
