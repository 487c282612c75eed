#include "sweep.h"

extern "C" {
void omp_set_num_threads(int count);
}

namespace reel_bench {

void set_library_threads(int count) { omp_set_num_threads(count); }

std::optional<Runnable> peer_call(const Case&, const std::vector<reel::Tensor>&, const std::vector<std::size_t>&,
                                  const reel::Tensor&) {
  return {};
}
std::string peer_name() { return {}; }
void limit_peer(const std::string&) {}

}  // namespace reel_bench
