#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <reel/debug/recorded_run.h>

namespace reel::debug {

/// The data of a run for the scripts of a report, as JSON: texts once, a column for each field of the ops, statistics,
/// some values, norms of updates, histograms of kept values, and source lines of the files that can be read.
std::string json_of(const RecordedRun& run, std::string_view name, const std::vector<std::string>& source_folders);

/// The items of a JSON list of histograms of the kept values, by lines: `[line,low,high,[count,…]]`.
std::string histograms_json(const RecordedRun& run);

}  // namespace reel::debug
