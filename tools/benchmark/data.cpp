#include <reel/data.h>

#include <chrono>
#include <memory>
#include <random>
#include <string>

#include "cases.h"

namespace reel_bench {

namespace {

using namespace reel;
using Clock = std::chrono::steady_clock;

constexpr int record_count = 1'000'000;

// Records of 1 to 30 letters.
std::vector<std::string> short_records() {
  std::mt19937_64 random(1);
  std::vector<std::string> records(record_count);
  for (std::string& record : records) record.assign(1 + random() % 30, 'a');
  return records;
}

struct Epochs {
  std::vector<std::string> records = short_records();
  data::Loader<std::string> loader;
  std::size_t letters = 0;

  explicit Epochs(data::LoaderOptions<std::string> options) : loader(records, std::move(options)) {}
};

// Instructions are counted inside of the function that is named measured_…
[[gnu::noinline]] void measured_epoch(Epochs& epochs) {
  for (const auto& batch : epochs.loader) epochs.letters += batch.front().size();
}

std::function<double()> epoch(const data::LoaderOptions<std::string>& options) {
  auto epochs = std::make_shared<std::unique_ptr<Epochs>>();
  return [=] {
    if (!*epochs) *epochs = std::make_unique<Epochs>(options);
    auto start = Clock::now();
    measured_epoch(**epochs);
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  };
}

}  // namespace

std::vector<Case> data_loading() {
  auto length = [](const std::string& record) { return static_cast<std::int64_t>(record.size()); };
  // 10⁶ records a second.
  constexpr double goal = 1000;
  return {
      {"data", "in_order", record_count, goal, epoch({.batch_size = 32})},
      {"data", "shuffled", record_count, goal, epoch({.batch_size = 32, .shuffle = true})},
      {"data", "shuffled_bucketed", record_count, goal, epoch({.batch_size = 32, .shuffle = true, .length = length})}};
}

}  // namespace reel_bench
