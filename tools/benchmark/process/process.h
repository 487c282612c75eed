#pragma once

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

// Shared by the programs that are measured from outside: they run one task and print their peak memory.

namespace reel_bench {

/// The peak resident memory of this program in bytes, as Linux counts it; in a child process
/// getrusage() would return the parent's peak.
inline double peak_megabytes() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) * 1024 / 1e6;
  return 0;
}

/// A file beside this program that persists between runs.
inline std::string file_beside(const char* name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

struct Task {
  const char* name;
  void (*run)();
};

template <std::size_t count>
int run_task(int argument_count, char** arguments, const std::array<Task, count>& tasks) {
  for (const Task& task : tasks)
    if (argument_count == 2 && std::strcmp(arguments[1], task.name) == 0) {
      task.run();
      std::printf("%.3f\n", peak_megabytes());
      return 0;
    }
  return 2;
}

}  // namespace reel_bench
