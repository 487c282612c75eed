#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report.h"

namespace reel_bench {

/// The names of the measurements in separate processes: start-up time, and memory of training steps.
std::vector<std::string> process_cases();

/// Starts reel's and libtorch's program for a measurement alternately on one processor. Returns the milliseconds from start
/// to end, and the most memory, in MB.
std::vector<Finding> compare_processes(std::string_view name);

}  // namespace reel_bench
