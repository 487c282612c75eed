#pragma once

#include <span>
#include <string>
#include <vector>

#include <reel/location.h>

namespace reel::debug {

/// Options of `report`.
struct ReportOptions {
  /// The title of the page; empty: the names of the runs. Default empty.
  std::string title = {};
  /// Folders in which source files are searched that the recording does not hold, beside the current one. Links and
  /// hidden files below them, and files of more than 4 MB, are not read.
  std::vector<std::string> source_folders = {};
};

/// Writes one HTML page about recordings and folders of logs, which needs nothing else: no network, and no other file.
/// It steps through the ops of a recording with source lines and values, shows the graph folded by modules and loops,
/// gradient norms over time steps and of parameters, dead units, times and memory by line, and the curves and pictures
/// of logs; of two recordings also the first difference. `runs`: files of recordings, and folders of logs.
/// Throws: FileError for a run that cannot be read, and if the page cannot be written; Error without a run.
void report(std::span<const std::string> runs, const std::string& file, const ReportOptions& options = {},
            Location where = Location::here());

/// Writes one HTML page about a recording or a folder of logs, which needs nothing else: no network, and no other file.
/// Throws: FileError for a run that cannot be read, and if the page cannot be written.
inline void report(const std::string& run, const std::string& file, const ReportOptions& options = {},
                   Location where = Location::here()) {
  report(std::span(&run, 1), file, options, where);
}

}  // namespace reel::debug
