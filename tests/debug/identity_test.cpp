#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <reel/batching.h>
#include <reel/reel.h>

#include "catch.h"
#include "temporary_file.h"

// Whether what a recording says of a tensor is said of that tensor, and not of an earlier one in its memory.

namespace reel {
namespace {

using debug::OpKind;
using debug::RecordedOp;
using debug::RecordedRun;
using debug::Recording;
using namespace reel_test;

std::vector<float> numbers(int step) {
  std::vector<float> values(6);
  for (int i = 0; i < 6; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(100 * step + i);
  return values;
}

// Each abs of a run has the input from which its result was computed, and no two have one input.
void check_inputs(const RecordedRun& run, std::size_t count) {
  std::set<std::uint64_t> inputs;
  for (const RecordedOp& op : run.ops()) {
    if (op.op != "abs") continue;
    REQUIRE(op.inputs.size() == 1);
    inputs.insert(op.inputs[0].op);
    const debug::RecordedTensor* input = run.tensor(op.inputs[0]);
    REQUIRE(input != nullptr);
    REQUIRE(input->values.defined());
    INFO("%" << op.id << " has the input %" << op.inputs[0].op);
    CHECK(to_string(abs(input->values)) == to_string(op.outputs[0].values));
  }
  CHECK(inputs.size() == count);
}

void record_abs(const std::string& file, const std::function<Tensor(int)>& made_at) {
  Recording recording(file, {.value_elements = 20'000});
  for (int step = 0; step < 4; ++step) {
    Tensor x = made_at(step);
    static_cast<void>(abs(x));
  }
}

}  // namespace

TEST_CASE("a tensor in the memory of a freed one, made on its line, is another tensor of a recording") {
  TemporaryFile array("array.npy"), weights("weights.safetensors");
  Tensor kept = tensor(numbers(0));
  struct Maker {
    const char* name;
    std::function<Tensor(int)> make;
  };
  const std::vector<Maker> makers = {
      {"data", [](int step) { return tensor(numbers(step)); }},
      {"reshaped data",
       [](int step) {
         return reshape(tensor(numbers(step)), {2, 3});
       }},
      {"doubles", [](int step) { return tensor(std::vector<double>(6, step)); }},
      {"more than a small block holds", [](int step) { return tensor(std::vector<float>(20'000, float(step))); }},
      {"random numbers", [](int) { return randn({6}); }},
      {"overwritten in place",
       [](int step) {
         Tensor x = tensor(numbers(step));
         mul_(x, 2);
         return x;
       }},
      {"written by the program",
       [&](int step) {
         kept.write<float>()[0] = static_cast<float>(step + 7);
         return kept;
       }},
      {"an array of a file",
       [&](int step) {
         io::save_npy(array.path(), tensor(numbers(step)));
         return io::load_npy(array.path());
       }},
      {"weights of a file",
       [&](int step) {
         io::save(weights.path(), {{"x", tensor(numbers(step))}});
         return io::load(weights.path()).tensors[0].tensor;
       }},
      {"a result of a group",
       [](int step) {
         return batch_map(std::vector<int>{0, 1, 2}, [&](int i) { return tanh(tensor(numbers(step + i)) / 100); })[1];
       }},
  };
  for (const Maker& maker : makers) {
    DYNAMIC_SECTION(maker.name) {
      TemporaryFile file("run.reel");
      record_abs(file.path(), maker.make);
      check_inputs(RecordedRun::read(file.path()), 4);
    }
  }
}

TEST_CASE("data within the examples of a batch is the data of its own example and step") {
  TemporaryFile file("run.reel");
  {
    Recording recording(file.path());
    for (int step = 0; step < 4; ++step)
      batch_map(std::vector<int>{0, 1, 2}, [&](int i) { return abs(tensor(numbers(10 * step + i))); });
  }
  check_inputs(RecordedRun::read(file.path()), 12);
}

TEST_CASE("a later recording, one within another and one of another thread know tensors by their own ids") {
  TemporaryFile outer("outer.reel"), inner("inner.reel"), other("other.reel");
  Tensor shared = tensor(numbers(9));
  auto run = [&](const std::string& file) {
    record_abs(file, [&](int step) { return step == 3 ? shared : tensor(numbers(step)); });
  };
  run(inner.path());
  {
    Recording recording(outer.path());
    run(inner.path());
    std::thread([&] { run(other.path()); }).join();
    static_cast<void>(abs(shared + 1));
  }
  check_inputs(RecordedRun::read(inner.path()), 4);
  check_inputs(RecordedRun::read(outer.path()), 5);
  check_inputs(RecordedRun::read(other.path()), 4);
}

TEST_CASE("the first difference of two runs with another batch is that batch") {
  TemporaryFile a("a.reel"), b("b.reel");
  for (const auto& [file, bad] : {std::pair{a.path(), 0}, std::pair{b.path(), 5}})
    record_abs(file, [bad = bad](int step) { return tensor(numbers(step == 1 ? bad : 10 * step)); });
  debug::RunDifference difference = debug::diff(RecordedRun::read(a.path()), RecordedRun::read(b.path()));
  REQUIRE(!difference.first.empty());
  CHECK_THAT(difference.first[0].description, contains(": data at "));
}

TEST_CASE("a name belongs to a tensor, not to its memory") {
  TemporaryFile file("run.reel");
  {
    Recording recording(file.path());
    for (int step = 0; step < 3; ++step) {
      Tensor x = tensor(numbers(step));
      if (step == 0) debug::name(x, "the first");
      static_cast<void>(abs(x));
      x.write<float>()[0] = 1;
      static_cast<void>(abs(x));
    }
  }
  std::vector<std::string> names;
  RecordedRun run = RecordedRun::read(file.path());
  for (const RecordedOp& op : run.ops())
    if (op.kind == OpKind::source) names.emplace_back(op.outputs[0].name);
  CHECK(names == std::vector<std::string>{"the first", "the first", "", "", "", ""});
}

TEST_CASE("ops have the path of the module that runs, also where an earlier one had its memory") {
  struct Net : nn::Module {};
  TemporaryFile file("run.reel");
  Net net;
  std::vector<std::string> names{"first", "second", "third"};
  std::set<std::string> profiled;
  {
    Recording recording(file.path());
    debug::Profile profile;
    for (const std::string& name : names) {
      auto layer = std::make_unique<nn::Linear>(net, name, 2, 3);
      static_cast<void>((*layer)(ones({1, 2})));
    }
    for (const debug::ProfileRow& row : profile.rows(debug::ProfileBy::module)) profiled.insert(row.name);
  }
  std::set<std::string> recorded;
  RecordedRun run = RecordedRun::read(file.path());
  for (const RecordedOp& op : run.ops()) recorded.emplace(op.module);
  for (const std::string& name : names) {
    CHECK(recorded.contains(name));
    CHECK(profiled.contains(name));
  }
}

}  // namespace reel
