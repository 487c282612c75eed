#pragma once

#include <string>
#include <vector>

#include "timing.h"

namespace reel_bench {

/// The result of one case with one thread count.
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

/// The processor's model name.
std::string processor_name();

/// Writes all results or, if that fails, none. Returns true on success.
bool write_report(const std::string& path, const std::vector<Finding>& findings);

}  // namespace reel_bench
