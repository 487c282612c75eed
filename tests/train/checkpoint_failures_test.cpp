#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>

#include <reel/io.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>
#include <reel/train/checkpoint.h>
#include <reel/train/interruption.h>

#include "catch.h"
#include "io/folder.h"

using namespace reel;
using namespace reel_test;

namespace {

// The call of fsync that fails, counted from 1; 0: none.
std::atomic<int> failing_fsync = 0;
// While it is true, calls of fsync do not return.
std::atomic<bool> disk_stands_still = false;

struct Weights : nn::Module {
  nn::Parameter weight{*this, "weight", {20'000}, nn::constant(1)};
  double value() const { return weight.to_vector<float>()[0]; }
  void set(double value) const {
    NoRecord pause;
    fill_(weight, value);
  }
};

// Returns an exit status for the first of several checks that does not hold.
class Checks {
 public:
  void expect(bool holds, const char* what) {
    if (!holds) std::fprintf(stderr, "does not hold: %s\n", what);
    failed_ |= !holds;
  }
  int status() const { return failed_ ? 1 : 0; }

 private:
  bool failed_ = false;
};

constexpr int not_allowed = 77;

// Calls f in a forked process, and returns its exit status, or the negated signal that ended it. `error_file`: where its
// stderr goes.
int status_of_process(const std::function<int()>& f, const std::string& error_file = {}) {
  pid_t child = fork();
  if (child == 0) {
    for (int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
    if (!error_file.empty()) dup2(open(error_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    int status = 2;
    try {
      status = f();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

// Mounts a memory file system that only this process sees.
bool mount_small_disk(const std::string& path, const char* options) {
  if (unshare(CLONE_NEWNS) != 0) {
    std::string user = "0 " + std::to_string(geteuid()) + " 1", group = "0 " + std::to_string(getegid()) + " 1";
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    // Users whom the new name space does not know cannot create files.
    reel_test::put_bytes("/proc/self/uid_map", user);
    reel_test::put_bytes("/proc/self/setgroups", "deny");
    reel_test::put_bytes("/proc/self/gid_map", group);
  }
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return mount("none", path.c_str(), "tmpfs", 0, options) == 0;
}

void run_with_disk(const std::function<void(Checks&, const std::string&)>& f) {
  Folder folder;
  int status = status_of_process([&] {
    if (!mount_small_disk(folder.file(""), "size=1m")) return not_allowed;
    Checks checks;
    f(checks, folder.file(""));
    return checks.status();
  });
  if (status == not_allowed) return reel_test::skip("this process may not mount a file system");
  CHECK(status == 0);
}

std::string file_error_of(const std::function<void()>& f) { return error_of<io::FileError>(f); }

}  // namespace

// The library calls this function in place of the system's. It does not wait for the disk: no test cuts the power.
extern "C" int fsync(int descriptor) {
  while (disk_stands_still) usleep(100);
  if (failing_fsync > 0 && --failing_fsync == 0) {
    errno = EIO;
    return -1;
  }
  return fcntl(descriptor, F_GETFD) < 0 ? -1 : 0;
}

TEST_CASE("on a full disk a save says so, and the last snapshot is still there and can be restored") {
  run_with_disk([](Checks& checks, const std::string& disk) {
    for (bool asynchronous : {false, true}) {
      Weights model;
      // Each snapshot has 80 kB; all are kept.
      train::Checkpoint checkpoint(disk + (asynchronous ? "a" : "b"), {{"model", model}},
                                   {.keep_last = 0, .asynchronous = asynchronous});
      std::string said;
      int saved = 0;
      for (int i = 1; i < 30 && said.empty(); ++i) {
        model.set(i);
        said = file_error_of([&] {
          checkpoint.save();
          checkpoint.wait();
        });
        if (said.empty()) saved = i;
      }
      checks.expect(saved >= 2, "some snapshots have room");
      checks.expect(said.find("cannot write '" + disk) != said.npos, "the error names the file");
      checks.expect(said.find("No space left on device") != said.npos, "the error is the system's");
      checks.expect(checkpoint.resume().step == saved, "the last snapshot is restored");
      checks.expect(model.value() == saved, "its weights are those of the last save");
      std::filesystem::remove(disk + (asynchronous ? "a" : "b") + "/step-000000001.safetensors");
      checkpoint.save();
      checkpoint.wait();
      std::filesystem::remove_all(disk + (asynchronous ? "a" : "b"));
    }
  });
}

TEST_CASE("a directory that cannot be written is refused at once, and can still be read") {
  run_with_disk([](Checks& checks, const std::string& disk) {
    Weights model;
    {
      train::Checkpoint checkpoint(disk + "run", {{"model", model}});
      checkpoint.save();
      checks.expect(mount("none", disk.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0, "remounts read-only");
      std::string said = file_error_of([&] { checkpoint.save(); });
      checks.expect(said.find("Read-only file system") != said.npos, "a save says why");
      checks.expect(static_cast<bool>(checkpoint.resume()), "the last snapshot is restored");
    }
    std::string said = file_error_of([&] { train::Checkpoint checkpoint(disk + "run", {{"model", model}}); });
    checks.expect(said.find("train::Checkpoint: cannot write '") != said.npos, "the constructor refuses");
    said = file_error_of([&] { train::Checkpoint checkpoint(disk + "other", {{"model", model}}); });
    checks.expect(said.find("cannot create the folder '") != said.npos, "a missing folder cannot be created");
    train::Checkpoint reading(disk + "run", {{"model", model}}, {.read_only = true});
    checks.expect(static_cast<bool>(reading.resume()), "it can be read");
  });
}

TEST_CASE("a directory where a file has the name is refused") {
  Folder folder;
  reel_test::put_bytes(folder.file("file"), "text");
  for (const char* name : {"file", "file/run"})
    CHECK_THAT(file_error_of([&] { train::Checkpoint checkpoint(folder.file(name)); }),
               contains("train::Checkpoint: cannot create the folder '" + folder.file(name)) &&
                   contains("checkpoint_failures_test.cpp:"));
}

TEST_CASE("where fsync fails, a save says so, and a snapshot can be restored") {
  for (bool asynchronous : {false, true})
    for (int call = 1; call <= 4; ++call) {
      Folder folder;
      Weights model;
      train::Checkpoint checkpoint(folder.file("run"), {{"model", model}}, {.asynchronous = asynchronous});
      checkpoint.save();
      checkpoint.wait();
      model.set(2);
      failing_fsync = call;
      CHECK_THAT(file_error_of([&] {
                   checkpoint.save();
                   checkpoint.wait();
                 }),
                 contains("cannot write '" + folder.file("run")) && contains("Input/output error"));
      failing_fsync = 0;
      // The last call comes after `latest` has its new name.
      CHECK(checkpoint.resume().step == (call == 4 ? 2 : 1));
      CHECK(model.value() == (call == 4 ? 2 : 1));
      CHECK(checkpoint.save() == folder.file("run/step-00000000") + (call == 4 ? "3" : "2") + ".safetensors");
    }
}

TEST_CASE("an error of a save in the background surfaces at the next step, and only once") {
  Folder folder;
  Weights model;
  train::Checkpoint checkpoint(folder.file("run"), {{"model", model}}, {.asynchronous = true});
  auto fail_next = [&] {
    failing_fsync = 1;
    checkpoint.save();
    while (failing_fsync != 0) usleep(100);
  };
  auto said_after = [&](const std::function<void()>& f) {
    fail_next();
    std::string said;
    for (int i = 0; i < 10'000 && said.empty(); ++i, usleep(100)) said = file_error_of(f);
    return said;
  };
  CHECK_THAT(said_after([&] { checkpoint.after_step(); }), contains("Input/output error"));
  checkpoint.after_step();
  CHECK_THAT(said_after([&] { checkpoint.check(); }), contains("Input/output error"));
  checkpoint.wait();
  CHECK_THAT(said_after([&] { checkpoint.save(); }), contains("Input/output error"));
  checkpoint.save();
  checkpoint.wait();
}

TEST_CASE("a step does not wait for a save in the background that a slow disk holds up") {
  Folder folder;
  Weights model;
  train::Checkpoint checkpoint(folder.file("run"), {{"model", model}}, {.every = 2, .asynchronous = true});
  disk_stands_still = true;
  for (int i = 0; i < 5; ++i) checkpoint.after_step();
  CHECK(checkpoint.latest().empty());
  disk_stands_still = false;
  checkpoint.wait();
  CHECK(checkpoint.latest() == folder.file("run/step-000000002.safetensors"));
  // The save of step 4 is made up for, and with it that of step 6.
  checkpoint.after_step();
  checkpoint.wait();
  CHECK(checkpoint.latest() == folder.file("run/step-000000006.safetensors"));
  checkpoint.after_step();
  checkpoint.wait();
  CHECK(checkpoint.latest() == folder.file("run/step-000000006.safetensors"));
}

TEST_CASE("an error that the end of a program leaves no place for is printed") {
  Folder folder;
  CHECK(status_of_process(
            [&] {
              Weights model;
              train::Checkpoint checkpoint(folder.file("run"), {{"model", model}}, {.asynchronous = true});
              failing_fsync = 1;
              checkpoint.save();
              return 0;
            },
            folder.file("errors")) == 0);
  // A process that ends by _exit has run the destructors of f, but not those of its caller.
  CHECK_THAT(reel_test::bytes_of(folder.file("errors")),
             contains("reel: error: io::save: cannot write '") && contains("Input/output error"));
}

TEST_CASE("what killed processes left is removed by the next save, and nothing else is") {
  Folder folder;
  Weights model;
  train::Checkpoint checkpoint(folder.file("run"), {{"model", model}});
  auto path = [&](const char* name) { return folder.file("run/") + name; };
  for (const char* name : {"step-000000007.safetensors.reel-1-2.part", "latest.reel-1-3.part", "best.reel-12-0.part",
                           "mine.reel-1-2.part", "step-7.safetensors.reel-1-2.part", "step-1.safetensors"})
    reel_test::put_bytes(path(name), "left");
  checkpoint.save();
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.file("run")))
    names.insert(entry.path().filename().string());
  CHECK(names == std::set<std::string>{"latest", "mine.reel-1-2.part", "step-000000001.safetensors",
                                       "step-1.safetensors", "step-7.safetensors.reel-1-2.part"});
}

TEST_CASE("a signal ends the run after its step, saved, and says where") {
  Folder folder;
  for (bool asynchronous : {false, true}) {
    std::string run = folder.file(asynchronous ? "a" : "b");
    auto train = [&](int steps) {
      return status_of_process(
          [&] {
            Weights model;
            train::Interruption interruption;
            train::Checkpoint checkpoint(run, {{"model", model}}, {.every = 2, .asynchronous = asynchronous});
            checkpoint.resume();
            try {
              while (checkpoint.steps() < steps) {
                model.set(static_cast<double>(checkpoint.steps() + 1));
                if (checkpoint.steps() == 2 && steps == 10) raise(SIGTERM);
                checkpoint.after_step();
              }
            } catch (const train::Interrupted& interrupted) {
              return interrupted.exit_status();
            }
            return model.value() == steps ? 0 : 1;
          },
          folder.file("errors"));
    };
    CHECK(train(10) == 143);
    CHECK(reel_test::bytes_of(folder.file("errors")) ==
          "reel: interrupted by SIGTERM; the run is saved in '" + run + "/step-000000003.safetensors'\n");
    CHECK(train(5) == 0);
  }
}
