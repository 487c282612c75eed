#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <reel/reel.h>
#include <nlohmann/json.hpp>

#include "catch.h"
#include "io/folder.h"
#include "logging/figure/axis.h"
#include "logging/plot/chart.h"
#include "logging/plot/html.h"
#include "logging/summary.h"

using namespace reel;
using logging::At;
using logging::Axis;
using namespace reel_test;

namespace {

std::string labels_of(const Axis& axis) {
  std::string labels;
  for (const Axis::Tick& tick : axis.ticks()) labels += tick.label + " ";
  return labels;
}

Axis axis_of(const std::vector<double>& values, bool logarithmic = false, Axis::Ticks ticks = Axis::Ticks::anywhere) {
  Axis::Range range(logarithmic);
  for (double value : values) range.add(value);
  return Axis(range, 0, 5, ticks);
}

std::size_t count_in(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++count;
  return count;
}

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("ticks are at round numbers within the axis") {
  CHECK(labels_of(axis_of({0, 1})) == "0 0.2 0.4 0.6 0.8 1 ");
  CHECK(labels_of(axis_of({-3, 17})) == "0 5 10 15 ");
  CHECK(labels_of(axis_of({1e-9, 3e-9})) == "1e-9 1.5e-9 2e-9 2.5e-9 3e-9 ");
  CHECK(labels_of(axis_of({0, 4e6})) == "0 1e6 2e6 3e6 4e6 ");
  CHECK(labels_of(axis_of({1, 3}, false, Axis::Ticks::at_integers)) == "1 2 3 ");
  CHECK(labels_of(axis_of({7}, false, Axis::Ticks::at_integers)) == "7 ");
  CHECK(labels_of(axis_of({0.001, 1000}, true)) == "0.01 1 100 ");
  CHECK(labels_of(axis_of({0.1, 10}, true)) == "0.1 0.2 0.5 1 2 5 10 ");
}

TEST_CASE("an axis can show any numbers") {
  double largest = std::numeric_limits<double>::max();
  for (const std::vector<double>& values :
       {std::vector<double>{}, {5}, {0}, {-1e-320}, {largest, -largest}, {1, 1 + 1e-15}, {infinity, -infinity}})
    for (bool logarithmic : {false, true}) {
      Axis axis = axis_of(values, logarithmic);
      CHECK(axis.ticks().size() <= 33);
      for (const Axis::Tick& tick : axis.ticks()) CHECK(std::abs(tick.position) < 2);
    }
  CHECK(std::isnan(axis_of({1, 2}).position(infinity)));
  CHECK(std::isnan(axis_of({1, 2}, true).position(0)));
  CHECK(axis_of({1, 100}, true).position(10) == Approx(0.5));
}

TEST_CASE("a curve that is thinned keeps its ends, its extremes and what is not finite") {
  std::vector<At<double>> points;
  for (int i = 0; i < 10000; ++i) points.push_back({i, 0.0, std::sin(i * 0.01)});
  points[5003].value = 100;
  points[6007].value = -100;
  points[7001].value = std::nan("");
  std::vector<At<double>> kept = logging::thinned(points, 100);
  CHECK(kept.size() <= 101);
  CHECK(kept.back().step == 9999);
  int found = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (i > 0) CHECK(kept[i].step > kept[i - 1].step);
    found += kept[i].value == 100 || kept[i].value == -100 || std::isnan(kept[i].value);
  }
  CHECK(found == 3);
  CHECK(logging::thinned(points, 10000).size() == 10000);
}

TEST_CASE("a page has the least and the largest number beside NaN, and no time that JSON lacks") {
  Folder folder;
  std::filesystem::create_directory(folder.file("run"));
  put_bytes(folder.file("run/scalars.csv"),
            "step,wall_time,run,tag,value\n1,nan,,a,5\n2,2,,a,nan\n3,3,,a,1\n4,4,,a,2\n");
  logging::plot(folder.file("run"), folder.file("page.html"));
  CHECK_THAT(bytes_of(folder.file("page.html")),
             contains("<td class=\"number\">1</td><td class=\"number\">5</td></tr>") &&
                 contains("\"times\":[0.0,2.0,3.0,4.0]"));
}

TEST_CASE("texts in a page are escaped") {
  CHECK(logging::html_text("<b>&\"'\n\x1b") == "&lt;b&gt;&amp;&quot;&#39;\\u{a}\\u{1b}");
  CHECK(logging::html_lines("a\r\n<\n") == "a\n&lt;\n");
  CHECK(logging::script_json("</script>\"\\") == "\"\\u003c/script>\\\"\\\\\"");
  CHECK(logging::base64("") == "");
  CHECK(logging::base64("f") == "Zg==");
  CHECK(logging::base64("fo") == "Zm8=");
  CHECK(logging::base64(std::string_view("foobar").substr(0, 2)) == "Zm8=");
  CHECK(logging::base64("foobar") == "Zm9vYmFy");
}

