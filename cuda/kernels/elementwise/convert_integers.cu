#include "convert.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void convert_to_integers(const View& out, const View& x) {
  with_integer(out.dtype, [&]<class To>(std::type_identity<To>) { convert_elements_to<To>(out, x); });
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
