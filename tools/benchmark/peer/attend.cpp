#include "cases.h"

namespace reel_bench {

std::vector<PeerEntry> attend_cases() { return {}; }

}  // namespace reel_bench
