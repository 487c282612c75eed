#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include <reel/reel.h>

#include "cases.h"
#include "models/workloads.h"

namespace reel_bench {

namespace {

using namespace reel;
using Clock = std::chrono::steady_clock;

constexpr int operations = 1000;
constexpr std::int64_t batch = 32, hidden = 128;

double nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

double products() {
  static const Tensor x = ones({64}), factor = ones({64});
  auto start = Clock::now();
  for (int i = 0; i < operations; ++i) static_cast<void>(x * factor);
  return nanoseconds_since(start);
}

double lstm() {
  static const Work work = lstm_by_hand(LSTMForm::cell, batch, hidden);
  auto start = Clock::now();
  work();
  return nanoseconds_since(start);
}

double profiled(double (*run)()) {
  debug::Profile profile;
  return run();
}

double recorded(double (*run)(), const debug::RecordingOptions& options = {}) {
  std::string file =
      (std::filesystem::temp_directory_path() / ("reel_bench_" + std::to_string(getpid()) + ".reel")).string();
  double time = 0;
  {
    debug::Recording recording(file, options);
    time = run();
  }
  std::remove(file.c_str());
  return time;
}

}  // namespace

std::vector<Case> debugging() {
  const debug::RecordingOptions fingerprints{.statistics = false, .value_elements = 0, .updates = false};
  return {
      {"debug", "mul", operations, 0, products},
      {"debug", "mul_profiled", operations, 70, [] { return profiled(products); }},
      {"debug", "mul_recorded", operations, 0, [] { return recorded(products); }},
      {"debug", "lstm_32_128", 1, 0, lstm},
      {"debug", "lstm_32_128_profiled", 1, 1.05, [] { return profiled(lstm); }, "lstm_32_128"},
      {"debug", "lstm_32_128_fingerprints", 1, 2, [=] { return recorded(lstm, fingerprints); }, "lstm_32_128"},
      {"debug", "lstm_32_128_recorded", 1, 2, [] { return recorded(lstm); }, "lstm_32_128"},
  };
}

}  // namespace reel_bench
