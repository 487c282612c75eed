#include "registry.h"

namespace reel::detail {

#define REEL_FAMILY(family, list) {#family, list()},

std::span<const OpFamily> registered_ops() {
  static const OpFamily families[] = {REEL_OP_LISTS(REEL_FAMILY)};
  return families;
}

}  // namespace reel::detail
