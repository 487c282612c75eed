#include "cases.h"

namespace reel_bench {

std::vector<PeerEntry> convolve_cases() { return {}; }

}  // namespace reel_bench
