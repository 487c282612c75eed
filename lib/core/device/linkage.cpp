#include "linkage.h"

namespace reel::detail {

const bool linked_statically = REEL_LINKED_STATICALLY;

}  // namespace reel::detail
