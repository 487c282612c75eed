#pragma once

#include <cstdint>

namespace reel::detail::parallel {

/// The number of loops that the calling thread has divided into pieces for several threads, since it started. A test that
/// compares numbers of threads sees by it that there was something to divide.
std::int64_t divided_loops();

}  // namespace reel::detail::parallel
