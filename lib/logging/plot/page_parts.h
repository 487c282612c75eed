#pragma once

#include <string_view>

namespace reel::logging {

/// The style sheet of a page of plots.
extern const std::string_view page_style;
/// The script of a page of plots: smoothing, scales, and the values below the pointer. Without it the page shows its
/// curves.
extern const std::string_view page_script;

}  // namespace reel::logging
