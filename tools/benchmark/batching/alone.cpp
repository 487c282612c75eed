#include "compare.h"

extern "C" {
void omp_set_num_threads(int count);
}

namespace reel_bench {

void set_library_threads(int count) { omp_set_num_threads(count); }

std::optional<PeerTrees> peer_trees() { return {}; }

}  // namespace reel_bench
