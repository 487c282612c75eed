#pragma once

#include <functional>
#include <string>
#include <vector>

namespace reel_bench {

/// One thing to measure. `run` does it once and returns the nanoseconds of the part that counts, which is also what
/// lies within the function of that name when instructions are counted.
struct Case {
  std::string group, name;
  int operations;  ///< by which time and instructions are divided
  double goal;     ///< nanoseconds per operation that it must not exceed; 0: none
  std::function<double()> run;
  const char* beside = nullptr;  ///< a case before it in the group: then the goal is a multiple of what that takes
  double instructions = 0;       ///< per operation that it must not exceed; 0: no goal
};

/// The cases of `op_overhead`: the cost of one elementwise op on 64 f32 beyond its arithmetic.
std::vector<Case> op_overhead();

/// The cases of `tape`: the cost of an entry as tapes grow, and the gain of deferred products.
std::vector<Case> tape();

/// The cases of `optim`: a step of Adam, per element.
std::vector<Case> optim();

/// The cases of `data`: a short record from a loader, in batches.
std::vector<Case> data_loading();

/// The cases of `files`: summing 1 GiB of a mapped file, per element.
std::vector<Case> files();

/// The cases of `logging`: a number, and an element of a histogram.
std::vector<Case> logs();

/// The cases of `debug`: an op and an LSTM in a loop, plain, profiled and recorded.
std::vector<Case> debugging();

/// The cases of `models`: whole workloads.
std::vector<Case> models();

}  // namespace reel_bench
