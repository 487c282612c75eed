#pragma once

#include <string>
#include <vector>

#include "timing.h"

namespace reel_bench {

/// What was found about one case with one number of threads.
struct Finding {
  std::string group, name;
  int threads;                 ///< 0: in processes of their own
  const char* unit;            ///< of `ours` and `theirs`
  Times ours, theirs, ratios;  ///< ratios below 1 are in our favour, whatever the unit
  double goal = 0;             ///< of the ratio's median; 0: none
  bool slower = false;         ///< than with one thread
  double elsewhere = 0;        ///< what DyNet's ratio is said to be; 0: nothing

  bool met() const { return goal == 0 || median(ratios) <= goal; }
};

/// The name that the processor has for itself.
std::string processor_name();

/// Writes what was found, all of it or, if that fails, nothing. Returns whether it could.
bool write_report(const std::string& path, const std::vector<Finding>& findings);

}  // namespace reel_bench
