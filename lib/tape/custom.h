#pragma once

#include <string_view>

namespace reel::detail {

/// Whether a user's op of this name has run in this process.
bool is_custom_op(std::string_view name);

}  // namespace reel::detail
