#pragma once

#include <string>
#include <vector>

namespace reel_test::stand_in {

/// The graphs for which cuDNN was asked for a plan.
struct Plans {
  int asked = 0;
  std::vector<std::string> without;         ///< single operations that no engine runs
  std::vector<std::string> without_fusion;  ///< several operations that no engine runs as one
};

#pragma GCC visibility push(default)
/// The plans requested since the last call.
Plans take_plans();
#pragma GCC visibility pop

}  // namespace reel_test::stand_in
