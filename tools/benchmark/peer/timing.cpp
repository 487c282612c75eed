#include "timing.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace reel_bench {

namespace {

double read(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

cpu_set_t own_processors() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  return set;
}

}  // namespace

Duration Stopwatch::now() { return {read(CLOCK_MONOTONIC), read(CLOCK_THREAD_CPUTIME_ID)}; }

Duration Stopwatch::elapsed() const {
  Duration end = now();
  return {end.wall - start_.wall, end.thread - start_.thread};
}

BusyProcess::BusyProcess() : child_(fork()) {
  if (child_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  cpu_set_t all = own_processors(), last;
  CPU_ZERO(&last);
  for (int processor = CPU_SETSIZE - 1; processor >= 0 && CPU_COUNT(&last) == 0; --processor)
    if (CPU_ISSET(processor, &all)) CPU_SET(processor, &last);
  sched_setaffinity(0, sizeof last, &last);
  for (volatile int i = 0;;) i = i + 1;
}

BusyProcess::~BusyProcess() {
  if (child_ <= 0) return;
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

void use_threads(int count) {
  static const cpu_set_t all = own_processors();
  cpu_set_t chosen = all;
  if (count == 1) {
    CPU_ZERO(&chosen);
    for (int processor = 0; processor < CPU_SETSIZE && CPU_COUNT(&chosen) == 0; ++processor)
      if (CPU_ISSET(processor, &all)) CPU_SET(processor, &chosen);
  }
  sched_setaffinity(0, sizeof chosen, &chosen);
  set_library_threads(count);
}

// The warm-up lasts 20 ms: OpenMP restarts threads when their number has changed, and an idle processor,
// above all a virtual one, takes milliseconds to wake up. For runs of 100 ms this is negligible.
Duration time_of(const std::function<void()>& run, const Repeats& repeats) {
  for (Stopwatch warming; repeats.warms && warming.elapsed().wall < 20;) run();
  Stopwatch watch;
  for (int i = 0; i < repeats.times; ++i) run();
  Duration took = watch.elapsed();
  return {took.wall / repeats.times, took.thread / repeats.times};
}

Repeats repeats_of(const std::function<void()>& run) {
  double each = time_of(run, {1, true}).wall;
  return {std::clamp(static_cast<int>(20 / each), 1, 10000), each < 100};
}

void Measured::add(const Duration& one, int threads) {
  wall.push_back(one.wall);
  fair.push_back(threads == 1 ? one.thread : one.wall);
}

bool slower_than_one(const Measured& more, const Measured& one, double most) {
  return median(divided(more.wall, one.wall)) > most;
}

double quartile(std::vector<double> values, std::size_t quarters) {
  auto place = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) * quarters / 4);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

Times divided(const Times& a, const Times& b) {
  Times ratios;
  for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  return ratios;
}

}  // namespace reel_bench
