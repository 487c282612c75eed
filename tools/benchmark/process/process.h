#pragma once

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

// What programs that are measured from outside have in common: they do one thing and print the most memory that they had.

namespace reel_bench {

/// The most bytes of memory that this program has had, as Linux counts them; of a process that another one started,
/// getrusage() would tell what that one had.
inline double peak_megabytes() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) * 1024 / 1e6;
  return 0;
}

/// A file beside this program, from one run to the next.
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
