#include "page.h"

#include <fmt/format.h>

#include "../../logging/plot/html.h"
#include "../../logging/plot/plots_body.h"
#include "../../page/text.h"

namespace reel::debug {

namespace {

namespace text = detail::page;

std::string recordings_html(const PageContents& contents) {
  if (contents.runs.empty()) return {};
  return fmt::format(fmt::runtime(text::recordings_html),
                     fmt::arg("difference", logging::html_lines(contents.difference)));
}

std::string scripts_html(const PageContents& contents) {
  if (contents.runs.empty()) return {};
  std::string html = fmt::format("<script type=\"application/json\" id=\"runs\">{}</script>\n<script>",
                                 logging::script_json(contents.runs));
  for (std::string_view script : {text::zoom_js, text::run_js, contents.live ? text::live_js : "", text::ops_js,
                                  text::graph_js, text::charts_js, text::compare_js})
    if (!script.empty()) html.append("\n").append(script);
  return html + "startPanels();</script>\n";
}

}  // namespace

std::string page_of(const PageContents& contents, Location where) {
  std::string body = fmt::format(fmt::runtime(text::report_html), fmt::arg("title", logging::html_text(contents.title)),
                                 fmt::arg("recordings", recordings_html(contents)));
  if (!contents.logs.empty()) body += logging::plots_body(contents.logs, where);
  body += scripts_html(contents);
  // In a function of its own, since both scripts have names of their own.
  if (!contents.logs.empty()) body += fmt::format("<script>(() => {{{}}})();</script>\n", logging::plots_script());
  return logging::page_of(contents.title, fmt::format("\n{}\n{}", text::page_css, text::report_css), body,
                          contents.live ? "; connect-src 'self'" : "");
}

}  // namespace reel::debug
