#include <reel/logging/plot.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "../../core/printable.h"
#include "../../io/atomic_file.h"
#include "../../page/text.h"
#include "../figure/axis.h"
#include "../json_number.h"
#include "chart.h"
#include "html.h"
#include "plots_body.h"
#include "run_log.h"

namespace reel::logging {

namespace {

constexpr std::size_t most_points = 600;  // of a curve

std::string type_of_picture(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return "image/png";
  if (bytes.starts_with("\xff\xd8\xff")) return "image/jpeg";
  if (bytes.starts_with("GIF8")) return "image/gif";
  return {};
}

// Returns true for a PNG file of a few pixels, which are to be seen as such.
bool is_small_png(std::string_view bytes) {
  // The width is at byte 16, most significant byte first. Source: PNG specification, section 11.2.2.
  if (!bytes.starts_with("\x89PNG") || bytes.size() < 20) return false;
  auto byte = [&](std::size_t i) { return std::uint32_t{static_cast<unsigned char>(bytes[i])}; };
  return (byte(16) << 24 | byte(17) << 16 | byte(18) << 8 | byte(19)) < 160;
}

// The tags that any run has of one kind of logs, in order.
template <class T>
std::set<std::string> tags_of(const std::vector<RunLog>& runs, Logged<T> RunLog::*logs) {
  std::set<std::string> tags;
  for (const RunLog& run : runs)
    for (const auto& [tag, list] : run.*logs) tags.insert(tag);
  return tags;
}

// Writes the parts of a page.
class Page {
 public:
  Page(FolderLog log, std::string title)
      : runs_(std::move(log.runs)), left_out_(std::move(log.left_out)), title_(std::move(title)) {
    for (const RunLog& run : runs_) names_.push_back(run.name.empty() ? "." : detail::printable(run.name));
  }

  std::string body() {
    std::string main = curves() + histograms() + pictures() + texts() + hyper_parameters();
    return fmt::format(fmt::runtime(detail::page::plots_html), fmt::arg("title", html_text(title_)),
                       fmt::arg("count", fmt::format("{} run{}", runs_.size(), runs_.size() == 1 ? "" : "s")),
                       fmt::arg("runs", legend()), fmt::arg("main", main), fmt::arg("warnings", warnings()),
                       fmt::arg("data", script_json({{"runs", names_}, {"charts", charts_}})));
  }

  std::string html() {
    return page_of(title_, fmt::format("\n{}", detail::page::page_css),
                   fmt::format("{}<script>{}</script>\n", body(), plots_script()));
  }

 private:
  std::string legend() const {
    std::string html;
    for (std::size_t run = 0; run < runs_.size(); ++run)
      html += fmt::format(
          "<li><svg viewBox=\"0 0 30 10\" aria-hidden=\"true\"><path class=\"c{} d{}\" stroke-width=\"3\" d=\"M0 "
          "5H30\"/>"
          "</svg>{}</li>\n",
          run % 7, run / 7 % 4, html_text(names_[run]));
    return html;
  }

  std::string warnings() const {
    std::string html;
    for (const std::string& sentence : left_out_)
      html += fmt::format("<p class=\"warning\">Not all is shown: {}</p>\n", html_text(sentence));
    return html;
  }

  // Charts whose tags begin alike are in one section.
  std::string curves() {
    std::map<std::string, std::string> sections;
    for (const std::string& tag : tags_of(runs_, &RunLog::numbers)) {
      std::size_t slash = tag.find('/');
      sections[slash == tag.npos ? "" : tag.substr(0, slash)] += chart(tag);
    }
    std::string html;
    for (const auto& [name, charts] : sections) html += section(name.empty() ? "Scalars" : name, charts);
    return html;
  }

  static std::string section(const std::string& name, const std::string& cards) {
    if (cards.empty()) return {};
    return fmt::format("<section>\n<h2>{}</h2>\n<div class=\"cards\">\n{}</div>\n</section>\n", html_text(name), cards);
  }

  std::string chart(const std::string& tag) {
    std::vector<ChartCurve> curves;
    for (std::size_t run = 0; run < runs_.size(); ++run)
      if (auto found = runs_[run].numbers.find(tag); found != runs_[run].numbers.end())
        curves.push_back({run, thinned(found->second, most_points)});
    std::string id = fmt::format("chart{}", charts_.size());
    add_data(id, curves);
    return fmt::format("<figure id=\"{}\"><figcaption>{}</figcaption>{}{}</figure>\n", id, html_text(tag),
                       curves_svg(tag, curves, names_), table_of(tag, curves));
  }

  std::string table_of(const std::string& tag, const std::vector<ChartCurve>& curves) const {
    std::string html =
        "<details><summary>Numbers</summary><div class=\"wide\"><table><tr><th>run</th><th class=\"number\">last "
        "step</th><th class=\"number\">last</th><th class=\"number\">least</th><th class=\"number\">largest</th></tr>";
    for (const ChartCurve& curve : curves) {
      const auto& all = runs_[curve.run].numbers.find(tag)->second;
      // `fmin` and `fmax` skip NaN.
      double least = all.front().value, largest = least;
      for (const At<double>& point : all) {
        least = std::fmin(least, point.value);
        largest = std::fmax(largest, point.value);
      }
      html += fmt::format(
          "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}"
          "</td><td class=\"number\">{}</td></tr>",
          html_text(names_[curve.run]), all.back().step, short_number(all.back().value, 6), short_number(least, 6),
          short_number(largest, 6));
    }
    return html + "</table></div></details>";
  }

