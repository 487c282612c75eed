#pragma once

// Not a part of reel.h: in a program that has a function `train` of its own, and `using namespace reel`, the name of the
// namespace would make the function's ambiguous.

#include <reel/train/best_weights.h>
#include <reel/train/interruption.h>