TEST_CASE("a page has the logs of all runs, and needs nothing else") {
  Folder folder;
  std::string runs = folder.file("runs"), page = folder.file("curves.html");
  for (const char* run : {"first", "second/part"}) {
    logging::Writer log(runs + "/" + run);
    log.scalar("loss</script><script>alert(1)</script>", 0.5, 1);
    for (int step = 0; step < 3; ++step) log.scalar("rate", step == 1 ? infinity : step, step);
    log.histogram("w", tensor({1.0f, 2.0f, 2.5f}), 1);
    log.histogram("w", zeros({0}), 2);
    log.image("picture", zeros({3, 2, 2}), 1);
    log.text("note", "<img src=http://example.org>\nsecond line", 1);
    log.hyper_parameters({{"cell", "<lstm>"}});
  }
  logging::plot(runs, page, {.title = "A & B"});
  std::string html = bytes_of(page);
  CHECK_THAT(html, contains("<title>A &amp; B</title>") && contains("</svg>first</li>") &&
                       contains("</svg>second/part</li>") && contains("&lt;lstm&gt;") && contains("second line") &&
                       contains("<img class=\"small\" src=\"data:image/png;base64,iVBOR") && contains("▲"));
  CHECK(count_in(html, "<script") == 2);
  CHECK(count_in(html, "</script>") == 2);
  CHECK(count_in(html, "<img src=http") == 0);
  // One chart for both runs, one heat map and picture for each.
  CHECK(count_in(html, "<figcaption>rate</figcaption>") == 1);
  CHECK(count_in(html, "<figcaption>w <small>") == 2);
  CHECK(count_in(html, "class=\"c1 d0\" d=\"M") == 2);
  CHECK(count_in(html, "nan") == 0);
}

TEST_CASE("a page shows an event file up to hyper-parameters that are no message, and says so") {
  Folder folder;
  std::filesystem::create_directory(folder.file("run"));
  std::string records;
  logging::append_record(records, logging::values_event(1, 1, logging::number_value("loss", 1)));
  logging::append_record(records, logging::values_event(1, 1, logging::plugin_value("h", "hparams", "\x1a\x05")));
  put_bytes(folder.file("run/events.out.tfevents.1"), records);
  logging::plot(folder.file("run"), folder.file("page.html"));
  CHECK_THAT(bytes_of(folder.file("page.html")),
             contains("<figcaption>loss</figcaption>") && contains("is no event: its bytes end within a field"));
}

TEST_CASE("a page shows a damaged file up to the damage, and says so") {
  Folder folder;
  std::string run = folder.file("run");
  { logging::Writer(run).scalar("loss", 1, 1); }
  for (const auto& entry : std::filesystem::directory_iterator(run))
    std::ofstream(entry.path(), std::ios::app) << "this is no record";
  logging::plot(run, folder.file("page.html"));
  CHECK_THAT(bytes_of(folder.file("page.html")), contains("<figcaption>loss</figcaption>") &&
                                                     contains("Not all is shown: logging::plot: the record at byte "));
}

TEST_CASE("a page shows JSON lines up to one that is no entry of a log, whose tag may be new") {
  Folder folder;
  std::filesystem::create_directory(folder.file("run"));
  put_bytes(folder.file("run/log.jsonl"), R"({"step":1,"wall_time":1,"run":"","tag":"loss","value":1})"
                                          "\n"
                                          R"({"step":1,"wall_time":1,"run":"","tag":"other","value":null})"
                                          "\n");
  logging::plot(folder.file("run"), folder.file("page.html"));
  std::string html = bytes_of(folder.file("page.html"));
  CHECK_THAT(html,
             contains("<figcaption>loss</figcaption>") && contains("Not all is shown: logging::plot: line 2 of "));
  CHECK(count_in(html, "<figcaption>other") == 0);
}

TEST_CASE("a folder without logs, and a page that cannot be written, are errors") {
  Folder folder;
  std::filesystem::create_directory(folder.file("empty"));
  CHECK_THAT(error_of<io::FileError>([&] { logging::plot(folder.file("empty"), folder.file("page.html")); }),
             contains("there are no logs in '" + folder.file("empty")) && contains("plot_test.cpp:"));
  CHECK_THAT(error_of<io::FileError>([&] { logging::plot(folder.file("missing")); }),
             contains("cannot read the folder"));
  { logging::Writer(folder.file("run")).scalar("loss", 1, 1); }
  CHECK_FALSE(error_of<io::FileError>([&] { logging::plot(folder.file("run"), folder.file("no/page.html")); }).empty());
}
