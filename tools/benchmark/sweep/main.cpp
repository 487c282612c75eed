// Times random calls of reel's ops beside PyTorch's, alternately in one process and on one thread.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>

#include "../peer/timing.h"
#include "cpu/processor.h"
#include "sweep.h"

namespace {

using namespace reel_bench;

// Microseconds that one of the libraries must take.
constexpr double least = 5;
// A ratio beyond which a row is measured again, in a process of its own.
constexpr double bound = 1.10;

// By their names: --seed, --cases, --op, --case, and --check and --ratio, which programs alone give.
using Options = std::map<std::string, std::string>;

Options options_of(int count, char** arguments) {
  Options options{{"--seed", "0"}, {"--cases", "2000"}, {"--op", ""}, {"--case", ""}, {"--check", ""}, {"--ratio", ""}};
  for (int i = 1; i < count; i += 2) {
    auto found = options.find(arguments[i]);
    if (found == options.end()) throw std::invalid_argument(fmt::format("there is no option {}", arguments[i]));
    if (i + 1 == count) throw std::invalid_argument(fmt::format("{} wants a value", arguments[i]));
    found->second = arguments[i + 1];
  }
  return options;
}

struct Row {
  Case one;
  Timing timing;
};

// A case's times in a process of its own; those that it had, if that fails.
Timing measured_alone(const Row& row) {
  std::string command = fmt::format("/proc/{}/exe --ratio '{}'", getpid(), to_string(row.one));
  std::unique_ptr<FILE, int (*)(FILE*)> answer(popen(command.c_str(), "r"), pclose);
  Timing found{};
  bool read = answer && std::fscanf(answer.get(), "%lf %lf %lf", &found.ours, &found.theirs, &found.ratio) == 3;
  return read ? found : row.timing;
}

// Prepares a case and runs it. Returns how its results differ, or the first line of the error that it throws.
std::string try_case(const Case& one, std::optional<PreparedCase>& prepared) {
  try {
    prepared.emplace(one);
    prepared->ours.run();
    return prepared->theirs ? difference(*prepared) : "";
  } catch (const std::exception& error) {
    std::string message = error.what();
    return message.substr(0, message.find('\n'));
  }
}

// Times cases until there are enough, and prints those whose results are wrong. Returns the rows, the slowest first.
std::vector<Row> sweep(const Options& options, std::size_t cases, bool halves, int& wrong) {
  std::vector<Row> rows;
  std::uint64_t seed = (std::stoull(options.at("--seed")) + halves) * 0x9E3779B97F4A7C15u;
  for (std::size_t drawn = 0; rows.size() < cases && drawn < 20 * cases; ++drawn) {
    Case one = draw_case(seed + drawn, options.at("--op"), halves);
    std::optional<PreparedCase> prepared;
    if (std::string found = try_case(one, prepared); !found.empty()) {
      fmt::print("WRONG: {}: {}\n", to_string(one), found);
      ++wrong;
    } else if (prepared->theirs) {
      Timing timing = time_both(*prepared);
      if (std::max(timing.ours, timing.theirs) >= least) rows.push_back({one, timing});
    }
    if (isatty(2)) fmt::print(stderr, "\r{} of {} ", rows.size(), cases);
  }
  for (Row& row : rows)
    if (row.timing.ratio > bound) row.timing = measured_alone(row);
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.timing.ratio > b.timing.ratio; });
  return rows;
}

void report_ops(const std::vector<Row>& rows) {
  std::map<std::string, std::vector<double>> by_op;
  for (const Row& row : rows) by_op[row.one.op].push_back(row.timing.ratio);
  std::vector<std::pair<double, std::string>> worst;
  for (const auto& [op, ratios] : by_op)
    worst.emplace_back(median(ratios), fmt::format("{} of {} to {:.2f}", op, ratios.size(), ratios.front()));
  std::sort(worst.rbegin(), worst.rend());
  fmt::print("\nLargest medians of ops:");
  for (std::size_t i = 0; i < std::min<std::size_t>(15, worst.size()); ++i)
    fmt::print("{} {:.2f} {}", i == 0 ? "" : ",", worst[i].first, worst[i].second);
}

