#include <unistd.h>

#include <array>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <reel/cuda.h>
#include <reel/threads.h>

#include "cpu/processor.h"
#include "print.h"
#include "verb.h"

namespace {

using Row = std::array<std::string, 6>;

std::string in_gigabytes(std::size_t bytes) { return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9); }

// The processor's model name.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (std::size_t start = line.find(": "); start != std::string::npos) return line.substr(start + 2);
  return "processor";
}

std::size_t pages(int which) {
  long count = sysconf(which), bytes = sysconf(_SC_PAGESIZE);
  return count > 0 && bytes > 0 ? static_cast<std::size_t>(count) * static_cast<std::size_t>(bytes) : 0;
}

Row cpu_row() {
  int threads = reel::thread_count();
  return {"cpu",
          processor_name(),
          in_gigabytes(pages(_SC_PHYS_PAGES)),
          in_gigabytes(pages(_SC_AVPHYS_PAGES)),
          fmt::format("{} thread{}", threads, threads == 1 ? "" : "s"),
          name_of(reel::detail::instruction_set())};
}

Row cuda_row(int index) {
  reel::Device device = reel::cuda::device(index);
  reel::cuda::Properties found = reel::cuda::properties(device);
  return {reel::to_string(device),
          found.name,
          in_gigabytes(found.memory),
          in_gigabytes(reel::cuda::memory_statistics(device).free),
          fmt::format("{}", found.multiprocessors),
          fmt::format("{}.{}", found.major, found.minor)};
}

constexpr std::array<const char*, std::tuple_size_v<Row>> headings = {"device", "name",       "memory",
                                                                      "free",   "processors", "capability"};

std::vector<Row> device_rows() {
  std::vector<Row> rows{cpu_row()};
  for (int i = 0; i < reel::cuda::device_count(); ++i) rows.push_back(cuda_row(i));
  return rows;
}

void print_as_json() {
  nlohmann::json devices = nlohmann::json::array();
  for (const Row& row : device_rows()) {
    nlohmann::json device;
    for (std::size_t i = 0; i < row.size(); ++i) device[headings[i]] = row[i];
    devices.push_back(device);
  }
  nlohmann::json all = {{"devices", devices}};
  if (!reel::cuda::is_available()) all["why_no_cuda"] = reel::cuda::why_not();
  print_json(all);
}

void print_devices() {
  std::vector<std::vector<std::string>> rows{{headings.begin(), headings.end()}};
  for (const Row& row : device_rows()) rows.emplace_back(row.begin(), row.end());
  print_table(rows);
  if (!reel::cuda::is_available()) print("\nThere is no CUDA device: {}.\n", reel::cuda::why_not());
}

}  // namespace

std::function<int()> add_devices(CLI::App& command) {
  auto as_json = std::make_shared<bool>(false);
  command.add_flag("--json", *as_json, "prints JSON");
  return [as_json] {
    *as_json ? print_as_json() : print_devices();
    return 0;
  };
}
