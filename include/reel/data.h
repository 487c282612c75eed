#pragma once

/// \namespace reel::data
/// Datasets, mini-batches in an order that can be continued, and vocabularies.

// Not a part of reel.h: in a program that has a function `data` of its own, and `using namespace reel`, the name of the
// namespace would make the function's ambiguous.

#include <reel/data/dataset.h>
#include <reel/data/loader.h>
#include <reel/data/source.h>
#include <reel/data/vocabulary.h>
