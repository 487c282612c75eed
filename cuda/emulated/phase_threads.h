#pragma once

#include <cstddef>
#include <cstdint>

#include "../../lib/core/target.h"

#if defined(REEL_WATCHED)
#include <sanitizer/tsan_interface.h>

#include <reel/detail/immovable.h>

#include "phase_fibres.h"
#endif

// The threads of a launch. With REEL_WATCHED the code is compiled with the thread sanitizer, for which each of them is a
// thread by itself: it reports accesses of two of them to one address unless a phase ends in between.

namespace reel::detail::inline REEL_TARGET {

/// The order in which the threads of a phase run: from the first, from the last, or scattered, by turns.
class PhaseOrder {
 public:
  PhaseOrder(std::uint32_t phase, int size) : size_(static_cast<std::uint32_t>(size)) {
    // Primes that divide no number of threads: that is at most 16 times 32.
    constexpr std::uint32_t primes[] = {17, 23, 31, 41, 53, 97, 131, 241};
    if (phase % 3 == 0) return;
    stride_ = phase % 3 == 1 ? size_ - 1 : primes[phase / 3 % 8];
    first_ = phase % 3 == 1 ? size_ - 1 : phase * 7 % size_;
  }
  int thread(int place) const {
    return static_cast<int>((first_ + static_cast<std::uint32_t>(place) * stride_) % size_);
  }

 private:
  std::uint32_t size_, first_ = 0, stride_ = 1;
};

#if defined(REEL_WATCHED)

/// A launch: what its threads do comes after what was done before, and before what is done afterwards. The functions that
/// they run must not change meanwhile.
class LaunchThreads : Immovable {
 public:
  LaunchThreads() { make_fibres(); }
  ~LaunchThreads() { __tsan_acquire(&ends_); }

  /// Runs f(block, thread) as a thread of a launch without phases.
  template <class F>
  void run(const F& f, std::int64_t block, std::int64_t thread, std::int64_t threads) {
    run_task(0, static_cast<std::size_t>(block * threads + thread) % fibre_count, ends_, f, block, thread);
  }
  /// Runs f(index, 0) as the program of a group.
  template <class F>
  void run_group(const F& f, std::int64_t index) {
    run_task(index, fibre_count, ends_, f, index, 0);
  }
  /// Runs phase(thread) for all threads of a group, within its program.
  template <class Phase>
  static void run_phase(std::int64_t index, int size, const PhaseOrder& order, const Phase& phase) {
    char ends = 0;
    auto one = [&phase](std::int64_t, std::int64_t thread) { phase(static_cast<int>(thread)); };
    for (int place = 0; place < size; ++place) {
      int thread = order.thread(place);
      run_task(index, static_cast<std::size_t>(thread) % fibre_count, ends, one, 0, thread);
    }
    __tsan_acquire(&ends);
  }

 private:
  template <class F>
  static void run_task(std::int64_t group, std::size_t number, char& ends, const F& f, std::int64_t first,
                       std::int64_t second) {
    __tsan_release(const_cast<F*>(&f));
    run_on_fibre(group, number, {&call<F>, &f, &ends, first, second});
  }
  template <class F>
  static void call(const void* f, void* ends, std::int64_t first, std::int64_t second) {
    __tsan_acquire(const_cast<void*>(f));
    (*static_cast<const F*>(f))(first, second);
    __tsan_release(ends);
  }

  char ends_ = 0;
};

#else

class LaunchThreads {
 public:
  template <class F>
  void run(const F& f, std::int64_t block, std::int64_t thread, std::int64_t) {
    f(block, thread);
  }
  template <class F>
  void run_group(const F& f, std::int64_t index) {
    f(index, 0);
  }
  template <class Phase>
  static void run_phase(std::int64_t, int size, const PhaseOrder& order, const Phase& phase) {
    for (int place = 0; place < size; ++place) phase(order.thread(place));
  }
};

#endif

}  // namespace reel::detail::inline REEL_TARGET
