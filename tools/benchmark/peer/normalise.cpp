#include "cases.h"

namespace reel_bench {

std::vector<PeerEntry> normalise_cases() { return {}; }

}  // namespace reel_bench