  void add_data(const std::string& id, const std::vector<ChartCurve>& curves) {
    auto list = nlohmann::ordered_json::array();
    for (const ChartCurve& curve : curves) {
      std::vector<std::int64_t> steps;
      std::vector<double> times;
      auto values = nlohmann::ordered_json::array();
      for (const At<double>& point : curve.points) {
        steps.push_back(point.step);
        // A damaged log may have any time, and JSON has no NaN.
        times.push_back(std::isfinite(point.wall_time) ? std::round(point.wall_time * 10) / 10 : 0.0);
        values.push_back(json_number(point.value));
      }
      list.push_back({{"run", curve.run}, {"steps", steps}, {"times", times}, {"values", values}});
    }
    charts_.push_back({{"id", id}, {"curves", list}});
  }

  std::string caption(const std::string& tag, std::size_t run) const {
    return fmt::format("<figcaption>{} <small>{}</small></figcaption>", html_text(tag), html_text(names_[run]));
  }

  // A card for each tag and run that has logs of a kind; `content` makes its inside, or nothing.
  template <class T, class F>
  std::string cards_of(Logged<T> RunLog::*logs, F content) const {
    std::string cards;
    for (const std::string& tag : tags_of(runs_, logs))
      for (std::size_t run = 0; run < runs_.size(); ++run)
        if (auto found = (runs_[run].*logs).find(tag); found != (runs_[run].*logs).end())
          if (std::string inside = content(tag, run, found->second); !inside.empty())
            cards += fmt::format("<figure>{}{}</figure>\n", caption(tag, run), inside);
    return cards;
  }

  std::string histograms() const {
    return section("Histograms",
                   cards_of(&RunLog::histograms, [&](const std::string& tag, std::size_t run, const auto& list) {
                     return histograms_svg(fmt::format("{} of {}", tag, names_[run]), list);
                   }));
  }

  std::string pictures() const {
    return section(
        "Pictures", cards_of(&RunLog::pictures, [&](const std::string& tag, std::size_t run, const auto& list) {
          std::string html;
          for (const At<std::string>& at : list)
            if (std::string type = type_of_picture(at.value); !type.empty())
              html += fmt::format("<div><img{} src=\"data:{};base64,{}\" alt=\"{} of {}, step {}\">step {}</div>",
                                  is_small_png(at.value) ? " class=\"small\"" : "", type, base64(at.value),
                                  html_text(tag), html_text(names_[run]), at.step, at.step);
          return html.empty() ? html : fmt::format("<div class=\"pictures\">{}</div>", html);
        }));
  }

  std::string texts() const {
    return section("Texts", cards_of(&RunLog::texts, [](const std::string&, std::size_t, const auto& list) {
                     std::string html;
                     for (const At<std::string>& at : list)
                       html += fmt::format("<p>step {}</p><pre>{}</pre>", at.step, html_lines(at.value));
                     return html;
                   }));
  }

  std::string hyper_parameters() const {
    std::set<std::string> keys;
    for (const RunLog& run : runs_)
      for (const auto& [key, value] : run.hyper_parameters) keys.insert(key);
    if (keys.empty()) return {};
    std::string html = "<section>\n<h2>Hyper-parameters</h2>\n<div class=\"wide\"><table><tr><th>run</th>";
    for (const std::string& key : keys) html += fmt::format("<th>{}</th>", html_text(key));
    html += "</tr>\n";
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      const auto& own = runs_[run].hyper_parameters;
      if (own.empty()) continue;
      html += fmt::format("<tr><td>{}</td>", html_text(names_[run]));
      for (const std::string& key : keys) {
        auto found = std::find_if(own.begin(), own.end(), [&](const auto& entry) { return entry.first == key; });
        html += fmt::format("<td>{}</td>", found == own.end() ? "" : html_text(found->second));
      }
      html += "</tr>\n";
    }
    return html + "</table></div>\n</section>\n";
  }

  std::vector<RunLog> runs_;
  std::vector<std::string> left_out_, names_;
  std::string title_;
  nlohmann::ordered_json charts_ = nlohmann::ordered_json::array();  // for the script
};

std::string name_of_folder(const std::string& directory) {
  std::error_code ignored;
  std::filesystem::path path = std::filesystem::weakly_canonical(directory, ignored);
  std::string name = path.filename().string();
  return name.empty() ? directory : name;
}

}  // namespace

std::string plots_body(const std::string& directory, Location where) {
  return Page(read_folder(directory, where), name_of_folder(directory)).body();
}

std::string plots_script() { return fmt::format("\n{}\n{}", detail::page::zoom_js, detail::page::plots_js); }

void plot(const std::string& directory, const std::string& file, const PlotOptions& options, Location where) {
  io::check_path("logging::plot", "cannot read the folder", directory, where);
  FolderLog log = read_folder(directory, where);
  std::string html = Page(std::move(log), options.title.empty() ? name_of_folder(directory) : options.title).html();
  io::AtomicFile page("logging::plot", file, where);
  page.write(std::as_bytes(std::span(html)));
  page.commit();
}

}  // namespace reel::logging
