#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include <reel/reel.h>

#include "catch.h"
#include "core/context.h"
#include "core/op.h"
#include "debug/listener_scope.h"
#include "temporary_file.h"

using namespace reel;
using debug::OpKind;
using debug::RecordedOp;
using debug::RecordedRun;
using namespace reel_test;

namespace {

struct Cell : nn::Module {
  using nn::Module::Module;
  nn::Linear input{*this, "input", 4, 6};
  nn::Linear state{*this, "state", 6, 6};

  Tensor operator()(const Tensor& x, const Tensor& h, Location where = Location::here()) const {
    return call("Cell", {x, h}, where, [&](const Tensor& x, const Tensor& h) { return tanh(input(x) + state(h)); });
  }
};

struct Net : nn::Module {
  nn::Embedding words{*this, "words", 20, 4};
  Cell cell{*this, "cell"};
  nn::Linear output{*this, "output", 6, 3};

  Tensor loss(const std::vector<int>& sentence, int label) const {
    Tensor h = zeros({1, 6});
    for (int t = 0; t < static_cast<int>(sentence.size()); ++t) {
      auto note = debug::note("t", t);
      h = cell(words(tensor({sentence[static_cast<std::size_t>(t)]})), h);
    }
    return cross_entropy(output(h), tensor({label}));
  }
};

// Changes one element of a floating output of the op with the given index, counted from 0, before a recording around
// this listener sees it.
class Change : public debug::ListenerScope {
 public:
  Change(std::int64_t index, float by) : ListenerScope(detail::context()), index_(index), by_(by) {}
  std::int64_t count() const { return count_; }
  const std::string& changed() const { return changed_; }

  void finished(const detail::Call& call, Location where) override {
    const Tensor* target = nullptr;
    for (std::size_t i = 0; i < call.outputs.size() && !target; ++i) {
      const Tensor& output = call.outputs[i];
      if (output.defined() && output.dtype() == f32 && output.numel() > 0 && !call.op.writes_part &&
          !(call.op.hidden_outputs >> i & 1))
        target = &output;
    }
    if (target && count_++ == index_) {
      auto* data = static_cast<float*>(target->body().data);
      float before = data[0];
      data[0] += by_;
      if (data[0] == before) data[0] = std::nextafter(before, 1e30f);
      changed_ = std::string(call.op.name) + " " + to_string(where);
    }
    ListenerScope::finished(call, where);
  }

 private:
  std::int64_t index_, count_ = 0;
  float by_;
  std::string changed_;
};

struct Trained {
  RecordedRun run;
  std::int64_t ops;
  std::string changed;
};

// Trains for two steps, recorded; `index`: the op to change, or −1.
Trained train(std::int64_t index, float by = 1e-3f, const debug::RecordingOptions& options = {}) {
  TemporaryFile file("run.reel");
  manual_seed(17);
  Net net;
  optim::Adam adam(net.parameters());
  std::int64_t ops = 0;
  std::string changed;
  {
    debug::Recording recording(file.path(), options);
    Change change(index, by);
    for (int step = 0; step < 2; ++step) {
      Tape tape;
      tape.backward(net.loss({3, 1, 4, 1, 5}, 2) + net.loss({9, 2, 6}, 0));
      adam.step();
      adam.zero_grad();
    }
    ops = change.count();
    changed = change.changed();
  }
  return {RecordedRun::read(file.path()), ops, changed};
}

}  // namespace

TEST_CASE("two recordings of one program agree") {
  Trained a = train(-1), b = train(-1);
  debug::RunDifference found = debug::diff(a.run, b.run);
  CHECK(found.equal());
  CHECK(found.compared == a.run.ops().size());
  CHECK(to_string(found) == "The runs agree in all " + std::to_string(found.compared) + " ops.");
}

TEST_CASE("diff names the op whose output was changed by 1e-3 in one element, forward or backward") {
  Trained plain = train(-1);
  std::mt19937 random(29);  // the seed
  std::uniform_int_distribution<std::int64_t> any(0, plain.ops - 1);
  const int changes = std::getenv("REEL_ENDURANCE") ? 100 : 20;
  for (int i = 0; i < changes; ++i) {
    std::int64_t index = any(random);
    Trained other = train(index);
    debug::RunDifference found = debug::diff(plain.run, other.run);
    INFO("op " << index << ": " << other.changed << "; " << to_string(found));
    REQUIRE(!found.equal());
    REQUIRE(found.first[0].kind == debug::OpDifference::Kind::values);
    const RecordedOp* op = other.run.find(found.first[0].b);
    REQUIRE(op != nullptr);
    CHECK(std::string(op->op) + " " + op->location() == other.changed);
  }
}