// Returns true if the goals are met.
bool report(const std::vector<Row>& rows) {
  double logarithms = 0;
  for (const Row& row : rows) {
    logarithms += std::log(row.timing.ratio);
    if (row.timing.ratio > 1.05)
      fmt::print("{:6.2f}{:11.1f}{:11.1f}  {}\n", row.timing.ratio, row.timing.ours, row.timing.theirs,
                 to_string(row.one));
  }
  report_ops(rows);
  double count = static_cast<double>(std::max<std::size_t>(rows.size(), 1)), mean = std::exp(logarithms / count);
  auto percent_above = [&](double most) {
    auto is_above = [=](const Row& row) { return row.timing.ratio > most; };
    return 100 * static_cast<double>(std::count_if(rows.begin(), rows.end(), is_above)) / count;
  };
  double slower = percent_above(bound), slow = percent_above(1.5), slowest = percent_above(3);
  fmt::print(
      "\n{} cases: geometric mean {:.3f} (goal 0.7); {:.2f} % above 1.10 (8), {:.2f} % above 1.5 (1.5), {:.2f} % above "
      "3 (0)\n",
      rows.size(), mean, slower, slow, slowest);
  return mean <= 0.7 && slower <= 8 && slow <= 1.5 && slowest == 0;
}

int run_case(const std::string& line, bool figures_alone) {
  std::optional<PreparedCase> prepared;
  std::string found = try_case(parse_case(line), prepared);
  if (!found.empty()) fmt::print(stderr, "WRONG: {}\n", found);
  if (!prepared || !prepared->theirs) throw std::invalid_argument("one of the libraries does not run this case");
  Timing timing = time_both(*prepared);
  if (figures_alone)
    fmt::print("{} {} {}\n", timing.ours, timing.theirs, timing.ratio);
  else
    fmt::print("reel {:.2f} µs, {} {:.2f} µs, ratio {:.3f}\n", timing.ours, peer_name(), timing.theirs, timing.ratio);
  return !found.empty();
}

// Draws cases of each op, reads each back from its line, runs it once, and beside the peer compares the results.
int check(const Options& options) {
  std::uint64_t count = std::stoull(options.at("--check")),
                seed = std::stoull(options.at("--seed")) * 0x9E3779B97F4A7C15u;
  int cases = 0, wrong = 0;
  auto check_one = [&](const Case& one) {
    std::optional<PreparedCase> prepared;
    std::string line = to_string(one), found = try_case(one, prepared);
    if (to_string(parse_case(line)) != line) found = "its line is read as another";
    if (!found.empty()) fmt::print("WRONG: {}: {}\n", line, found);
    ++cases;
    wrong += !found.empty();
  };
  for (const OpFamily<reel::Tensor>& family : op_families())
    for (const Op<reel::Tensor>& op : family.ops)
      for (std::uint64_t i = 0; i < count; ++i) check_one(draw_case(seed + i, op.name, false));
  for (std::uint64_t i = 0; i < 20 * count; ++i) check_one(draw_case(seed + i, "", true));
  fmt::print("{} cases, {} wrong\n", cases, wrong);
  return wrong > 0;
}

}  // namespace

int main(int count, char** arguments) try {
  const char* set = std::getenv("REEL_INSTRUCTION_SET");
  limit_peer(set ? set : "");
  Options options = options_of(count, arguments);
  use_threads(1);
  if (!options["--check"].empty()) return check(options);
  if (!options["--ratio"].empty()) return run_case(options["--ratio"], true);
  if (!options["--case"].empty()) return run_case(options["--case"], false);
  fmt::print("reel ({}) beside {}, one thread, seed {}. Ratio, µs of reel and of the peer, case:\n",
             reel::detail::name_of(reel::detail::instruction_set()), peer_name(), options["--seed"]);
  int wrong = 0, wrong_halves = 0;
  std::size_t cases = std::stoull(options["--cases"]);
  bool met = report(sweep(options, cases, false, wrong));
  fmt::print("\nbf16 and f16, which have no goals:\n");
  report(sweep(options, cases / 10, true, wrong_halves));
  return met && wrong == 0 ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "reel_sweep: {}\n", error.what());
  return 2;
}
