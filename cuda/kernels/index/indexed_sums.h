#pragma once

#include "../../libraries/sort_pairs.h"
#include "index_pairs.h"

// Sums over equal indices of a list. They are formed in an order that depends on the list alone.

namespace reel::detail::inline REEL_TARGET {

/// out += listed at the indices; see index_pairs.h.
void add_pairs(const View& out, const View& listed, const View& index, IndexAxes axes);

/// out[keys[p]] += listed[numbers[p]] for `count` rows of both, with ascending keys; keys beyond out's rows are
/// skipped.
void add_sorted_rows(const View& out, const View& listed, KeyedNumbers sorted, std::int64_t count);

}  // namespace reel::detail::inline REEL_TARGET
