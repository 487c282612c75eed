#pragma once

#include <limits>
#include <vector>

#include "ops/table/table.h"

namespace reel_test {

inline constexpr double infinity = std::numeric_limits<double>::infinity(),
                        nan = std::numeric_limits<double>::quiet_NaN();

inline std::vector<double> values_of(const reel::Tensor& x) { return array_of(x).values; }

inline reel::Tensor doubles(const std::vector<double>& values) { return reel::tensor(values); }

}  // namespace reel_test
