#pragma once

#include <string_view>
#include <vector>

#include "report.h"

namespace reel_bench {

struct Compared {
  bool any;    ///< whether a name contained the filter
  int missed;  ///< goals
  int wrong;   ///< results that are not what they should be
};

/// Compares the models whose names contain `filter`, prints each result, and appends it.
Compared compare_models(std::string_view filter, const std::vector<int>& thread_counts, std::vector<Finding>& findings);

}  // namespace reel_bench
