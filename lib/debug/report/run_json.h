#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <reel/debug/recorded_run.h>
#include <nlohmann/json_fwd.hpp>

namespace reel::debug {

/// The data of a run for the scripts of a report: texts once, a column for each field of the ops, statistics,
/// some values, norms of updates, histograms of kept values, and source lines of the files that can be read.
nlohmann::ordered_json json_of(const RecordedRun& run, std::string_view name,
                               const std::vector<std::string>& source_folders);

/// Histograms of the kept values, by lines: a list of `[line,low,high,[count,…]]`.
nlohmann::ordered_json histograms_json(const RecordedRun& run);

}  // namespace reel::debug
