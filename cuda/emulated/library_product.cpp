#include "../libraries/library_product.h"

namespace reel::detail::inline REEL_TARGET {

bool multiply_by_library(const View&, const View&, const View&, bool) { return false; }
bool multiply_by_library(const View&, const View&, const View&, const void*) { return false; }

}  // namespace reel::detail::inline REEL_TARGET
