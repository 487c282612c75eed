#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>

#include <fmt/format.h>
#include <reel/data.h>
#include <reel/reel.h>

#include "catch.h"
#include "core/context.h"
#include "core/op.h"
#include "debug/listener_scope.h"
#include "debug/recorded_run/recording_summary.h"
#include "io/folder.h"
#include "temporary_file.h"

namespace reel {
namespace {

using debug::OpKind;
using debug::RecordedOp;
using debug::RecordedRun;
using debug::Recording;
using namespace reel_test;

struct Net : nn::Module {
  nn::Linear hidden{*this, "hidden", 3, 4};
  nn::Linear output{*this, "output", 4, 2};

  Tensor operator()(const Arg& x) const {
    return call("Net", x, [&](const Tensor& x) { return output(tanh(hidden(x))); });
  }
};

const RecordedOp* find_op(const RecordedRun& run, std::string_view name, OpKind kind = OpKind::forward) {
  for (const RecordedOp& op : run.ops())
    if (op.op == name && op.kind == kind) return &op;
  return nullptr;
}

std::size_t count_of(const RecordedRun& run, OpKind kind) {
  return static_cast<std::size_t>(
      std::count_if(run.ops().begin(), run.ops().end(), [&](const RecordedOp& op) { return op.kind == kind; }));
}

}  // namespace

TEST_CASE("a recording holds ops with their lines, inputs, outputs, statistics and values") {
  TemporaryFile file("run.reel");
  int line = 0;
  {
    Recording recording(file.path());
    Tensor x = tensor({{1.0f, -2.0f}, {0.0f, 4.0f}});
    Tensor y = square(x) + 1.0f;
    line = __LINE__ - 1;
    Tensor z = log(tensor({-1.0f, 0.0f, 1.0f}));
  }
  RecordedRun run = RecordedRun::read(file.path());
  CHECK(run.is_complete());
  CHECK(run.dropped() == 0);
  CHECK(run.program().find("debug_test") != std::string::npos);
  const RecordedOp* squared = find_op(run, "square");
  REQUIRE(squared != nullptr);
  CHECK(squared->line == line);
  CHECK(squared->file.ends_with("tests/debug/recording_test.cpp"));
  CHECK(squared->location() == std::string(squared->file) + ":" + std::to_string(line));
  CHECK(squared->error.empty());
  CHECK(squared->duration > 0);
  REQUIRE(squared->inputs.size() == 1);
  const RecordedOp* data = run.find(squared->inputs[0].op);
  REQUIRE(data != nullptr);
  CHECK(data->id < squared->id);
  REQUIRE(squared->outputs.size() == 1);
  const debug::RecordedTensor& output = squared->outputs[0];
  CHECK(output.shape == Shape{2, 2});
  CHECK(output.dtype == f32);
  CHECK(output.bytes() == 16);
  CHECK(output.fingerprint != 0);
  REQUIRE(output.has_statistics);
  CHECK(output.statistics.min == 0);
  CHECK(output.statistics.max == 16);
  CHECK(output.statistics.mean == 21.0 / 4);
  CHECK(output.statistics.norm == Approx(std::sqrt(1.0 + 16 + 256)));
  CHECK(output.statistics.zeros == 1);
  REQUIRE(output.values.defined());
  CHECK(to_string(output.values) == to_string(tensor({{1.0f, 4.0f}, {0.0f, 16.0f}})));
  const RecordedOp* added = find_op(run, "add");
  REQUIRE(added != nullptr);
  CHECK(added->inputs.front() == debug::TensorId{squared->id, 0});
  CHECK(run.consumers({squared->id, 0}) == std::vector<std::uint64_t>{added->id});
  const RecordedOp* logarithm = find_op(run, "log");
  REQUIRE(logarithm != nullptr);
  CHECK(logarithm->outputs[0].statistics.nans == 1);
  CHECK(logarithm->outputs[0].statistics.infinities == 1);
  CHECK(logarithm->outputs[0].statistics.max == 0);
}

TEST_CASE("a recording's means are those of finite elements, and its summary counts steps, anomalies and errors") {
  TemporaryFile file("run.reel");
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  {
    Recording recording(file.path());
    Tensor x = tensor({1.0, nan, 6.0, -infinity, nan}), y = x * 2.0;
    static_cast<void>(exp(tensor({1.0, 2.0})));
    CHECK_THROWS_AS(matmul(x, y + ones({4}, {.dtype = f64})), Error);
  }
  RecordedRun run = RecordedRun::read(file.path());
  const RecordedOp* product = find_op(run, "mul");
  REQUIRE(product != nullptr);
  const debug::RecordedStatistics& found = product->outputs[0].statistics;
  CHECK(found.mean == 7);
  CHECK(found.min == 2);
  CHECK(found.max == 12);
  CHECK(found.nans == 2);
  CHECK(found.infinities == 1);
  debug::RecordingSummary summary = debug::summarise_recording(file.path());
  CHECK(summary.anomalies == 2);
  CHECK(summary.errors == 1);
  CHECK(summary.steps == 1);
  CHECK(summary.ops == run.ops().size());
}

TEST_CASE("a recording links gradients with forward ops, and names modules and parameters") {
  TemporaryFile file("run.reel");
  {
    manual_seed(3);
    Net net;
    optim::SGD sgd(net.parameters(), {.learning_rate = 0.1});
    Recording recording(file.path());
    for (int step = 0; step < 2; ++step) {
      Tape tape;
      tape.backward(mean(square(net(ones({5, 3})))));
      sgd.step();
      sgd.zero_grad();
    }
  }
  RecordedRun run = RecordedRun::read(file.path());
  const RecordedOp* activation = find_op(run, "tanh");
  REQUIRE(activation != nullptr);
  CHECK(activation->module == "Net");
  CHECK(activation->step == 0);
  const RecordedOp* gradient = run.gradient_of(activation->id);
  REQUIRE(gradient != nullptr);
  CHECK(gradient->kind == OpKind::gradient);
  CHECK(gradient->op == "tanh");
  CHECK(gradient->module == "Net");
  CHECK(gradient->line == activation->line);
  REQUIRE(gradient->outputs.size() == 1);
  CHECK(gradient->outputs[0].shape == activation->outputs[0].shape);
  bool hidden_seen = false;
  for (const RecordedOp& op : run.ops()) {
    hidden_seen |= op.kind == OpKind::forward && op.module == "hidden";
    if (op.kind == OpKind::backward) CHECK(op.forward != 0);
  }
  CHECK(hidden_seen);
  CHECK(count_of(run, OpKind::gradient) >= 10);
  std::vector<std::string> parameters;
  for (const RecordedOp& op : run.ops())
    if (op.kind == OpKind::source && op.op == "parameter" && op.step == 1) parameters.emplace_back(op.outputs[0].name);
  std::sort(parameters.begin(), parameters.end());
  CHECK(parameters == std::vector<std::string>{"hidden.bias", "hidden.weight", "output.bias", "output.weight"});
  REQUIRE(run.updates().size() == 8);
  for (const debug::RecordedUpdate& update : run.updates()) {
    INFO(update.parameter);
    CHECK(update.update_norm == Approx(0.1 * update.gradient_norm).epsilon(1e-4));
  }
  CHECK(run.updates()[7].step == 1);
}

TEST_CASE("a recorded gradient names no op for a seed, a leaf or an op from before the recording") {
  TemporaryFile file("run.reel");
  Tensor x = ones({3}).requires_grad();
  std::vector<Tensor> seeds{full({3}, 1.0), full({3}, 2.0), full({3}, 3.0)};
  Tape tape({.persistent = true});
  Tensor y = tanh(x);
  {
    Recording recording(file.path());
    static_cast<void>(tape.gradient(y, x, {.seed = seeds[0]}));
    static_cast<void>(tape.gradient(x, x, {.seed = seeds[1]}));
    static_cast<void>(tape.gradient(square(x), x, {.seed = seeds[2]}));
  }
  RecordedRun run = RecordedRun::read(file.path());
  std::vector<std::string> kinds;
  for (const RecordedOp& op : run.ops()) {
    if (op.kind != OpKind::gradient) continue;
    INFO(op.op << " %" << op.id);
    kinds.push_back(fmt::format("{} of {} op, from {}", op.op, op.forward == 0 ? "no" : "an", op.inputs.size()));
    for (debug::TensorId input : op.inputs) CHECK(run.tensor(input) != nullptr);
  }
  CHECK(kinds == std::vector<std::string>{"tanh of no op, from 0", "parameter of no op, from 1",
                                          "parameter of no op, from 0", "square of an op, from 0",
                                          "parameter of an op, from 1"});
}

TEST_CASE("a recording has the names and notes that the program gives") {
  TemporaryFile file("run.reel");
  {
    Recording recording(file.path());
    auto epoch = debug::note("epoch", 4);
    for (int t = 0; t < 3; ++t) {
      auto note = debug::note("t", t);
      Tensor h = debug::name(tanh(ones({2})), "h");
    }
  }
  RecordedRun run = RecordedRun::read(file.path());
  std::vector<std::string> notes;
  for (const RecordedOp& op : run.ops())
    if (op.op == "tanh") {
      notes.emplace_back(op.notes);
      CHECK(op.outputs[0].name == "h");
    }
  CHECK(notes == std::vector<std::string>{"epoch = 4, t = 0", "epoch = 4, t = 1", "epoch = 4, t = 2"});
}

TEST_CASE("a broken example is found in a recording with the line of its file") {
  TemporaryFile file("run.reel"), text("numbers.txt");
  std::ofstream(text.path()) << "1\n2\n0.5\n-3\n4\n";
  std::vector<data::Line> lines = data::read_lines(text.path());
  {
    Recording recording(file.path());
    data::Loader loader(lines, {.batch_size = 2});
    for (const std::vector<data::Line>& batch : loader) {
      auto note = debug::note("examples", loader.sources());
      std::vector<Tensor> numbers;
      for (const data::Line& line : batch) {
        auto own = debug::note("example", line.source);
        numbers.push_back(log(tensor({std::stof(line.text)})));
      }
    }
  }
  RecordedRun run = RecordedRun::read(file.path());
  std::vector<std::string> found;
  for (const RecordedOp& op : run.ops())
    if (op.op == "log" && op.outputs[0].statistics.nans > 0) found.emplace_back(op.notes);
  REQUIRE(found.size() == 1);
  CHECK_THAT(found[0], contains("numbers.txt:3, ") && contains("example = ") && contains("numbers.txt:4"));
}

TEST_CASE("a recording does not change results") {
  auto train = [](bool recorded) {
    TemporaryFile file("run.reel");
    manual_seed(5);
    Net net;
    optim::Adam adam(net.parameters());
    std::unique_ptr<Recording> recording;
    if (recorded) recording = std::make_unique<Recording>(file.path());
    for (int step = 0; step < 3; ++step) {
      Tape tape;
      tape.backward(sum(square(net(randn({6, 3})))));
      adam.step();
      adam.zero_grad();
    }
    std::string all;
    for (const Tensor& parameter : net.parameters())
      all.append(reinterpret_cast<const char*>(parameter.data<float>()),
                 static_cast<std::size_t>(parameter.numel()) * sizeof(float));
    return all;
  };
  CHECK(train(true) == train(false));
}

TEST_CASE("a fingerprint changes with each element, and not with the strides") {
  TemporaryFile file("run.reel");
  manual_seed(11);
  Tensor x = randn({7, 9});
  constexpr int changes = 63;
  {
    Recording recording(file.path());
    (void)(x * 1.0f);
    (void)contiguous(transpose(contiguous(transpose(x))));
    for (int i = 0; i < changes; ++i) {
      Tensor changed = copy(x);
      changed.write<float>()[i] += 1e-3f;
      (void)abs(changed);
    }
  }
  RecordedRun run = RecordedRun::read(file.path());
  std::vector<std::uint64_t> prints;
  std::uint64_t plain = find_op(run, "mul")->outputs[0].fingerprint;
  int equal = 0;
  for (const RecordedOp& op : run.ops()) {
    if (op.op == "abs") prints.push_back(op.outputs[0].fingerprint);
    if (op.op != "mul" && op.kind == OpKind::forward) equal += op.outputs[0].fingerprint == plain;
  }
  CHECK(equal >= 2);  // the transposed view, and its copy
  REQUIRE(prints.size() == changes);
  std::sort(prints.begin(), prints.end());
  CHECK(std::unique(prints.begin(), prints.end()) == prints.end());
}

TEST_CASE("an op that throws is the last of a recording, with its message") {
  TemporaryFile file("run.reel");
  {
    Recording recording(file.path());
    Tensor a = ones({2, 3});
    CHECK_THROWS_AS(matmul(exp(a), ones({2, 3})), ShapeError);
  }
  RecordedRun run = RecordedRun::read(file.path());
  REQUIRE(!run.ops().empty());
  const RecordedOp& last = run.ops().back();
  CHECK(last.op == "matmul");
  CHECK(last.error.find("matmul: ") == 0);
  CHECK(last.file.ends_with("recording_test.cpp"));
  CHECK(last.outputs.empty());
}

TEST_CASE("the recording of a killed process holds all ops up to its end") {
  TemporaryFile file("run.reel");
  pid_t child = fork();
  if (child == 0) {
    Recording recording(file.path());
    Tensor x = ones({4});
    for (int i = 0; i < 1000; ++i) x = x + 1.0f;
    (void)std::raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  RecordedRun run = RecordedRun::read(file.path());
  CHECK(!run.is_complete());
  REQUIRE(count_of(run, OpKind::forward) >= 1000);
  // It died between two ops.
  CHECK(run.ops().back().outputs[0].statistics.max == 1001);
}

TEST_CASE("the recording of a process that died within an op ends with that op") {
  // Ends the process once an op has begun.
  class Death : public debug::ListenerScope {
   public:
    Death() : ListenerScope(detail::context()) {}
    void starting(const detail::Call& call, Location) override {
      if (std::string_view(call.op.name) == "tanh") (void)std::raise(SIGKILL);
    }
  };
  TemporaryFile file("run.reel");
  int line = __LINE__ + 7;
  pid_t child = fork();
  if (child == 0) {
    Death death;
    Recording recording(file.path());
    Tensor x = ones({4});
    for (int i = 0; i < 10; ++i) x = x + 1.0f;
    (void)tanh(x);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  RecordedRun run = RecordedRun::read(file.path());
  CHECK(!run.is_complete());
  const RecordedOp& last = run.ops().back();
  CHECK(last.op == "tanh");
  CHECK(last.location() == "tests/debug/recording_test.cpp:" + std::to_string(line));
  CHECK(last.outputs.empty());
  CHECK_THAT(std::string(last.error), contains("its process died in it"));
  CHECK(count_of(run, OpKind::forward) >= 11);
}

TEST_CASE("a run goes on when another process truncates its recording, and what was written before can be read") {
  TemporaryFile file("run.reel");
  Tensor x = ones({4});
  for (std::size_t kept : {std::size_t{0}, std::size_t{4096}, std::size_t{70'000}}) {
    {
      Recording recording(file.path(), {.max_bytes = 1 << 20});
      for (int i = 0; i < 1000; ++i) x = x + 1.0f;
      std::filesystem::resize_file(file.path(), kept);
      // Beyond the segment that was mapped, and around the ring.
      for (int i = 0; i < 20'000; ++i) x = x + 1.0f;
    }
    INFO(kept);
    CHECK(std::filesystem::file_size(file.path()) >= kept);
    if (kept < 70'000) continue;
    RecordedRun run = RecordedRun::read(file.path());
    CHECK(!run.is_complete());
    CHECK(run.ops().size() > 100);
  }
  CHECK(x.to_vector<float>()[0] == 63'001);
}

TEST_CASE("an access to a truncated file that is no recording ends the process as before") {
  TemporaryFile file("run.reel"), other("other");
  pid_t child = fork();
  if (child == 0) {
    const rlimit no_core = {};
    setrlimit(RLIMIT_CORE, &no_core);
    Recording recording(file.path());
    std::ofstream(other.path()) << "text";
    int opened = open(other.path().c_str(), O_RDWR);
    void* mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
    std::filesystem::resize_file(other.path(), 0);
    *static_cast<volatile char*>(mapped) = 1;
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK_FALSE((WIFEXITED(status) && WEXITSTATUS(status) == 0));  // a sanitizer exits in place of the signal
}

TEST_CASE("a recording keeps to its bound on bytes and drops the oldest ops") {
  TemporaryFile file("run.reel");
  {
    Recording recording(file.path(), {.max_bytes = 1 << 20});
    Tensor x = zeros({8});
    for (int i = 0; i < 20'000; ++i) x = x + 1.0f;
  }
  CHECK(std::filesystem::file_size(file.path()) <= 1 << 20);
  RecordedRun run = RecordedRun::read(file.path());
  CHECK(run.is_complete());
  CHECK(run.dropped() > 1000);
  REQUIRE(run.ops().size() > 1000);
  CHECK(run.ops().back().outputs[0].statistics.max == 20'000);
  for (std::size_t i = 1; i < run.ops().size(); ++i) REQUIRE(run.ops()[i].id == run.ops()[i - 1].id + 1);
}

TEST_CASE("a recording of every third step has the ops of these steps only") {
  TemporaryFile file("run.reel");
  {
    Net net;
    optim::SGD sgd(net.parameters(), {.learning_rate = 0.1});
    Recording recording(file.path(), {.every = 3});
    for (int step = 0; step < 7; ++step) {
      Tape tape;
      tape.backward(sum(net(ones({1, 3}))));
      sgd.step();
      sgd.zero_grad();
    }
  }
  RecordedRun run = RecordedRun::read(file.path());
  std::vector<std::int64_t> steps;
  for (const RecordedOp& op : run.ops())
    if (steps.empty() || steps.back() != op.step) steps.push_back(op.step);
  CHECK(steps == std::vector<std::int64_t>{0, 3, 6});
}

TEST_CASE("a recording refuses files and options that it cannot use") {
  TemporaryFile file("run.reel");
  CHECK_THROWS_WITH(Recording("/nowhere/run.reel"),
                    contains("debug::Recording: cannot write /nowhere/run.reel: No such file or directory"));
  CHECK_THROWS_WITH(Recording("/dev/null"), contains("cannot write /dev/null: it is no ordinary file"));
  CHECK_THROWS_WITH(Recording(file.path(), {.max_bytes = 1000}),
                    contains(".max_bytes is 1000, but must be at least 1 MB"));
  CHECK_THROWS_WITH(Recording(file.path(), {.value_elements = -1}), contains(".value_elements is -1"));
  CHECK_THROWS_WITH(Recording(file.path(), {.every = 0}), contains(".every is 0"));
}

TEST_CASE("a recording keeps the sources in the folders that it is given, and nothing else") {
  reel_test::Folder folder;
  std::string outside = folder.file("secret"), inside = folder.file("code");
  std::filesystem::create_directory(inside);
  std::ofstream(outside) << "secret";
  std::ofstream(inside + "/model.cpp") << "first line\n";
  std::filesystem::create_symlink(outside, inside + "/link.cpp");
  const std::string absolute = inside + "/model.cpp";
  Tensor x = ones({2});
  auto record = [&](const debug::RecordingOptions& options, int ops) {
    Recording recording(folder.file("run.reel"), options);
    for (int i = 0; i < ops; ++i)
      for (const char* name : {"model.cpp", absolute.c_str(), "link.cpp", outside.c_str(), "code/../secret"}) {
        CallerScope scope({name, 1});
        (void)exp(x);
      }
    return folder.file("run.reel");
  };
  RecordedRun none = RecordedRun::read(record({}, 1));
  CHECK(none.source("model.cpp").empty());
  // Also where the first segments have been overwritten.
  for (int ops : {1, 5000}) {
    RecordedRun run = RecordedRun::read(record({.max_bytes = 1 << 20, .sources = {inside}}, ops));
    CHECK(run.source("model.cpp") == "first line\n");
    CHECK(run.source(absolute) == "first line\n");
    for (const std::string& other : {std::string("link.cpp"), outside, std::string("code/../secret")})
      CHECK(run.source(other).empty());
    CHECK((run.dropped() > 0) == (ops > 1));
  }
  // A source that is too large leaves room for the ops.
  std::ofstream(inside + "/model.cpp") << std::string(20'000, 'x');
  RecordedRun run = RecordedRun::read(record({.max_bytes = 1 << 20, .sources = {inside}}, 50));
  CHECK(run.source("model.cpp").empty());
  CHECK(count_of(run, OpKind::forward) == 250);
  CHECK(run.dropped() == 0);
}

TEST_CASE("a recording names the units of a result that are zero in all examples") {
  TemporaryFile file("run.reel");
  manual_seed(13);
  Tensor row = ones({6}), x = abs(randn({40, 6})) + 1.0f, images = abs(randn({3, 5, 4, 2})) + 1.0f;
  row.write<float>()[1] = row.write<float>()[4] = 0;
  Tensor channels = ones({5, 1, 1});
  channels.write<float>()[2] = 0;
  Tensor last = ones({40, 6});
  last.write<float>()[39 * 6] = 0;
  {
    Recording recording(file.path());
    (void)(x * row);
    (void)transpose(contiguous(transpose(x * row)));
    (void)(images * channels);
    (void)to(x * row, DType::bf16);
    (void)div(x, last);              // infinite, not zero
    (void)minimum(x, last);          // a single zero
    (void)(ones({1, 5000}) * 0.0f);  // too many units
    (void)(zeros({7}) * 2.0f);       // without units
  }
  RecordedRun run = RecordedRun::read(file.path());
  using Units = std::vector<std::int32_t>;
  int products = 0;
  for (const RecordedOp& op : run.ops()) {
    for (const debug::RecordedTensor& output : op.outputs) {
      INFO(op.op << " " << to_string(output.shape));
      if (op.kind != OpKind::forward || op.inputs.empty() || op.op == "div" || op.op == "minimum" ||
          output.shape.rank() < 2 || output.shape[1] == 5000) {
        CHECK(output.zero_units.empty());
      } else if (output.shape == Shape{40, 6}) {
        CHECK(output.zero_units == Units{1, 4});
        ++products;
      } else if (output.shape == Shape{3, 5, 4, 2}) {
        CHECK(output.zero_units == Units{2});
        ++products;
      }
    }
  }
  CHECK(products >= 5);
}

}  // namespace reel
