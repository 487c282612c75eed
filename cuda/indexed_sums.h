#pragma once

#include "index_pairs.h"
#include "sort_pairs.h"

// Sums of what several indices of a list give to one place. They are formed in an order that follows from the list alone.

namespace reel::detail {
inline namespace REEL_TARGET {

/// out += listed at the indices; see index_pairs.h.
void add_pairs(const View& out, const View& listed, const View& indices, IndexAxes axes);

/// out[keys[p]] += listed[numbers[p]] for `count` rows of both, whose keys rise; keys beyond out's rows are left out.
void add_sorted_rows(const View& out, const View& listed, KeyedNumbers sorted, std::int64_t count);

}  // namespace REEL_TARGET
}  // namespace reel::detail
