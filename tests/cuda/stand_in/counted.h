#pragma once

#include <functional>
#include <string>
#include <vector>

#include "catch.h"
#include "core/device/device_module.h"
#include "cuda/stand_in/record.h"

namespace reel_test {

/// Runs f to the end of what it gives the first GPU, and checks that no call breaks a rule. Returns its calls.
inline stand_in::Counts counts_of(const std::function<void()>& f) {
  static_cast<void>(stand_in::take_violations());
  stand_in::forget_counts();
  f();
  reel::detail::device_module().synchronise(0);
  CHECK(stand_in::take_violations() == std::vector<std::string>());
  return stand_in::counts();
}

}  // namespace reel_test
