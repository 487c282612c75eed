#include "../libraries/library_sparse.h"

namespace reel::detail {
inline namespace REEL_TARGET {

bool library_sparse_product(const View&, const View&, const View&, const RowPattern&) { return false; }

}  // namespace REEL_TARGET
}  // namespace reel::detail
