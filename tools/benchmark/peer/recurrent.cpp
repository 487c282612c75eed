#include "cases.h"

namespace reel_bench {

std::vector<PeerEntry> recurrent_cases() { return {}; }

}  // namespace reel_bench
