#include "../libraries/library_sparse.h"

namespace reel::detail::inline REEL_TARGET {

bool library_sparse_product(const View&, const View&, const View&, const RowPattern&) { return false; }

}  // namespace reel::detail::inline REEL_TARGET
