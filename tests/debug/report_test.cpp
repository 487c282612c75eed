#include <reel/debug/report.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <reel/reel.h>

#include "catch.h"
#include "debug/report/run_json.h"
#include "io/folder.h"
#include "temporary_file.h"

using namespace reel;
using reel_test::bytes_of;
using reel_test::contains;
using reel_test::error_of;
using reel_test::TemporaryFile;

namespace {

// The data of the runs in a page.
nlohmann::json runs_of(const std::string& page) {
  const std::string start = "id=\"runs\">";
  std::size_t from = page.find(start) + start.size();
  return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
}

}  // namespace

TEST_CASE("a report has the ops, texts, values, updates and source lines of a recording") {
  TemporaryFile file("run.reel"), page("report.html");
  {
    debug::Recording recording(file.path());
    Tensor w = full({2}, 3.0f).requires_grad();
    optim::SGD sgd({w}, {.learning_rate = 0.5});
    auto note = debug::note("phase", std::string("</script><b>"));
    Tape tape;
    tape.backward(sum(debug::name(square(w), "squares")));
    sgd.step();
  }
  debug::report(file.path(), page.path(), {.source_folders = {REEL_SOURCE_ROOT}});
  std::string html = bytes_of(page.path());
  CHECK(html.starts_with("<!DOCTYPE html>"));
  nlohmann::json run = runs_of(html)[0];
  std::size_t count = run["id"].size();
  CHECK(count > 5);
  for (const char* column : {"kind", "op", "file", "line", "module", "notes", "error", "step", "start", "duration",
                             "forward", "inputs", "out"})
    CHECK(run[column].size() == count);
  std::size_t square = count;
  for (std::size_t i = 0; i < count; ++i)
    if (run["texts"][run["op"][i].get<std::size_t>()] == "square" && run["kind"][i] == 1) square = i;
  REQUIRE(square < count);
  const nlohmann::json& output = run["out"][square][0];
  CHECK(run["texts"][output[0].get<std::size_t>()] == "(2,) f32");
  CHECK(run["texts"][output[1].get<std::size_t>()] == "squares");
  CHECK(output[3] == 9);                // the smallest
  CHECK(output[11] == "[9. 9.]");       // the values
  REQUIRE(run["updates"].size() == 1);  // of the one parameter
  CHECK(run["updates"][0][4].get<double>() == Approx(std::sqrt(18.0)));
  std::string line =
      run["sources"][std::to_string(run["file"][square].get<int>())][run["line"][square].get<std::size_t>() - 1];
  CHECK_THAT(line, contains("tape.backward(sum(debug::name(square(w)"));
  // A note's markup ends no element.
  CHECK(html.find("</script><b>") == std::string::npos);
}

TEST_CASE("a report has histograms of the kept values of lines, from 50 finite ones on that differ") {
  TemporaryFile file("run.reel");
  auto recorded = [&](const auto& f) {
    {
      debug::Recording recording(file.path());
      for (int i = 0; i < 5; ++i) f(i);
    }
    return nlohmann::json::parse("[" + debug::histograms_json(debug::RecordedRun::read(file.path())) + "]");
  };
  // Five times ten values from −1 to 18, and infinities, which have no place.
  Tensor x = concat({arange(0.0, 9.0), tensor({19.0}), full({2}, INFINITY, {.dtype = f64})});
  nlohmann::json found = recorded([&](int) { static_cast<void>(x - 1.0); });
  REQUIRE(found.size() == 1);
  CHECK_THAT(found[0][0].get<std::string>(), contains("sub at ") && contains("report_test.cpp:"));
  CHECK(found[0][1] == -1);
  CHECK(found[0][2] == 18);
  // Bins of 0.95, the last one with its end.
  CHECK(found[0][3] == nlohmann::json({5, 5, 5, 5, 5, 5, 5, 5, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5}));
  CHECK(recorded([&](int i) { static_cast<void>(slice(x, 0, i == 0 ? 1 : 0, 10) - 1.0); }).empty());
  CHECK(recorded([](int) { static_cast<void>(ones({20}) - 1.0); }).empty());
  CHECK(recorded([](int) { static_cast<void>(arange(20) - 1); }).empty());
}

TEST_CASE("a report of two recordings names their first difference, and one of a folder of logs has its curves") {
  TemporaryFile a("a.reel"), b("b.reel"), page("report.html"), logs("runs");
  for (const auto& [path, value] : {std::pair{a.path(), 1.0f}, std::pair{b.path(), 2.0f}}) {
    debug::Recording recording(path);
    static_cast<void>(exp(tensor({value})));
  }
  { logging::Writer(logs.path()).scalar("loss", 0.5, 1); }
  std::vector<std::string> runs{a.path(), b.path(), logs.path()};
  debug::report(runs, page.path());
  std::string html = bytes_of(page.path());
  CHECK(runs_of(html).size() == 2);
  CHECK_THAT(html, contains("The runs differ first at op 1: data at"));
  CHECK_THAT(html, contains("<figcaption>loss</figcaption>"));
}

TEST_CASE("a report refuses what is no run, and more than one folder of logs") {
  TemporaryFile page("report.html"), file("text.reel"), logs("runs");
  CHECK_THAT(error_of<Error>([&] { debug::report(std::vector<std::string>{}, page.path()); }),
             contains("there is no run"));
  std::ofstream(file.path()) << "hello";
  CHECK_THAT(error_of<Error>([&] { debug::report(file.path(), page.path()); }), contains("is no recording"));
  { logging::Writer(logs.path()).scalar("loss", 0.5, 1); }
  std::vector<std::string> twice{logs.path(), logs.path()};
  CHECK_THAT(error_of<Error>([&] { debug::report(twice, page.path()); }), contains("there are 2 folders of logs"));
  CHECK(!std::filesystem::exists(page.path()));
}
