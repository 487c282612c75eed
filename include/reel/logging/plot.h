#pragma once

#include <string>

#include <reel/location.h>

namespace reel::logging {

/// Options of `plot`.
struct PlotOptions {
  std::string title = {};  ///< of the page; default: the name of the folder
};

/// Draws the logs of a folder and all folders within it, each of which is a run, as one HTML page: scalars as curves,
/// runs with one tag in one chart; histograms as heat maps over the steps; the last pictures and texts of each tag; a
/// table of hyper-parameters. The page needs no other file and no network; its curves are SVG, which a script of its own
/// smooths and rescales where scripts are allowed.
///
///     logging::plot("runs", "curves.html");
///
/// Read are event files, or where a folder has none, log.jsonl or scalars.csv. A file that is damaged is shown up to
/// that place, and the page names it.
/// Throws: FileError if there are no logs, or the page cannot be written, in which case an older page stays.
void plot(const std::string& directory, const std::string& file = "curves.html", const PlotOptions& options = {},
          Location where = Location::here());

}  // namespace reel::logging
