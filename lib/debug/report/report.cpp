#include <reel/debug/report.h>

#include <filesystem>
#include <utility>

#include <reel/debug/diff.h>
#include <reel/debug/recorded_run.h>

#include "../../core/op_error.h"
#include "../../io/atomic_file.h"
#include "page.h"
#include "run_json.h"

namespace reel::debug {

namespace {

// The recordings of a report.
struct Runs {
  std::vector<RecordedRun> recordings;
  nlohmann::ordered_json data = nlohmann::ordered_json::array();  // of the recordings
  std::string names;                                              // for the title
  std::vector<std::string> logs;
};

Runs read_runs(std::span<const std::string> paths, const ReportOptions& options, Location where) {
  Runs runs;
  for (const std::string& path : paths) {
    runs.names += (runs.names.empty() ? "" : ", ") + path;
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
      runs.logs.push_back(path);
      continue;
    }
    runs.recordings.push_back(RecordedRun::read(path, where));
    runs.data.push_back(json_of(runs.recordings.back(), path, options.source_folders));
  }
  return runs;
}

}  // namespace

void report(std::span<const std::string> runs, const std::string& file, const ReportOptions& options, Location where) {
  if (runs.empty()) detail::fail<Error>("debug::report", where, "there is no run to report on");
  Runs read = read_runs(runs, options, where);
  if (read.logs.size() > 1)
    detail::fail<Error>("debug::report", where,
                        "there are {} folders of logs; name the folder around them, whose page shows them together",
                        read.logs.size());
  PageContents contents{.title = options.title.empty() ? read.names : options.title, .runs = std::move(read.data)};
  if (read.recordings.size() > 1) contents.difference = to_string(diff(read.recordings[0], read.recordings[1]));
  if (!read.logs.empty()) contents.logs = read.logs[0];
  std::string page = page_of(contents, where);
  io::AtomicFile output("debug::report", file, where);
  output.write(std::as_bytes(std::span(page)));
  output.commit();
}

}  // namespace reel::debug
