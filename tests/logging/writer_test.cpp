#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <reel/reel.h>

#include "catch.h"
#include "io/folder.h"
#include "logging/plot/event_reader.h"

using namespace reel;
using namespace reel_test;

namespace {

// A log's lines without their times.
std::string without_times(const std::string& csv) {
  std::string text;
  std::size_t start = 0;
  for (std::size_t end; (end = csv.find('\n', start)) != csv.npos; start = end + 1) {
    std::string line = csv.substr(start, end - start);
    std::size_t first = line.find(','), second = line.find(',', first + 1);
    text += line.substr(0, first) + line.substr(second) + "\n";
  }
  return text;
}

std::vector<std::string> event_files(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().find("tfevents") != std::string::npos) found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  return found;
}

// The error of writing 4 KB where files can have 2 KB, in a process of its own; empty if there is none.
std::string error_where_disk_is_full(const std::string& folder) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    rlimit most{2048, 2048};
    setrlimit(RLIMIT_FSIZE, &most);
    std::string said = error_of<io::FileError>([&] {
      logging::Writer log(folder, {.flush_seconds = 0});
      for (int step = 0; step < 100; ++step) log.scalar("loss", step, step);
    });
    static_cast<void>(!write(ends[1], said.data(), said.size()));
    _exit(0);
  }
  close(ends[1]);
  waitpid(child, nullptr, 0);
  std::string said(4096, '\0');
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(read(ends[0], said.data(), said.size()), 0)));
  close(ends[0]);
  return said;
}

}  // namespace

TEST_CASE("a CSV log has a line for each number") {
  Folder folder;
  {
    logging::Writer log(folder.file("run"), {.events = false, .csv = true});
    log.scalar("a, \"b\"", 0.1, 0);
    log.scalar("nan", std::nan(""), 1);
    log.scalars("loss", {{"train", 1e300}, {"validation", -2}}, 2);
  }
  CHECK(without_times(bytes_of(folder.file("run/scalars.csv"))) ==
        "step,run,tag,value\n0,,\"a, \"\"b\"\"\",0.1\n1,,nan,nan\n2,train,loss,1e+300\n2,validation,loss,-2\n");
}

TEST_CASE("a log of JSON lines has an object for each entry") {
  Folder folder;
  {
    logging::Writer log(folder.file("run"), {.events = false, .json = true});
    log.scalar("\"\\", -std::numeric_limits<double>::infinity(), 3);
    log.text("note", "a\nb", 4);
    log.hyper_parameters({{"rate", 0.5}, {"cell", "lstm"}, {"tied", true}}, {}, 5);
  }
  std::string text = bytes_of(folder.file("run/log.jsonl"));
  CHECK_THAT(text, contains(R"("run":"","tag":"\"\\","value":"-Infinity"})"));
  CHECK_THAT(text, contains(R"("tag":"note","text":"a\nb"})"));
  CHECK_THAT(text, contains(R"("hyper_parameters":{"rate":0.5,"cell":"lstm","tied":true}})"));
  CHECK_THAT(text, contains("{\"step\":3,\"wall_time\":"));
}

TEST_CASE("a log that goes on drops the lines of the steps that are repeated, and a torn last line") {
  Folder folder;
  std::string run = folder.file("run");
  auto write = [&](const logging::WriterOptions& options, int from, int to) {
    logging::Writer log(run, options);
    for (int step = from; step < to; ++step) log.scalar("loss", step, step);
  };
  write({.csv = true, .json = true}, 0, 5);
  std::ofstream(run + "/scalars.csv", std::ios::app) << "5,17953";
  write({.csv = true, .json = true, .purge_step = 3}, 3, 6);
  CHECK(without_times(bytes_of(run + "/scalars.csv")) ==
        "step,run,tag,value\n0,,loss,0\n1,,loss,1\n2,,loss,2\n3,,loss,3\n4,,loss,4\n5,,loss,5\n");
  std::string json = bytes_of(run + "/log.jsonl");
  CHECK(std::count(json.begin(), json.end(), '\n') == 6);
  CHECK(event_files(run).size() == 2);
}

TEST_CASE("hyper-parameters stay in JSON lines when the steps that they were logged at are repeated") {
  Folder folder;
  logging::Writer log(folder.file("run"), {.events = false, .json = true});
  log.hyper_parameters({{"rate", 0.5}}, {{"loss", 1}}, 12);
  log.purge(10);
  std::string json = bytes_of(folder.file("run/log.jsonl"));
  CHECK_THAT(json, contains(R"("hyper_parameters":{"rate":0.5}})"));
  CHECK(std::count(json.begin(), json.end(), '\n') == 1);
}

TEST_CASE("what is purged while a log is open leaves its files") {
  Folder folder;
  logging::Writer log(folder.file("run"), {.csv = true});
  log.scalar("loss", 1, 1);
  log.scalar("loss", 2, 2);
  log.purge(2);
  log.scalar("loss", 3, 2);
  log.flush();
  CHECK(without_times(bytes_of(folder.file("run/scalars.csv"))) == "step,run,tag,value\n1,,loss,1\n2,,loss,3\n");
}

