#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <reel/data.h>
#include <reel/reel.h>
#include <reel/train.h>

#include "catch.h"
#include "temporary_file.h"

// Exceptions that the library throws and catches itself are no errors of the run; those that leave it are.

namespace reel {
namespace {

using debug::Debugger;
using debug::RecordedOp;
using debug::RecordedRun;
using debug::Recording;
using namespace reel_test;

std::vector<std::string> errors_of(const RecordedRun& run) {
  std::vector<std::string> errors;
  for (const RecordedOp& op : run.ops())
    if (!op.error.empty()) errors.emplace_back(op.error);
  return errors;
}

struct Training {
  nn::Linear model{2, 2};
  optim::SGD sgd{model.parameters(), {.learning_rate = 0.1}};
  train::Checkpoint checkpoint;

  explicit Training(const std::string& folder) : checkpoint(folder, {{"model", model}, {"sgd", sgd}}, {.every = 2}) {}
  void run() {
    for (int step = 0; step < 4; ++step) {
      Tape tape;
      tape.backward(sum(square(model(ones({1, 2})))));
      sgd.step();
      sgd.zero_grad();
      checkpoint.after_step();
    }
  }
};

}  // namespace

TEST_CASE("checkpoints of a healthy run are no errors of a recording, and stop no session") {
  TemporaryFile file("run.reel"), folder("run");
  {
    Recording recording(file.path());
    Training training(folder.path());
    training.checkpoint.resume();
    training.run();
  }
  CHECK(errors_of(RecordedRun::read(file.path())).empty());
  int stops = 0;
  debug::Session session({.stop_at_start = false,
                          .commands =
                              [&](Debugger&) {
                                ++stops;
                                return Debugger::Next::resume;
                              },
                          .output = [](std::string_view) {}});
  Training training(folder.path());
  training.checkpoint.resume();
  training.run();
  CHECK(stops == 0);
  CHECK(errors_of(session.run()).empty());
}

TEST_CASE("a snapshot that cannot be read is an error of the run if no other is restored") {
  TemporaryFile file("run.reel"), folder("run");
  {
    Training training(folder.path());
    training.run();
  }
  std::vector<std::filesystem::path> snapshots;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().extension() == ".safetensors") snapshots.push_back(entry.path());
  std::sort(snapshots.begin(), snapshots.end());
  REQUIRE(snapshots.size() == 2);
  std::ofstream(snapshots[1]) << "damaged";
  {
    Recording recording(file.path());
    Training training(folder.path());
    CHECK(training.checkpoint.resume().step == 2);
  }
  CHECK(errors_of(RecordedRun::read(file.path())).empty());
  std::ofstream(snapshots[0]) << "damaged";
  {
    Recording recording(file.path());
    Training training(folder.path());
    CHECK_THROWS_AS(training.checkpoint.resume(), io::FileError);
  }
  std::vector<std::string> errors = errors_of(RecordedRun::read(file.path()));
  REQUIRE(errors.size() == 1);
  CHECK_THAT(errors[0], contains("none of the snapshots"));
}

TEST_CASE("parts that a partial restoration passes over are no errors of the run") {
  TemporaryFile file("run.reel"), folder("run");
  {
    Training training(folder.path());
    training.run();
  }
  {
    Recording recording(file.path());
    nn::Linear model(2, 2);
    optim::Adam other(model.parameters());
    train::Checkpoint checkpoint(folder.path(), {{"model", model}, {"sgd", other}});
    CHECK(!checkpoint.resume({.partial = true}).different.empty());
  }
  CHECK(errors_of(RecordedRun::read(file.path())).empty());
}

TEST_CASE("a call that is refused in a gradient is an error of the backward pass") {
  TemporaryFile file("run.reel");
  {
    Recording recording(file.path());
    CHECK_THROWS_AS(matmul(ones({2, 3}), ones({2, 3})), ShapeError);
    Tensor w = ones({2, 3}).requires_grad();
    Tape tape;
    Tensor y =
        custom_gradient([](const Tensor& x) { return x * 2; }, [](const Tensor& dy) { return matmul(dy, dy); }, w);
    CHECK_THROWS_AS(tape.backward(sum(y)), ShapeError);
  }
  RecordedRun run = RecordedRun::read(file.path());
  std::vector<debug::OpKind> kinds;
  for (const RecordedOp& op : run.ops())
    if (!op.error.empty()) kinds.push_back(op.kind);
  CHECK(kinds == std::vector{debug::OpKind::forward, debug::OpKind::backward});
}

TEST_CASE("an error that a command of the debugger meets is no error of the run") {
  std::string printed;
  debug::Session session({.commands =
                              [](Debugger& debugger) {
                                debugger.add_filter("broken", [](const RecordedOp&, const debug::RecordedTensor& x) {
                                  return matmul(x.values, ones({7, 7})).defined();
                                });
                                debugger.execute("lt -f broken");
                                return Debugger::Next::resume;
                              },
                          .output = [&](std::string_view text) { printed += text; }});
  static_cast<void>(exp(ones({2, 3})));
  static_cast<void>(exp(ones({2, 3})));
  CHECK_THAT(printed, contains("error: matmul: "));
  CHECK(errors_of(session.run()).empty());
  CHECK_THROWS_AS(matmul(ones({2, 3}), ones({2, 3})), ShapeError);
  CHECK(errors_of(session.run()).size() == 1);
}

}  // namespace reel
