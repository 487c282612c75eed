#pragma once

#include <cstdint>

namespace reel::detail {

/// Loops of fewer iterations of about a nanosecond stay on the calling thread: see "Thread pool" in the benchmark's page.
inline constexpr std::int64_t parallel_grain = 1 << 15;

namespace parallel {

/// Calls body(state, begin, end) for pieces that make up [0, count), on up to as many threads as OpenMP is set to; each
/// piece but the last has a multiple of `grain` iterations. An exception of a piece is rethrown here. A loop within a
/// loop, or while another thread's loop uses the helper threads, runs on the calling thread.
void run(std::int64_t count, std::int64_t grain, void (*body)(void* state, std::int64_t begin, std::int64_t end),
         void* state);

/// The largest number of threads of a loop.
int threads();

/// Returns true if a loop of some 10 µs would gain from helper threads: only if they need not be woken for it.
bool can_share_short_loops();

}  // namespace parallel

/// Calls body(begin, end) for pieces that make up [0, count), some concurrently. The body's results must not depend on
/// where the pieces begin: they are equal for any number of threads.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, Body body) {
  if (count <= grain) {
    if (count > 0) body(std::int64_t{0}, count);
    return;
  }
  parallel::run(
      count, grain, [](void* state, std::int64_t begin, std::int64_t end) { (*static_cast<Body*>(state))(begin, end); },
      &body);
}

}  // namespace reel::detail
