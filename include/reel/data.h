#pragma once

/// \namespace reel::data
/// Readers of data, datasets, mini-batches in an order that can be continued, and vocabularies.

// reel.h does not include this header: in a program that has a function `data` of its own, and `using namespace reel`, the
// name of the namespace would make the function's ambiguous.

#include <reel/data/conll.h>
#include <reel/data/csv.h>
#include <reel/data/dataset.h>
#include <reel/data/idx.h>
#include <reel/data/image.h>
#include <reel/data/loader.h>
#include <reel/data/reading.h>
#include <reel/data/segments.h>
#include <reel/data/source.h>
#include <reel/data/trees.h>
#include <reel/data/vocabulary.h>
