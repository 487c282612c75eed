#include "convert.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void convert_elements(const View& out, const View& x) {
  if (out.dtype == DType::boolean)
    convert_elements_to<bool>(out, x);
  else if (is_floating(out.dtype))
    with_floating(out.dtype, [&]<class To>(std::type_identity<To>) { convert_elements_to<To>(out, x); });
  else
    convert_to_integers(out, x);
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
