#pragma once

#include <reel/detail/body.h>

namespace reel::detail {

/// Makes a tensor share the storage of another one; its former storage is freed if no other tensor has it.
void replace_storage(Body& body, const Body& other) noexcept;

}  // namespace reel::detail
