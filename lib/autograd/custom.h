#pragma once

#include <string_view>

namespace reel::detail {

/// Returns true if a user-defined op of this name has run in this process.
bool is_custom_op(std::string_view name);

}  // namespace reel::detail
