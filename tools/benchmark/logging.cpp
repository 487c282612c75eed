#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include <reel/reel.h>

#include "cases.h"

namespace reel_bench {

namespace {

using namespace reel;
using Clock = std::chrono::steady_clock;

// A log in a folder that is removed with it.
class TemporaryLog {
 public:
  explicit TemporaryLog(const logging::WriterOptions& options)
      : path_(std::filesystem::temp_directory_path() / ("reel_bench_log_" + std::to_string(getpid()))),
        log_(std::make_unique<logging::Writer>(path_.string(), options)) {}
  ~TemporaryLog() {
    log_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryLog(const TemporaryLog&) = delete;
  TemporaryLog& operator=(const TemporaryLog&) = delete;

  logging::Writer& log() { return *log_; }

 private:
  std::filesystem::path path_;
  std::unique_ptr<logging::Writer> log_;
};

// Instructions are counted inside of the functions that are named measured_…
[[gnu::noinline]] void measured_scalars(logging::Writer& log, int count) {
  for (int step = 0; step < count; ++step) log.scalar("train/loss", 0.5 * step, step);
}
[[gnu::noinline]] void measured_histogram(logging::Writer& log, const Tensor& x) { log.histogram("weights", x, 0); }

std::function<double()> scalars(int count, logging::WriterOptions options) {
  return [=] {
    TemporaryLog log(options);
    auto start = Clock::now();
    measured_scalars(log.log(), count);
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  };
}

std::function<double()> histogram(std::int64_t size) {
  return [x = std::make_shared<Tensor>(), size] {
    if (!x->defined()) *x = randn({size});
    TemporaryLog log({});
    auto start = Clock::now();
    measured_histogram(log.log(), *x);
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  };
}

}  // namespace

std::vector<Case> logs() {
  return {{"logging", "scalar", 10'000, 2000, scalars(10'000, {})},
          {"logging", "scalar_written_by_each_call", 10'000, 0, scalars(10'000, {.flush_seconds = 0})},
          {"logging", "scalar_events_csv_json", 10'000, 0, scalars(10'000, {.csv = true, .json = true})},
          {"logging", "histogram_1000000_elements", 1'000'000, 4, histogram(1'000'000)}};
}

}  // namespace reel_bench
