// Times ops on a GPU; pytorch.py times PyTorch's ops, and tools/gpu-check compares the two.

#include <reel/reel.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "cases.h"
#include "on_device.h"

namespace {

using namespace reel;
using namespace reel_bench;
using Clock = std::chrono::steady_clock;

struct Settings {
  std::string device = "cuda", filter, json;
  std::vector<std::string> only;
  double seconds = 0;
  bool lists = false, runs_once = false;
};

std::vector<CudaCase> chosen_cases(const Settings& settings) {
  Device device = settings.device == "cuda" ? Device{Device::Type::cuda, 0} : cpu;
  std::vector<CudaCase> chosen;
  auto is_asked_for = [&](const std::string& name) {
    return settings.only.empty() || std::find(settings.only.begin(), settings.only.end(), name) != settings.only.end();
  };
  for (auto* family : {chain_cases, matmul_cases, convolution_cases, recurrent_cases, layer_cases, graph_cases})
    for (CudaCase& one : family(device))
      if (is_asked_for(one.name) && one.name.find(settings.filter) != std::string::npos)
        chosen.push_back(std::move(one));
  for (const std::string& name : settings.only)
    if (std::none_of(chosen.begin(), chosen.end(), [&](const CudaCase& one) { return one.name == name; }))
      throw std::invalid_argument("there is no case " + name);
  return chosen;
}

// A case that fails does not stop the others.
nlohmann::json measure(const CudaCase& one, Device device, bool runs_once) {
  nlohmann::json entry{{"family", one.family}, {"name", one.name}, {"work", one.work}};
  TF32 scope(one.tf32);
  try {
    std::function<void()> run = one.prepare();
    if (runs_once) {
      run();
      synchronise(device);
      fmt::print("{}: runs\n", one.name);
    } else {
      CudaTimes times = time_of(run, [=] { synchronise(device); });
      for (double* time : {&times.low, &times.median, &times.high}) *time /= one.operations;
      entry["microseconds"] = {times.low, times.median, times.high};
      fmt::print("{:<76}{:>12.2f} us\n", one.name, times.median);
    }
  } catch (const std::exception& error) {
    entry["error"] = error.what();
    fmt::print("{}: FAILED: {}\n", one.name, error.what());
  }
  std::fflush(stdout);
  return entry;
}

int run(const Settings& settings) {
  std::vector<CudaCase> cases = chosen_cases(settings);
  if (settings.lists) {
    for (const CudaCase& one : cases) fmt::print("{}\n", one.name);
    return 0;
  }
  Device device = settings.device == "cuda" ? Device{Device::Type::cuda, 0} : cpu;
  synchronise(device);  // throws where there is no device
  auto start = Clock::now();
  nlohmann::json entries = nlohmann::json::array();
  bool failed = false;
  for (const CudaCase& one : cases) {
    if (settings.seconds > 0 && std::chrono::duration<double>(Clock::now() - start).count() > settings.seconds) {
      fmt::print("the time is up: {} of {} cases were measured\n", entries.size(), cases.size());
      break;
    }
    entries.push_back(measure(one, device, settings.runs_once));
    failed = failed || entries.back().contains("error");
  }
  if (!settings.json.empty()) std::ofstream(settings.json) << nlohmann::json{{"cases", entries}}.dump(1) << '\n';
  return failed ? 1 : 0;
}

}  // namespace

int main(int count, char** values) {
  Settings settings;
  CLI::App app("Times ops on a GPU, one after the other", "reel_cuda_bench");
  app.add_option("--device", settings.device, "where to run: cuda, or cpu to try the cases")
      ->check(CLI::IsMember({"cuda", "cpu"}));
  app.add_option("--filter", settings.filter, "only cases whose name contains this");
  app.add_option("--only", settings.only, "only the case of this name, and those of further --only")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--json", settings.json, "also write the times to this file");
  app.add_option("--seconds", settings.seconds, "start no case after so many");
  app.add_flag("--list", settings.lists, "only print the names of the cases");
  app.add_flag("--once", settings.runs_once, "run each case once, without timing it");
  CLI11_PARSE(app, count, values);
  try {
    return run(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "reel_cuda_bench: {}\n", error.what());
    return 2;
  }
}
