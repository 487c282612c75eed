#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report.h"

namespace reel_bench {

/// The names of what is measured in processes of their own: starting up, and memory of training steps.
std::vector<std::string> process_cases();

/// Starts ours and libtorch's program for one of them, alternately, on one processor. Wall milliseconds from start
/// to end, and the most memory, in MB.
std::vector<Finding> compare_processes(std::string_view name);

}  // namespace reel_bench
