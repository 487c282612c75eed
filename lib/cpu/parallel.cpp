#include "parallel.h"

#include <algorithm>
#include <exception>
#include <mutex>

// GNU OpenMP by name, as in onednn.h: oneDNN's own threads are used, so that no others stand in their way.
extern "C" {
int omp_get_max_threads();
int omp_get_num_threads();
int omp_get_thread_num();
int omp_in_parallel();
void GOMP_parallel(void (*body)(void* state), void* state, unsigned thread_count, unsigned flags);
}

namespace reel::detail::parallel {
namespace {

struct Region {
  std::int64_t count, grain;
  void (*body)(void* state, std::int64_t begin, std::int64_t end);
  void* state;
  std::mutex mutex;
  std::exception_ptr failure;
};

void run_part(void* argument) {
  auto& region = *static_cast<Region*>(argument);
  std::int64_t grains = (region.count + region.grain - 1) / region.grain;
  std::int64_t parts = omp_get_num_threads(), part = omp_get_thread_num();
  std::int64_t begin = grains * part / parts * region.grain;
  std::int64_t end = std::min(grains * (part + 1) / parts * region.grain, region.count);
  if (begin >= end) return;
  try {
    region.body(region.state, begin, end);
  } catch (...) {
    std::lock_guard lock(region.mutex);
    if (!region.failure) region.failure = std::current_exception();
  }
}

}  // namespace

int threads() { return omp_in_parallel() ? 1 : omp_get_max_threads(); }

void run(std::int64_t count, std::int64_t grain, void (*body)(void* state, std::int64_t begin, std::int64_t end),
         void* state) {
  std::int64_t wanted = std::min<std::int64_t>(threads(), (count + grain - 1) / grain);
  if (wanted <= 1) return body(state, 0, count);
  Region region{count, grain, body, state, {}, {}};
  GOMP_parallel(run_part, &region, static_cast<unsigned>(wanted), 0);
  if (region.failure) std::rethrow_exception(region.failure);
}

}  // namespace reel::detail::parallel
