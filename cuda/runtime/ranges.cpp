#include "ranges.h"

#include <nvtx3/nvToolsExt.h>

namespace reel::detail::inline REEL_TARGET {

int begin_range(const char* name) noexcept { return nvtxRangePushA(name); }
void end_range() noexcept { nvtxRangePop(); }

}  // namespace reel::detail::inline REEL_TARGET
