#pragma once

namespace reel::detail {

/// True in libreel.a, false in libreel.so, which is made of the same objects otherwise.
extern const bool linked_statically;

}  // namespace reel::detail
