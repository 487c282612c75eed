#include "parallel.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

#include <reel/threads.h>

#include "../op_error.h"
#include "divided_loops.h"
#include "floating_point_mode.h"
#include "openmp.h"
#include "waiting.h"

// A thread pool of our own beside oneDNN's: an OpenMP region ends when every thread has come and gone, so it waits for
// one that sleeps or has no processor, 100 µs and more on a virtual machine, while here the caller continues without
// it. Loops are bound by the time in which a helper wakes: see "Thread pool" in tools/benchmark/README.md.

namespace reel {
namespace detail::parallel {
namespace {

// One thread's part of a loop. A thread that has finished its own part continues with the remainder of the others'.
// Parts are the same from loop to loop, so that elements stay in the cache of the processor that worked on them.
struct alignas(64) Part {
  std::atomic<std::int64_t> next;
  std::int64_t end;
};
constexpr std::int64_t most_parts = 64;

struct Region {
  std::int64_t step;  // the iterations taken at a time
  std::int64_t part_count;
  void (*body)(void* state, std::int64_t begin, std::int64_t end);
  void* state;
  FloatingPointMode mode;
  std::atomic<std::int64_t> joined = 0;  // the number of helpers
  std::mutex mutex = {};
  std::exception_ptr failure = {};
  Part parts[most_parts] = {};
};

std::int64_t work_on(Region& region, Part& part) {
  std::int64_t done = 0;
  while (true) {
    std::int64_t begin = part.next.fetch_add(region.step, std::memory_order_relaxed);
    if (begin >= part.end) return done;
    std::int64_t end = std::min(begin + region.step, part.end);
    region.body(region.state, begin, end);
    done += end - begin;
  }
}

// Works through all parts, beginning with the thread's own; returns the number of iterations done.
std::int64_t work(Region& region, std::int64_t own) {
  std::int64_t done = 0;
  try {
    for (std::int64_t i = 0; i < region.part_count; ++i)
      done += work_on(region, region.parts[(own + i) % region.part_count]);
  } catch (...) {
    std::lock_guard lock(region.mutex);
    if (!region.failure) region.failure = std::current_exception();
  }
  return done;
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

using Clock = std::chrono::steady_clock;

// Spins without sleeping, since waking takes longer than the wait for most loops. Returns false after the time limit.
template <class Condition>
bool spin_until(Condition condition) {
  Clock::time_point end = Clock::now() + std::chrono::microseconds(20);
  do {
    for (int i = 0; i < 32; ++i) {
      if (condition()) return true;
      pause();
    }
  } while (Clock::now() < end);
  return condition();
}

// The helper threads, and the one loop at a time that they may join. It lives as long as the process, as do the
// helpers.
//
// Calling a helper has a cost, which is lost if the helper comes late, or not at all because other processes use the
// processors; and a helper that loses its processor in the middle of an iteration delays the loop by milliseconds.
// After a loss, loops run without helpers until they have taken `loops_per_loss` times as long, so that losses stay
// below 4 %.
class Pool {
 public:
  /// Returns true if a helper is working or still spinning. One call in 64 returns true anyway, so that many short
  /// loops in a row wake a helper eventually.
  bool is_awake() {
    return awake_.load(std::memory_order_relaxed) > 0 ||
           short_loops_.fetch_add(1, std::memory_order_relaxed) % 64 == 63;
  }

  /// Returns true if losses must be made up for before helpers are called again.
  bool rests() const { return owed_.load(std::memory_order_relaxed) > 0; }
  void made_up(Clock::duration loop) { owed_.fetch_sub(loop.count(), std::memory_order_relaxed); }

  /// Calls the helpers. Returns false if another loop uses them.
  bool open(Region& region) {
    if (busy_.test_and_set(std::memory_order_acquire)) return false;
    add_helpers(region.part_count - 1);
    Clock::time_point called = Clock::now();
    caller_processor_.store(sched_getcpu(), std::memory_order_relaxed);
    region_.store(&region);
    call_.fetch_add(1);
    call_.notify_all();
    begun_ = Clock::now();
    cost_ = begun_ - called;
    return true;
  }
  /// Ends a loop of which the caller has done `own` of `count` iterations. No helper joins any more; waits for those
  /// that have.
  void close(std::int64_t own, std::int64_t count) {
    Clock::time_point done = Clock::now();
    region_.store(nullptr);
    if (working_.load() != 0) await_helpers();
    Clock::time_point end = Clock::now();
    cost_ += end - done;
    double share = static_cast<double>(count - own) / static_cast<double>(std::max<std::int64_t>(own, 1));
    gained_ =
        std::min(gained_ - cost_ + std::chrono::duration_cast<Clock::duration>((done - begun_) * share), most_gained);
    if (gained_ < Clock::duration::zero()) {
      owe(-gained_);
      gained_ = {};
    }
    busy_.clear(std::memory_order_release);
  }

 private:
  static constexpr int loops_per_loss = 25;
  // The largest gain that is offset against later losses, and the longest time without helpers.
  static constexpr Clock::duration most_gained = std::chrono::milliseconds(5),
                                   most_owed = std::chrono::milliseconds(200);
  // The time of a context switch to another thread and back.
  static constexpr Clock::duration switches = std::chrono::microseconds(10);

  void await_helpers() {
    ObservedWait waiting("other threads of a loop");
    if (spin_until([this] { return working_.load() == 0; })) return;
    for (int working = working_.load(); working != 0; working = working_.load()) working_.wait(working);
  }

  void owe(Clock::duration loss) {
    owed_.store(std::min(loss * loops_per_loss, most_owed).count(), std::memory_order_relaxed);
  }

  void add_helpers(std::int64_t wanted) {
    try {
      for (; helper_count_ < wanted; ++helper_count_) std::thread([this, call = call_.load()] { help(call); }).detach();
    } catch (const std::exception&) {
      // The pool continues with fewer helpers.
    }
  }

  [[noreturn]] void help(int answered) {
    bool beside_caller = true;  // on another processor than the caller
    awake_.fetch_add(1, std::memory_order_relaxed);
    while (true) {
      if (!beside_caller || !spin_until([&] { return call_.load(std::memory_order_relaxed) != answered; })) {
        awake_.fetch_sub(1, std::memory_order_relaxed);
        call_.wait(answered);
        awake_.fetch_add(1, std::memory_order_relaxed);
      }
      answered = call_.load();
      beside_caller = sched_getcpu() != caller_processor_.load(std::memory_order_relaxed);
      if (beside_caller)
        join();
      else
        owe(switches);
    }
  }

  void join() {
    // Counted before the region is read, so that close() waits for every helper that has seen the region.
    working_.fetch_add(1);
    if (Region* region = region_.load()) {
      std::int64_t own = region->joined.fetch_add(1) + 1;
      if (own < region->part_count) {
        if (floating_point_mode() != region->mode) set_floating_point_mode(region->mode);
        work(*region, own);
      }
    }
    if (working_.fetch_sub(1) == 1) working_.notify_all();
  }

  std::atomic_flag busy_;
  std::atomic<Clock::rep> owed_ = 0;
  // Valid while a loop is open; used by its caller only.
  std::int64_t helper_count_ = 0;
  Clock::time_point begun_;
  Clock::duration cost_{}, gained_{};

  std::atomic<Region*> region_ = nullptr;
  std::atomic<int> caller_processor_ = -1, awake_ = 0;
  std::atomic<unsigned> short_loops_ = 0;
  alignas(64) std::atomic<int> call_ = 0;
  alignas(64) std::atomic<int> working_ = 0;
};

thread_local constinit std::int64_t divided = 0;

// A forked process has none of its parent's threads, and makes its own. Null if memory is exhausted: a loop then runs
// without helpers, because it may be part of an operation that cannot be undone.
Pool* pool() noexcept {
  static constinit std::atomic<Pool*> current = nullptr;
  [[maybe_unused]] static const int handled = pthread_atfork(nullptr, nullptr, [] { current = nullptr; });
  if (Pool* found = current.load(std::memory_order_acquire)) return found;
  std::unique_ptr<Pool> made(new (std::nothrow) Pool);
  Pool* there = nullptr;
  return current.compare_exchange_strong(there, made.get()) ? made.release() : there;
}

}  // namespace

bool can_share_short_loops() {
  if (threads() <= 1) return false;
  Pool* helpers = pool();
  return helpers && helpers->is_awake();
}

int threads() { return omp_in_parallel() ? 1 : omp_get_max_threads(); }

std::int64_t divided_loops() { return divided; }

void run(std::int64_t count, std::int64_t grain, void (*body)(void* state, std::int64_t begin, std::int64_t end),
         void* state) {
  // Rounded, so that no thread gets much less than a grain.
  std::int64_t wanted = std::min<std::int64_t>({threads(), (count + grain / 2) / grain, most_parts});
  if (wanted <= 1) return body(state, 0, count);
  ++divided;
  constexpr std::int64_t steps = 4;  // of a part
  const std::int64_t step = std::max<std::int64_t>((count + grain - 1) / grain / (wanted * steps), 1) * grain;
  Pool* helpers = pool();
  if (!helpers) return body(state, 0, count);
  // A long loop soon makes up for a small loss, and continues with helpers.
  std::int64_t done = 0;
  while (done < count && helpers->rests()) {
    Clock::time_point start = Clock::now();
    std::int64_t end = std::min(done + step, count);
    body(state, done, end);
    done = end;
    helpers->made_up(Clock::now() - start);
  }
  const std::int64_t left = count - done, grains = (left + grain - 1) / grain;
  if (left == 0) return;
  Region region{.step = step, .part_count = wanted, .body = body, .state = state, .mode = floating_point_mode()};
  for (std::int64_t i = 0; i < wanted; ++i) {
    region.parts[i].next.store(done + grains * i / wanted * grain, std::memory_order_relaxed);
    region.parts[i].end = std::min(done + grains * (i + 1) / wanted * grain, count);
  }
  if (!helpers->open(region)) return body(state, done, count);
  std::int64_t own = work(region, 0);
  helpers->close(own, left);
  if (region.failure) std::rethrow_exception(region.failure);
}

}  // namespace detail::parallel

int thread_count() { return omp_get_max_threads(); }

void set_thread_count(int count, Location where) {
  if (count < 1) detail::fail<Error>("set_thread_count", where, "at least one thread is needed, not {}", count);
  omp_set_num_threads(count);
}

}  // namespace reel
