#pragma once

#include <string>
#include <string_view>

#include <reel/location.h>

namespace reel::logging {

/// The style sheet of a page of plots.
extern const std::string_view page_style;
/// The script of a page of plots: smoothing, scales, and the values below the pointer. Without it the page shows its
/// curves.
extern const std::string_view page_script;
/// The functions by which charts are zoomed into, for `page_script` and for the scripts of reports; to be before them.
extern const std::string_view zoom_script;

/// The parts of a page of plots: HTML, and the JSON of an element `data` that its script reads.
struct PlotParts {
  std::string header, main, footer, data;
};

/// The parts of the page of a folder of logs, for another page that shows them. Throws: FileError if there are no logs.
PlotParts plot_parts(const std::string& directory, Location where);

}  // namespace reel::logging
