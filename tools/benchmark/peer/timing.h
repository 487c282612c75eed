#pragma once

#include <functional>
#include <vector>

namespace reel_bench {

/// How many times each side runs with each number of threads; odd.
inline constexpr int rounds = 15;

/// One side's times with one number of threads, a round each.
using Times = std::vector<double>;

/// From now on both libraries use so many threads: one stays on one processor, several have all that the process was given.
void use_threads(int count);

/// While it lives another process keeps one of this one's processors busy.
class BusyProcess {
 public:
  BusyProcess();
  ~BusyProcess();
  BusyProcess(const BusyProcess&) = delete;
  BusyProcess& operator=(const BusyProcess&) = delete;

 private:
  int child_;
};

/// Milliseconds of the clock on the wall, and of this thread on a processor.
struct Duration {
  double wall, thread;
};

/// Measures from when it is made.
class Stopwatch {
 public:
  Stopwatch() : start_(now()) {}
  Duration elapsed() const;

 private:
  static Duration now();
  Duration start_;
};

/// How often something runs in a round, and whether others that do not count come first.
struct Repeats {
  int times;
  bool warms;
};

/// One run, averaged over all.
Duration time_of(const std::function<void()>& run, const Repeats& repeats);

/// What takes about 20 ms.
Repeats repeats_of(const std::function<void()>& run);

/// What a number of threads took, a round each.
struct Measured {
  Times wall;
  /// That of the thread where there is only one, so that others on the machine do not count; else that of the wall.
  Times fair;

  void add(const Duration& one, int threads);
};

/// Whether more threads take more than so many times what one takes.
bool slower_than_one(const Measured& more, const Measured& one, double most);

/// The value below which so many quarters of the values lie; 2: the median.
double quartile(std::vector<double> values, std::size_t quarters);
inline double median(const std::vector<double>& values) { return quartile(values, 2); }

/// a / b, round by round.
Times divided(const Times& a, const Times& b);

}  // namespace reel_bench
