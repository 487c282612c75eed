#pragma once

#include <string>

namespace reel_bench {

/// The version of the libtorch that this program is compiled with, such as "1.13.0".
std::string torch_version();

/// Discards libtorch's warnings of the calling thread, which would be in the middle of a table, until the program ends.
void ignore_torch_warnings();

}  // namespace reel_bench
