#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <reel/reel.h>

#include "catch.h"
#include "io/folder.h"
#include "logging/plot/event_reader.h"
#include "logging/plot/run_log.h"
#include "logging/protobuf.h"

using namespace reel;
using logging::FolderLog;
using logging::LoggedEvent;
using logging::RunLog;
using namespace reel_test;

namespace {

void write_some(const std::string& directory, const logging::WriterOptions& options) {
  logging::Writer log(directory, options);
  log.scalar("loss", 0.5, 1);
  log.scalar("loss", std::numeric_limits<double>::quiet_NaN(), 2);
  log.scalar("loss", -std::numeric_limits<double>::infinity(), -3);
  log.scalars("a, \"b\"", {{"train", 0.25}}, 4);
  log.histogram("weights", tensor({-1.0f, 0.0f, 0.0f, 3.0f}), 5);
  log.text("note", "1\n2", 6);
  log.hyper_parameters({{"rate", 0.5}, {"cell", "lstm"}, {"tied", true}});
}

// The numbers of a tag: "step:value ...".
std::string numbers_of(const RunLog& run, const std::string& tag) {
  auto found = run.numbers.find(tag);
  std::string text;
  if (found == run.numbers.end()) return text;
  for (const auto& at : found->second)
    text += fmt::format("{}:{} ", at.step, std::isnan(at.value) ? "NaN" : fmt::format("{}", at.value));
  return text;
}

std::string event_file_of(const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().filename().string().find("tfevents") != std::string::npos) return entry.path().string();
  return {};
}

// The steps of all values in an event file, or the error.
std::string steps_in(const std::string& path) {
  std::string steps;
  std::string error = error_of<io::FileError>([&] {
    logging::read_events(path,
                         [&](const LoggedEvent& event) {
                           for (std::size_t i = 0; i < event.values.size(); ++i)
                             steps += fmt::format("{} ", event.step);
                         },
                         {});
  });
  return error.empty() ? steps : error;
}

}  // namespace

TEST_CASE("what a log writes in any form is read again") {
  for (auto [events, csv, json] : {std::array{true, true, true}, {false, true, false}, {false, false, true}}) {
    Folder folder;
    write_some(folder.file("run"), {.events = events, .csv = csv, .json = json});
    FolderLog log = logging::read_folder(folder.file("run"), {});
    CHECK(log.left_out.empty());
    REQUIRE(log.runs.size() == 2);
    CHECK(log.runs[0].name.empty());
    CHECK(numbers_of(log.runs[0], "loss") == "-3:-inf 1:0.5 2:NaN ");
    CHECK(log.runs[1].name == "train");
    CHECK(numbers_of(log.runs[1], "a, \"b\"") == "4:0.25 ");
    if (csv && !events) continue;
    using Parameters = std::vector<std::pair<std::string, std::string>>;
    Parameters parameters = log.runs[0].hyper_parameters;
    std::sort(parameters.begin(), parameters.end());
    CHECK(parameters == Parameters{{"cell", "lstm"}, {"rate", "0.5"}, {"tied", "true"}});
    CHECK(log.runs[0].texts.at("note").front().value == "1\n2");
    const logging::Histogram& histogram = log.runs[0].histograms.at("weights").front().value;
    CHECK(histogram.count == 4);
    CHECK(histogram.min == -1);
    CHECK(histogram.max == 3);
    CHECK(histogram.limits.size() == histogram.in_bucket.size());
  }
}

TEST_CASE("a session that starts again at a step voids what was logged of it and of later ones") {
  Folder folder;
  std::string run = folder.file("run");
  auto write = [&](const logging::WriterOptions& options, int from, int to, double value) {
    logging::Writer log(run, options);
    for (int step = from; step < to; ++step) {
      log.scalar("loss", value, step);
      log.text("note", "x", step);
    }
  };
  write({}, 0, 5, 1);
  write({.purge_step = 2}, 2, 4, 2);
  FolderLog log = logging::read_folder(run, {});
  CHECK(numbers_of(log.runs[0], "loss") == "0:1 1:1 2:2 3:2 ");
  CHECK(log.runs[0].texts.at("note").size() == 4);
}

TEST_CASE("the histograms that are kept of a long run are spread over all of its steps") {
  RunLog run;
  constexpr int steps = 10000;
  for (int step = 0; step < steps; ++step) run.add_histogram("w", {step, 0.0, logging::Histogram()});
  const auto& kept = run.histograms.at("w");
  CHECK(kept.size() > 40);
  CHECK(kept.size() < 100);
  CHECK(kept.front().step == 0);
  CHECK(kept.back().step == steps - 1);
  bool all_near = true;
  for (std::size_t i = 1; i < kept.size(); ++i) all_near &= kept[i].step - kept[i - 1].step <= steps / 40;
  CHECK(all_near);
}

