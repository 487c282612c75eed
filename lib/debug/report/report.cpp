#include <reel/debug/report.h>

#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <reel/debug/diff.h>
#include <reel/debug/recorded_run.h>

#include "../../core/op_error.h"
#include "../../io/atomic_file.h"
#include "../../logging/plot/html.h"
#include "../../logging/plot/page_parts.h"
#include "page_parts.h"
#include "run_json.h"

namespace reel::debug {

namespace {

// What a report shows.
struct Runs {
  std::vector<RecordedRun> recordings;
  std::string json;   // the data of the recordings
  std::string names;  // for the title
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
    if (!runs.json.empty()) runs.json += ",\n";
    runs.json += json_of(runs.recordings.back(), path, options.source_folders);
  }
  return runs;
}

std::string page_of(const Runs& runs, const std::string& title, Location where) {
  std::string difference;
  if (runs.recordings.size() > 1) difference = to_string(diff(runs.recordings[0], runs.recordings[1]));
  std::string logs, script;
  if (!runs.logs.empty()) {
    logging::PlotParts parts = logging::plot_parts(runs.logs[0], where);
    logs = fmt::format("{}<main>\n{}</main>\n{}<script type=\"application/json\" id=\"data\">{}</script>\n",
                       parts.header, parts.main, parts.footer, parts.data);
    // In a function of its own, since both scripts have names of their own.
    script = fmt::format("<script>(() => {{{}}})();</script>\n", logging::page_script);
  }
  std::string recordings;
  if (!runs.recordings.empty())
    recordings = fmt::format(
        "<nav id=\"tabs\" role=\"tablist\" aria-label=\"Parts of the report\"></nav>\n<div id=\"panels\"></div>\n"
        "<pre id=\"difference\" hidden>{}</pre>\n",
        logging::html_lines(difference));
  std::string scripts;
  if (!runs.recordings.empty())
    scripts = fmt::format(
        "<script type=\"application/json\" id=\"runs\">[{}]</script>\n<script>{}{}{}{}startPanels();</script>\n",
        runs.json, report_script_run, report_script_ops, report_script_graph, report_script_charts);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
      "'unsafe-inline'; script-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n"
      "<style>{1}{2}</style>\n</head>\n<body>\n<header><h1>{0}</h1></header>\n<main>\n{3}</main>\n{4}{5}{6}</body>\n"
      "</html>\n",
      logging::html_text(title), logging::page_style, report_style, recordings, logs, scripts, script);
}

}  // namespace

void report(std::span<const std::string> runs, const std::string& file, const ReportOptions& options, Location where) {
  if (runs.empty()) detail::fail<Error>("debug::report", where, "there is no run to report on");
  Runs read = read_runs(runs, options, where);
  if (read.logs.size() > 1)
    detail::fail<Error>("debug::report", where,
                        "there are {} folders of logs; name the folder around them, whose page shows them together",
                        read.logs.size());
  std::string page = page_of(read, options.title.empty() ? read.names : options.title, where);
  io::AtomicFile output("debug::report", file, where);
  output.write(std::as_bytes(std::span(page)));
  output.commit();
}

}  // namespace reel::debug
