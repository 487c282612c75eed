#pragma once

#include <string_view>

/// The files of this folder, which the build embeds: `run_js` is `run.js`. Braces in HTML are for `fmt::format`.
namespace reel::detail::page {

/// The frame of every page: `{title}`, `{styles}`, `{body}`, and `{more_sources}` of the content security policy.
extern const std::string_view page_html;
/// The body of a page of plots: `{title}`, `{count}`, `{runs}`, `{main}`, `{warnings}`, and `{data}` of its script.
extern const std::string_view plots_html;
/// The body of a report: `{title}` and `{recordings}`, which is empty or `recordings_html` with `{difference}`.
extern const std::string_view report_html, recordings_html;

/// The style sheet of every page, and what reports have beside it.
extern const std::string_view page_css, report_css;

/// The functions by which charts are zoomed into; to be before the other scripts.
extern const std::string_view zoom_js;
/// The script of a page of plots: smoothing, scales, and the values below the pointer. Without it the page shows its
/// curves, which chart.cpp has drawn with the numbers of `plane`. Curves are redrawn from `data`: {runs, charts: [{id,
/// curves: [{run, steps, times, values}]}]}, in which numbers that JSON lacks are strings.
extern const std::string_view plots_js;

/// The parts of a report share it. `runs` is the data of each recording: texts once, and a column for each field of the
/// ops; see run_json.cpp.
extern const std::string_view run_js;
/// A page that a running program serves: it asks for new ops, lets the program step and run on, and shows the ops that
/// are watched.
extern const std::string_view live_js;
/// The list of ops, of which only the visible rows are elements of the page, and the details of one.
extern const std::string_view ops_js;
/// The graph of a step, folded: a node for each line and op of a module, however often a loop has run it, and one for
/// each module that is folded.
extern const std::string_view graph_js;
/// Gradients, activations, profile and memory.
extern const std::string_view charts_js;
/// Two runs side by side: their lines, and the norms of a line's results and of parameters in one chart.
extern const std::string_view compare_js;

}  // namespace reel::detail::page
