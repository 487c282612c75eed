#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include <reel/io.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>
#include <reel/train/checkpoint.h>

#include "train/checksum.h"

#include "catch.h"
#include "io/folder.h"

using namespace reel;
using namespace reel_test;

namespace {

namespace fs = std::filesystem;

struct Weight : nn::Module {
  nn::Parameter weight{*this, "weight", {3}, nn::constant(1)};
  double value() const { return weight.to_vector<float>()[0]; }
  void set(double value) const {
    NoRecord pause;
    fill_(weight, value);
  }
};

constexpr const char* own_names[] = {"latest", "best", "step-000000001.safetensors"};

// The error of f in another process, which a signal ends if it waits for something.
std::string error_in_a_process(const std::function<void()>& f) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    alarm(10);
    std::string said = error_of<io::FileError>(f);
    _exit(write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  char piece[4096];
  for (ssize_t count; (count = read(ends[0], piece, sizeof piece)) > 0;)
    said.append(piece, static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? said : "ended by a signal";
}

// Saves a snapshot whose metadata say that it is of another version.
void save_of_version(const std::string& path, const char* version, bool has_checksums) {
  std::vector<NamedTensor> tensors = io::load(path).tensors;
  io::Metadata metadata = io::load(path).metadata;
  metadata["checkpoint"] = version;
  metadata["checksums"] = has_checksums ? detail::checksums_of(tensors, metadata) : "those of the other version";
  io::save(path, tensors, metadata);
}

}  // namespace

TEST_CASE("a save puts its files in the place of links, and leaves what they lead to") {
  Folder folder;
  Weight model;
  fs::create_directory(folder.file("run"));
  fs::create_directory(folder.file("elsewhere"));
  put_bytes(folder.file("precious"), "kept");
  for (const char* to : {"../precious", "../none", "../elsewhere", "latest"}) {
    INFO(to);
    auto put = [&](const char* name) { fs::create_symlink(to, folder.file("run/") + name); };
    put("latest");
    put("best");
    train::Checkpoint checkpoint(folder.file("run"), {{"model", model}});
    put("step-000000001.safetensors");
    // The next names of temporary files can be guessed.
    for (int i = 0; i < 500; ++i)
      fs::create_symlink("../precious", folder.file("run/latest.reel-") + std::to_string(getpid()) + "-" +
                                            std::to_string(i) + ".part");
    checkpoint.save({.score = 1, .step = 1});
    CHECK(checkpoint.resume().step == 1);
    for (const char* name : own_names)
      CHECK(fs::symlink_status(folder.file("run/") + name).type() == fs::file_type::regular);
    CHECK(bytes_of(folder.file("precious")) == "kept");
    CHECK_FALSE(fs::exists(folder.file("none")));
    CHECK(fs::is_empty(folder.file("elsewhere")));
    fs::remove_all(folder.file("run"));
    fs::create_directory(folder.file("run"));
  }
}

TEST_CASE("what a link in a checkpoint's folder leads to is not read") {
  Folder folder;
  Weight model;
  train::Checkpoint(folder.file("other"), {{"model", model}}).save({.score = 1, .step = 1});
  fs::create_directory(folder.file("run"));
  for (const char* name : own_names) fs::create_symlink(std::string("../other/") + name, folder.file("run/") + name);
  train::Checkpoint checkpoint(folder.file("run"), {{"model", model}}, {.read_only = true});
  CHECK_THAT(error_of<io::FileError>([&] { checkpoint.resume(); }), contains("latest' names no snapshot"));
  fs::remove(folder.file("run/latest"));
  put_bytes(folder.file("run/latest"), "step-000000001.safetensors\n");
  CHECK_THAT(error_of<io::FileError>([&] { checkpoint.resume(); }),
             contains("'" + folder.file("run/step-000000001.safetensors") +
                      "': Too many levels of symbolic links, or one where none is followed"));
  CHECK_THAT(error_of<io::FileError>([&] { checkpoint.resume({.best = true}); }), contains("best' names no snapshot"));
  // The path of the folder may be one.
  fs::create_directory_symlink("other", folder.file("link"));
  CHECK(train::Checkpoint(folder.file("link"), {{"model", model}}).resume({.best = true}).step == 1);
  // An index, which names other files, is no snapshot.
  fs::remove(folder.file("run/step-000000001.safetensors"));
  put_bytes(folder.file("run/step-000000001.safetensors"), R"({"weight_map":{"model.weight":"../x"}})");
  CHECK_THAT(error_of<io::FileError>([&] { checkpoint.resume(); }), contains("it is no safetensors file"));
}

TEST_CASE("pipes in the place of a checkpoint's files are refused, and nothing waits for them") {
  Folder folder;
  Weight model;
  auto resume = [&] { train::Checkpoint(folder.file("run"), {{"model", model}}, {.read_only = true}).resume(); };
  for (const char* name : own_names) {
    INFO(name);
    fs::remove_all(folder.file("run"));
    train::Checkpoint(folder.file("run"), {{"model", model}}).save({.score = 1, .step = 1});
    fs::remove(folder.file("run/") + name);
    REQUIRE(mkfifo((folder.file("run/") + name).c_str(), 0600) == 0);
    bool is_snapshot = name == own_names[2];
    std::string said = error_in_a_process(resume);
    if (is_snapshot)
      CHECK_THAT(said, contains("is no ordinary file"));
    else
      CHECK(said.empty());
    CHECK_THAT(error_in_a_process([&] {
                 train::Checkpoint checkpoint(folder.file("run"), {{"model", model}});
                 checkpoint.resume();
                 checkpoint.save({.score = 2, .step = 1});
               }),
               contains("is no ordinary file"));
  }
}

TEST_CASE("a snapshot of a newer version is an error that names it, and stays") {
  for (bool has_checksums : {true, false}) {
    Folder folder;
    Weight model;
    {
      train::Checkpoint checkpoint(folder.file("run"), {{"model", model}}, {.keep_last = 1});
      for (int step = 1; step <= 2; ++step) checkpoint.save();
      fs::copy(folder.file("run/step-000000002.safetensors"), folder.file("run/step-000000003.safetensors"));
    }
    std::string newer = folder.file("run/step-000000003.safetensors");
    save_of_version(newer, "2", has_checksums);
    put_bytes(folder.file("run/latest"), "step-000000003.safetensors\n");
    std::string bytes = bytes_of(newer);
    model.set(5);
    train::Checkpoint checkpoint(folder.file("run"), {{"model", model}}, {.keep_last = 1});
    for (const char* latest : {"step-000000003.safetensors\n", "nonsense"}) {
      put_bytes(folder.file("run/latest"), latest);
      CHECK_THAT(error_of<io::FileError>([&] { checkpoint.resume(); }),
                 contains("'" + newer + "' is a checkpoint of version '2', which this version of reel does not read") &&
                     contains("snapshot_folder_test.cpp:"));
    }
    CHECK(model.value() == 5);
    CHECK_THAT(error_of<Error>([&] { checkpoint.save(); }), contains("has the snapshots of another run"));
    CHECK(bytes_of(newer) == bytes);
    CHECK(fs::exists(folder.file("run/step-000000002.safetensors")));
  }
}