TEST_CASE("an event file that is cut off anywhere is read up to its last whole record") {
  Folder folder;
  std::string run = folder.file("run");
  {
    logging::Writer log(run);
    for (int step = 0; step < 3; ++step) log.scalar("a", step, step);
  }
  std::string path = event_file_of(run), whole = bytes_of(path);
  CHECK(steps_in(path) == "0 1 2 ");
  std::size_t record = 16 + 9 + 2 + 2 + 2 + 3 + 5;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put_bytes(path, whole.substr(0, size));
    std::size_t lost = (whole.size() - size + record - 1) / record;
    CHECK(steps_in(path) == (lost == 1 ? "0 1 " : lost == 2 ? "0 " : ""));
  }
}

TEST_CASE("the log of a process that is killed has all numbers up to one of the last") {
  for (double flush_seconds : {0.0, 1.0}) {
    Folder folder;
    std::string run = folder.file("run");
    pid_t child = fork();
    if (child == 0) {
      logging::Writer log(run, {.csv = true, .flush_seconds = flush_seconds});
      for (int step = 0;; ++step) log.scalar("loss", step, step);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    FolderLog log = logging::read_folder(run, {});
    CHECK(log.left_out.empty());
    REQUIRE(log.runs.size() == 1);
    const auto& numbers = log.runs[0].numbers.at("loss");
    CHECK(numbers.size() > 10);
    bool all = true;
    for (std::size_t i = 0; i < numbers.size(); ++i) all &= numbers[i].step == static_cast<std::int64_t>(i);
    CHECK(all);
    { logging::Writer again(run, {.csv = true}); }
    std::map<std::string, RunLog> lines;
    CHECK_NOTHROW(logging::read_csv(run + "/scalars.csv", lines, {}));
  }
}

TEST_CASE("each byte of an event file that is changed is noticed, with its position") {
  Folder folder;
  std::string run = folder.file("run");
  { logging::Writer(run).scalar("a", 1, 1); }
  std::string path = event_file_of(run), whole = bytes_of(path);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    put_bytes(path, damaged);
    CHECK_THAT(steps_in(path), contains("logging::plot: the record at byte ") && contains("is damaged"));
  }
}

TEST_CASE("bytes that are no event are refused, whatever they are") {
  using logging::parsed_event;
  using logging::WireError;
  CHECK_FALSE(error_of<WireError>([] { parsed_event("\x2a\x05"); }).empty());
  CHECK_FALSE(error_of<WireError>([] { parsed_event("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"); }).empty());
  CHECK_FALSE(error_of<WireError>([] { parsed_event(std::string("\x09\x00", 2)); }).empty());
  CHECK_FALSE(error_of<WireError>([] { parsed_event("\x0b"); }).empty());
  CHECK_FALSE(error_of<WireError>([] { parsed_event(std::string("\x00\x00", 2)); }).empty());
  unsigned seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937 generator(seed);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(generator() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(generator() % 3 ? generator() % 0x50 : generator());
    try {
      parsed_event(bytes);
    } catch (const WireError&) {
    }
  }
}

TEST_CASE("lines of logs that are none are refused, with their number") {
  Folder folder;
  auto refusal_of_json = [&](const std::string& text) {
    put_bytes(folder.file("log.jsonl"), text);
    std::map<std::string, RunLog> runs;
    return error_of<io::FileError>([&] { logging::read_json_lines(folder.file("log.jsonl"), runs, {}); });
  };
  std::string good = R"({"step":1,"wall_time":1.5,"run":"","tag":"a","value":1})";
  CHECK(refusal_of_json(good + "\n" + good + "\n{\"st").empty());
  for (const char* bad : {"{}", "[", "1", R"({"step":1,"wall_time":1,"run":"","tag":"a","value":"x"})",
                          R"({"step":1.5e300,"wall_time":1,"run":"","tag":"a","value":1})",
                          R"({"step":1,"wall_time":1,"run":3,"tag":"a","value":1})",
                          R"({"step":1,"wall_time":1,"run":"","tag":"a","histogram":{}})"})
    CHECK_THAT(refusal_of_json(good + "\n" + bad + "\n"), contains("line 2 of '") && contains("is no entry of a log"));
  CHECK_FALSE(refusal_of_json(std::string(100000, '[') + "\n").empty());
  auto refusal_of_csv = [&](const std::string& text) {
    put_bytes(folder.file("scalars.csv"), text);
    std::map<std::string, RunLog> runs;
    return error_of<io::FileError>([&] { logging::read_csv(folder.file("scalars.csv"), runs, {}); });
  };
  std::string header = "step,wall_time,run,tag,value\n";
  CHECK(refusal_of_csv(header + "1,1.5,,a,nan\n2,1").empty());
  CHECK_THAT(refusal_of_csv("a,b\n"), contains("line 1 of '"));
  for (const char* bad : {"", "1,2,,a", "x,1,,a,1", "1,1,,\"a,1", "1,1,,a,1,2", "1,1,,a,1x"})
    CHECK_THAT(refusal_of_csv(header + bad + "\n"), contains("line 2 of '"));
}
