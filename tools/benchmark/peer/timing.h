#pragma once

#include <functional>
#include <vector>

namespace reel_bench {

/// The number of runs of each library with each thread count; odd.
inline constexpr int rounds = 15;

/// One library's times with one thread count, one per round.
using Times = std::vector<double>;

/// Sets the thread count of the libraries that a program compares. Each program defines it.
void set_library_threads(int count);

/// Sets the thread count of the libraries: one thread is bound to one processor, several use all those of the process.
void use_threads(int count);

/// Keeps one of this process's processors busy by another process, during its lifetime.
class BusyProcess {
 public:
  BusyProcess();
  ~BusyProcess();
  BusyProcess(const BusyProcess&) = delete;
  BusyProcess& operator=(const BusyProcess&) = delete;

 private:
  int child_;
};

/// Milliseconds of wall time and of this thread's processor time.
struct Duration {
  double wall, thread;
};

/// Measures from its construction on.
class Stopwatch {
 public:
  Stopwatch() : start_(now()) {}
  Duration elapsed() const;

 private:
  static Duration now();
  Duration start_;
};

/// The number of runs in a round, and whether untimed runs come first.
struct Repeats {
  int times;
  bool warms;
};

/// The time of one run, averaged over all.
Duration time_of(const std::function<void()>& run, const Repeats& repeats);

/// The repetitions that take about 20 ms.
Repeats repeats_of(const std::function<void()>& run);

/// The times with one thread count, one per round.
struct Measured {
  Times wall;
  /// Processor time for a single thread, so that other processes do not matter; else wall time.
  Times fair;

  void add(const Duration& one, int threads);
};

/// Returns true if more threads take more than `most` times the time of one.
bool slower_than_one(const Measured& more, const Measured& one, double most);

/// The quartile of the values; 2: the median.
double quartile(std::vector<double> values, std::size_t quarters);
inline double median(const std::vector<double>& values) { return quartile(values, 2); }

/// a / b, round by round.
Times divided(const Times& a, const Times& b);

}  // namespace reel_bench
