#include <reel/debug/report.h>

#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <reel/reel.h>

#include "catch.h"
#include "debug/report/run_json.h"
#include "io/folder.h"
#include "temporary_file.h"

using namespace reel;
using namespace reel_test;

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
    return debug::histograms_json(debug::RecordedRun::read(file.path()));
  };
  // Five times ten values from −1 to 18, and infinities, which have no place.
  Tensor x = concat({arange(0.0, 9.0), tensor({19.0}), full({2}, INFINITY, {.dtype = f64})});
  nlohmann::ordered_json found = recorded([&](int) { static_cast<void>(x - 1.0); });
  REQUIRE(found.size() == 1);
  CHECK_THAT(found[0][0].get<std::string>(), contains("sub at ") && contains("report_test.cpp:"));
  CHECK(found[0][1] == -1);
  CHECK(found[0][2] == 18);
  // Bins of 0.95, the last one with its end.
  CHECK(found[0][3] == nlohmann::ordered_json({5, 5, 5, 5, 5, 5, 5, 5, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5}));
  CHECK(recorded([&](int i) { static_cast<void>(slice(x, 0, i == 0 ? 1 : 0, 10) - 1.0); }).empty());
  CHECK(recorded([](int) { static_cast<void>(ones({20}) - 1.0); }).empty());
  CHECK(recorded([](int) { static_cast<void>(arange(20) - 1); }).empty());
}

TEST_CASE("a report and the debugger show source files below the current folder and the given ones only") {
  reel_test::InFolder scratch;
  namespace fs = std::filesystem;
  for (const char* folder : {"here", "here/.hidden", "given", "given/part", "outside"}) fs::create_directory(folder);
  const std::string root = fs::current_path();
  for (const char* file : {"here/model.cpp", "here/.hidden/key.cpp", "given/part/net.cpp", "outside/secret.cpp"})
    std::ofstream(file) << "text of " << file << "\n";
  std::ofstream("here/huge.cpp") << std::string(5 << 20, 'x');
  fs::create_symlink(root + "/outside/secret.cpp", "here/link.cpp");
  fs::create_symlink(root + "/outside", "here/folder");
  REQUIRE(mkfifo("here/pipe.cpp", 0600) == 0);
  fs::current_path("here");
  const std::string absolute = root + "/here/model.cpp", secret = root + "/outside/secret.cpp";
  const std::vector<std::string> files{
      "model.cpp", absolute,          "part/net.cpp",      "./part//net.cpp",   "/etc/passwd",
      secret,      "link.cpp",        "huge.cpp",          "folder/secret.cpp", "a/../../outside/secret.cpp",
      "pipe.cpp",  ".hidden/key.cpp", "/proc/self/environ"};
  {
    debug::Recording recording("run.reel");
    for (const std::string& file : files) {
      CallerScope scope({file.c_str(), 1});
      static_cast<void>(exp(ones({2})));
    }
  }
  debug::report("run.reel", "page.html", {.source_folders = {"../given"}});
  nlohmann::json run = runs_of(bytes_of("page.html"))[0];
  std::set<std::string> shown;
  for (const auto& [index, lines] : run["sources"].items()) {
    shown.insert(run["texts"][std::stoull(index)].get<std::string>());
    CHECK_THAT(lines[0].get<std::string>(), contains("text of "));
  }
  CHECK(shown == std::set<std::string>{"model.cpp", absolute, "part/net.cpp", "./part//net.cpp"});
  debug::RecordedRun read = debug::RecordedRun::read("run.reel");
  std::string printed;
  debug::Debugger debugger(read,
                           {.output = [&](std::string_view text) { printed += text; }, .source_folders = {"../given"}});
  for (const debug::RecordedOp& op : read.ops()) {
    if (op.op != "exp") continue;
    debugger.execute("run until id " + std::to_string(op.id));
    printed.clear();
    debugger.execute("src");
    INFO(op.file);
    bool is_shown = shown.contains(std::string(op.file));
    CHECK((printed.find("text of ") != std::string::npos) == is_shown);
    CHECK((printed.find("was not found") != std::string::npos) == !is_shown);
  }
}

TEST_CASE("a report has no more source text than a few MB, however many names a recording gives one file") {
  reel_test::InFolder scratch;
  std::ofstream("model.cpp") << std::string(1 << 20, 'x');
  {
    debug::Recording recording("run.reel");
    for (int i = 0; i < 20; ++i) {
      std::string file = std::string(static_cast<std::size_t>(i), '/') + "model.cpp";
      CallerScope scope({file.c_str(), 1});
      static_cast<void>(exp(ones({2})));
    }
  }
  debug::report("run.reel", "page.html");
  CHECK(runs_of(bytes_of("page.html"))[0]["sources"].size() == 4);
}

TEST_CASE("a report shows the sources that a recording holds, where the files are not") {
  reel_test::InFolder scratch;
  std::filesystem::create_directory("code");
  std::ofstream("code/model.cpp") << "Tensor y = exp(x);\n\n</script>\x1b[2J";
  {
    debug::Recording recording("run.reel", {.sources = {"code"}});
    CallerScope scope({"model.cpp", 1});
    static_cast<void>(exp(ones({2})));
  }
  std::filesystem::remove_all("code");
  debug::report("run.reel", "page.html");
  nlohmann::json sources = runs_of(bytes_of("page.html"))[0]["sources"];
  REQUIRE(sources.size() == 1);
  CHECK(*sources.begin() == nlohmann::json({"Tensor y = exp(x);", "", R"(</script>\u{1b}[2J)"}));
  debug::RecordedRun read = debug::RecordedRun::read("run.reel");
  std::string printed;
  debug::Debugger debugger(read, {.output = [&](std::string_view text) { printed += text; }});
  debugger.execute("src model.cpp");
  CHECK_THAT(printed, contains("1  Tensor y = exp(x);\n") && contains(R"(3  </script>\u{1b}[2J)"));
}

TEST_CASE("the columns of ops take no more memory for units than a page has room for") {
  debug::RecordedRun run;
  debug::RecordedOp op;
  op.id = 1;
  op.op = run.intern("relu");
  op.outputs.resize(1);
  op.outputs[0].shape = Shape{1, std::int64_t{1} << 40};
  op.outputs[0].zero_units = {0};
  run.add(std::move(op));
  CHECK_THAT(debug::json_of(run, "run", {}).dump(), contains(R"("zero":[1])"));
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
  CHECK_THAT(html, contains("<title>" + a.path() + ", " + b.path() + ", " + logs.path() + "</title>"));
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
