#include "cases.h"

namespace reel_bench {

std::vector<PeerEntry> sparse_cases() { return {}; }

}  // namespace reel_bench
