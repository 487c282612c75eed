#include "../runtime/ranges.h"

namespace reel::detail::inline REEL_TARGET {

namespace {

thread_local constinit int open_ranges = 0;

}  // namespace

int begin_range(const char*) noexcept { return open_ranges++; }
void end_range() noexcept { --open_ranges; }

}  // namespace reel::detail::inline REEL_TARGET
