#include "parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

// GNU OpenMP by name, as in onednn.h: oneDNN's own threads are used, so that no others stand in their way.
extern "C" {
int omp_get_max_threads();
int omp_get_thread_num();
int omp_in_parallel();
void GOMP_parallel(void (*body)(void* state), void* state, unsigned thread_count, unsigned flags);
}

namespace reel::detail::parallel {
namespace {

// One thread's part of a loop. Who is done with their own goes on with what is left of the others': a thread that sleeps,
// or whose processor another process holds, then keeps nobody waiting. Parts stay the same from loop to loop, so that
// elements stay in the cache of the processor that worked on them.
struct alignas(64) Part {
  std::atomic<std::int64_t> next;
  std::int64_t end;
};
constexpr std::int64_t most_parts = 64;

struct Region {
  std::int64_t step;  // taken at a time
  std::int64_t part_count;
  void (*body)(void* state, std::int64_t begin, std::int64_t end);
  void* state;
  std::mutex mutex;
  std::exception_ptr failure;
  Part parts[most_parts];
};

void work_on(Region& region, Part& part) {
  while (true) {
    std::int64_t begin = part.next.fetch_add(region.step, std::memory_order_relaxed);
    if (begin >= part.end) return;
    region.body(region.state, begin, std::min(begin + region.step, part.end));
  }
}

void run_part(void* argument) {
  auto& region = *static_cast<Region*>(argument);
  std::int64_t own = omp_get_thread_num();
  try {
    for (std::int64_t i = 0; i < region.part_count; ++i) work_on(region, region.parts[(own + i) % region.part_count]);
  } catch (...) {
    std::lock_guard lock(region.mutex);
    if (!region.failure) region.failure = std::current_exception();
  }
}

}  // namespace

int threads() { return omp_in_parallel() ? 1 : omp_get_max_threads(); }

void run(std::int64_t count, std::int64_t grain, void (*body)(void* state, std::int64_t begin, std::int64_t end),
         void* state) {
  std::int64_t grains = (count + grain - 1) / grain;
  std::int64_t wanted = std::min<std::int64_t>({threads(), grains, most_parts});
  if (wanted <= 1) return body(state, 0, count);
  constexpr std::int64_t steps = 4;  // of a part
  std::int64_t step = std::max<std::int64_t>(grains / (wanted * steps), 1) * grain;
  Region region{.step = step, .part_count = wanted, .body = body, .state = state};
  for (std::int64_t i = 0; i < wanted; ++i) {
    region.parts[i].next.store(grains * i / wanted * grain, std::memory_order_relaxed);
    region.parts[i].end = std::min(grains * (i + 1) / wanted * grain, count);
  }
  GOMP_parallel(run_part, &region, static_cast<unsigned>(wanted), 0);
  if (region.failure) std::rethrow_exception(region.failure);
}

}  // namespace reel::detail::parallel
