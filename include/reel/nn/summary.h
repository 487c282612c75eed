#pragma once

#include <string>

#include <reel/nn/module.h>

namespace reel::nn {

/// A table of a model: for each module its name and type, the shapes of its parameters, the number of their elements,
/// and the floating-point operations of its last call; below it the sums, and the number of elements that are trained.
std::string summary(const Module& model);

}  // namespace reel::nn
