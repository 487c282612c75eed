#pragma once

#include <functional>
#include <map>
#include <string>

#include "ops/table/table.h"

namespace reel_test {

/// Bounds of the errors of the inputs' gradients, in units in the last place of 1, where `seed` is the gradient of the
/// result: by an analysis of each rounding on the way. Empty if there are none for these inputs.
using GradientErrors = std::function<Arrays(const Arrays& x, const Attributes& attributes, const Array& seed)>;

/// The bounds for ops whose gradients have many roundings or cancel, by the op's name.
std::map<std::string, GradientErrors> gradient_errors();

}  // namespace reel_test