TEST_CASE("event files of later sessions sort after those of earlier ones") {
  Folder folder;
  std::string run = folder.file("run");
  std::filesystem::create_directory(run);
  put_bytes(run + "/events.out.tfevents.4000000000.host.1.0", "");
  { logging::Writer log(run); }
  { logging::Writer log(run); }
  std::vector<std::string> files = event_files(run);
  REQUIRE(files.size() == 3);
  for (int i = 0; i < 3; ++i) CHECK(files[i].find(".400000000" + std::to_string(i) + ".") != std::string::npos);
  // A time that no clock has is no name of a session.
  put_bytes(run + "/events.out.tfevents.9223372036854775807.host.1.0", "");
  { logging::Writer log(run); }
  CHECK(event_files(run)[3].find(".4000000003.") != std::string::npos);
}

TEST_CASE("a log that cannot be written is an error of a sentence") {
  Folder folder;
  put_bytes(folder.file("file"), "");
  CHECK_THAT(error_of<io::FileError>([&] { logging::Writer log(folder.file("file")); }),
             contains("logging::Writer: cannot create the folder '" + folder.file("file") + "': ") &&
                 contains("writer_test.cpp:"));
  CHECK_THAT(error_of<io::FileError>([&] { logging::Writer log(folder.file("file/below")); }),
             contains("cannot create the folder"));
  CHECK_THAT(error_of<io::FileError>([&] { logging::Writer log(std::string("a\0b", 3)); }), contains("NUL"));
  put_bytes(folder.file("scalars.csv"), "name,age\nAda,36\n");
  CHECK_THAT(error_of<io::FileError>([&] {
               logging::Writer log(std::filesystem::path(folder.file()).parent_path().string(), {.csv = true});
             }),
             contains("is no log of this kind"));
  CHECK(bytes_of(folder.file("scalars.csv")) == "name,age\nAda,36\n");
}

TEST_CASE("of the files of a log's folder no link is followed") {
  Folder folder;
  std::string run = folder.file("run");
  std::filesystem::create_directories(folder.file("elsewhere"));
  std::filesystem::create_directory(run);
  for (const char* name : {"scalars.csv", "log.jsonl"}) {
    put_bytes(folder.file("precious"), "");
    std::filesystem::create_symlink("../precious", run + "/" + name);
    CHECK_THAT(error_of<io::FileError>([&] { logging::Writer log(run, {.csv = true, .json = true}); }),
               contains("cannot write '" + run + "/" + name +
                        "': Too many levels of symbolic links, or one where none is followed"));
    CHECK(bytes_of(folder.file("precious")).empty());
    std::filesystem::remove(run + "/" + name);
  }
  logging::Writer log(run);
  put_bytes(folder.file("precious"), "kept");
  std::filesystem::create_symlink("../precious", run + "/projector_config.pbtxt");
  CHECK_THAT(error_of<io::FileError>([&] {
               log.embedding("a", ones({2, 2}));
             }),
             contains("Too many levels of symbolic links, or one where none is followed"));
  std::filesystem::remove(run + "/projector_config.pbtxt");
  std::filesystem::remove_all(run + "/projector");
  std::filesystem::create_directory_symlink("../elsewhere", run + "/projector");
  CHECK_THAT(error_of<io::FileError>([&] {
               log.embedding("a", ones({2, 2}));
             }),
             contains("cannot write '" + run + "/projector/a/tensors.tsv'"));
  CHECK(std::filesystem::is_empty(folder.file("elsewhere")));
  CHECK(bytes_of(folder.file("precious")) == "kept");
}

TEST_CASE("a disk that is full is an error of the call that finds it, and whole records stay") {
  Folder folder;
  std::string said = error_where_disk_is_full(folder.file("run"));
  CHECK_THAT(said, contains("cannot write '") && contains("File too large") && contains("writer_test.cpp:"));
  REQUIRE(event_files(folder.file("run")).size() == 1);
  std::string file = event_files(folder.file("run")).front();
  CHECK(bytes_of(file).size() == 2048);
  std::int64_t steps = 0;
  auto count = [&](const logging::LoggedEvent& event) {
    if (!event.values.empty() && event.step == steps) ++steps;
  };
  CHECK_NOTHROW(logging::read_events(file, count, {}));
  CHECK(steps > 40);
}

TEST_CASE("tags and texts that readers could not show are refused") {
  Folder folder;
  logging::Writer log(folder.file("run"));
  auto refusal = [&](const std::string& tag) { return error_of<Error>([&] { log.scalar(tag, 1, 1); }); };
  CHECK_THAT(refusal(""), contains("the tag is empty"));
  CHECK_THAT(refusal("a\nb"), contains("the tag 'a\\u{a}b' has a control character") && contains("writer_test.cpp:"));
  CHECK_THAT(refusal("\xff"), contains("is not UTF-8"));
  CHECK(refusal("größe/π").empty());
  CHECK_THAT(error_of<Error>([&] { log.text("t", "ab\xff", 1); }), contains("is not UTF-8 at byte 2"));
  for (const char* name : {"", "..", "a/b", "."})
    CHECK_FALSE(error_of<Error>([&] { log.scalars("loss", {{name, 1}}, 1); }).empty());
  CHECK_FALSE(error_of<Error>([&] { log.histogram("h", Tensor(), 1); }).empty());
  CHECK_THAT(error_of<Error>([&] { logging::Writer other(folder.file("run"), {.flush_seconds = -1}); }),
             contains("flush_seconds is -1 and must be 0 or more"));
  CHECK_THAT(error_of<Error>([&] { logging::Writer other(folder.file("run"), {.events = false}); }),
             contains("nothing would be written"));
}
