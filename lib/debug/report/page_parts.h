#pragma once

#include <string_view>

namespace reel::debug {

/// The style sheet of a report, behind that of a page of plots.
extern const std::string_view report_style;
/// The scripts of a report: what all parts share, the list of ops with their details, the graph, the charts, and two runs
/// side by side.
extern const std::string_view report_script_run;
extern const std::string_view report_script_ops;
extern const std::string_view report_script_graph;
extern const std::string_view report_script_charts;
extern const std::string_view report_script_compare;
/// The script of a page that a running program serves, behind what all parts share.
extern const std::string_view report_script_live;

}  // namespace reel::debug
