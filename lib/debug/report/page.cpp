#include "page.h"

#include <fmt/format.h>

#include "../../logging/plot/html.h"
#include "../../logging/plot/page_parts.h"
#include "page_parts.h"

namespace reel::debug {

namespace {

std::string recordings_html(const PageContents& contents) {
  if (contents.runs.empty()) return {};
  return fmt::format(
      "<nav id=\"tabs\" role=\"tablist\" aria-label=\"Parts of the report\"></nav>\n<div id=\"panels\"></div>\n"
      "<pre id=\"difference\" hidden>{}</pre>\n",
      logging::html_lines(contents.difference));
}

std::string scripts_html(const PageContents& contents) {
  if (contents.runs.empty()) return {};
  return fmt::format(
      "<script type=\"application/json\" id=\"runs\">[{}]</script>\n<script>{}{}{}{}{}{}{}startPanels();</script>\n",
      contents.runs, logging::zoom_script, report_script_run, contents.live ? report_script_live : "",
      report_script_ops, report_script_graph, report_script_charts, report_script_compare);
}

}  // namespace

std::string page_of(const PageContents& contents, Location where) {
  std::string logs, script;
  if (!contents.logs.empty()) {
    logging::PlotParts parts = logging::plot_parts(contents.logs, where);
    logs = fmt::format("{}<main>\n{}</main>\n{}<script type=\"application/json\" id=\"data\">{}</script>\n",
                       parts.header, parts.main, parts.footer, parts.data);
    // In a function of its own, since both scripts have names of their own.
    script = fmt::format("<script>(() => {{{}}})();</script>\n",
                         fmt::format("{}{}", logging::zoom_script, logging::page_script));
  }
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
      "'unsafe-inline'; script-src 'unsafe-inline'{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n"
      "<style>{}{}</style>\n</head>\n<body>\n<header><h1>{}</h1></header>\n<main>\n{}</main>\n{}{}{}</body>\n"
      "</html>\n",
      contents.live ? "; connect-src 'self'" : "", logging::html_text(contents.title), logging::page_style,
      report_style, logging::html_text(contents.title), recordings_html(contents), logs, scripts_html(contents),
      script);
}

}  // namespace reel::debug
