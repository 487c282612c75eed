#include "openmp.h"

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <optional>

#include "floating_point_mode.h"

extern "C" void GOMP_parallel(void (*body)(void* data), void* data, unsigned thread_count, unsigned flags);

namespace reel::detail {
namespace {

// The mode that this thread's OpenMP threads have, and their number then. New ones start with this thread's mode.
struct Shared {
  FloatingPointMode mode;
  int threads;
};
thread_local std::optional<Shared> shared;

std::atomic<bool> forked = false;
[[maybe_unused]] const int handled = pthread_atfork(nullptr, nullptr, [] { forked = true; });

}  // namespace

void share_floating_point_mode() {
  FloatingPointMode mode = floating_point_mode();
  int threads = omp_in_parallel() ? 1 : omp_get_max_threads();
  if (shared && shared->mode == mode && shared->threads == threads) return;
  // Passed by value in the pointer, not through memory: a thread sanitizer does not see that the region orders its
  // threads.
  GOMP_parallel(
      [](void* data) {
        set_floating_point_mode(static_cast<FloatingPointMode>(reinterpret_cast<std::uintptr_t>(data)));
      },
      reinterpret_cast<void*>(std::uintptr_t{mode}), 0, 0);
  shared = Shared{mode, threads};
}

void forget_openmp_mode() { shared.reset(); }

bool openmp_threads_are_lost() { return forked; }

}  // namespace reel::detail