TEST_CASE("a NaN in the output of any op of a training is found in the recording at that op, with module and line") {
  Trained plain = train(-1);
  const int step = std::getenv("REEL_ENDURANCE") ? 1 : 7;
  for (std::int64_t index = 0; index < plain.ops; index += step) {
    Trained other = train(index, std::numeric_limits<float>::quiet_NaN());
    const RecordedOp* first = nullptr;
    for (const RecordedOp& op : other.run.ops()) {
      for (const debug::RecordedTensor& output : op.outputs)
        if (output.has_statistics && output.statistics.nans > 0) first = &op;
      if (first) break;
    }
    INFO("op " << index << ": " << other.changed);
    REQUIRE(first != nullptr);
    CHECK(std::string(first->op) + " " + first->location() == other.changed);
    const RecordedOp* clean = plain.run.find(first->id);
    REQUIRE(clean != nullptr);
    CHECK(first->module == clean->module);
  }
}

TEST_CASE("diff says where an op, a line or a shape is another one, and where a run ends") {
  auto recorded = [](auto f) {
    TemporaryFile file("run.reel");
    {
      debug::Recording recording(file.path());
      f();
    }
    return RecordedRun::read(file.path());
  };
  auto run = [&](int kind) {
    return recorded([&] {
      Tensor x = ones({kind == 2 ? 3 : 2});
      Tensor y = kind == 1 ? exp(x) : tanh(x);
      if (kind == 3) y = y + 1.0f;
    });
  };
  RecordedRun plain = run(0);
  CHECK(debug::diff(plain, run(0)).equal());
  CHECK_THAT(to_string(debug::diff(plain, run(1))), contains("another op: tanh at"));
  CHECK_THAT(to_string(debug::diff(plain, run(2))), contains("output 0 is (2,) f32 and (3,) f32"));
  CHECK_THAT(to_string(debug::diff(plain, run(3))), contains("the first run ends, the second one goes on with op"));
  CHECK_THAT(to_string(debug::diff(run(3), plain)), contains("the second run ends, the first one goes on with op"));
  RecordedRun one = recorded([] { static_cast<void>(exp(ones({2}))); });
  RecordedRun two = recorded([] { static_cast<void>(exp(ones({2}))); });
  CHECK_THAT(to_string(debug::diff(one, two)), contains("another line"));
  CHECK(debug::diff(one, two, {.ignore_lines = true}).equal());
  CHECK_THAT(to_string(debug::diff(one, recorded([] {}))), contains("the second run ends"));
  CHECK(debug::diff(recorded([] {}), recorded([] {})).equal());
}

TEST_CASE("diff says where one of two runs threw, or both threw other errors") {
  auto run = [](int row) {
    TemporaryFile file("run.reel");
    {
      debug::Recording recording(file.path());
      try {
        static_cast<void>(index_select(ones({3, 2}), 0, tensor({row})));
      } catch (const IndexError&) {
      }
    }
    return RecordedRun::read(file.path());
  };
  RecordedRun works = run(1), throws = run(5);
  for (const std::string& text : {to_string(debug::diff(works, throws)), to_string(debug::diff(throws, works))}) {
    CHECK_THAT(text, contains(": one of them threw: index_select at "));
    CHECK_THAT(text, contains("\n  index_select: "));
  }
  CHECK_THAT(to_string(debug::diff(throws, run(6))), contains(": another error: index_select at "));
  CHECK(debug::diff(throws, run(5)).equal());
}

TEST_CASE("with a tolerance, diff compares values or statistics") {
  Trained plain = train(-1), other = train(11, 1e-6f);
  CHECK(!debug::diff(plain.run, other.run).equal());
  CHECK(debug::diff(plain.run, other.run, {.tolerance = 1e-3}).equal());
  CHECK(!debug::diff(plain.run, other.run, {.tolerance = 1e-9}).equal());
  CHECK_THAT(error_of<Error>([&] { debug::diff(plain.run, other.run, {.tolerance = -1}); }), contains("negative"));
}

TEST_CASE("diff names other data as the first difference") {
  auto run = [](float value) {
    TemporaryFile file("run.reel");
    {
      debug::Recording recording(file.path());
      static_cast<void>(exp(tensor({1.0f, value})));
    }
    return RecordedRun::read(file.path());
  };
  debug::RunDifference found = debug::diff(run(2), run(3));
  CHECK_THAT(to_string(found), contains("The runs differ first at op 1: data at tests/debug/diff_test.cpp:"));
  CHECK_THAT(to_string(found), contains("1 of 2 elements differ, the most by 1 at element 1"));
  CHECK(found.differing == 2);
}
