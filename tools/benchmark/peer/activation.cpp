#include "cases.h"

namespace reel_bench {

std::vector<PeerEntry> activation_cases() { return {}; }

}  // namespace reel_bench
