#include <cmath>
#include <limits>
#include <string>

#include <reel/reel.h>

#include "catch.h"
#include "temporary_file.h"

using namespace reel;
using debug::Debugger;
using debug::RecordedRun;
using namespace reel_test;

namespace {

// A debugger on a recorded run, and what it has printed.
struct Terminal {
  RecordedRun run;
  std::string printed = {};
  Debugger debugger{run, {.output = [this](std::string_view text) { printed += text; }}};

  explicit Terminal(RecordedRun recorded) : run(std::move(recorded)) {}
  std::string after(std::string_view command) {
    printed.clear();
    debugger.execute(command);
    return printed;
  }
};

struct Cell : nn::Module {
  using nn::Module::Module;
  nn::Linear input{*this, "input", 2, 3};

  Tensor operator()(const Tensor& x, Location where = Location::here()) const {
    return call("Cell", {x}, where, [&](const Tensor& x) { return tanh(input(x)); });
  }
};

struct Net : nn::Module {
  Cell cell{*this, "cell"};

  Tensor operator()(const Tensor& x, Location where = Location::here()) const {
    return call("Net", {x}, where, [&](const Tensor& x) { return cell(x); });
  }
};

// Three time steps of a net whose last one takes the logarithm of a negative number.
RecordedRun recorded() {
  TemporaryFile file("run.reel");
  manual_seed(5);
  Net net;
  {
    debug::Recording recording(file.path());
    Tape tape;
    Tensor total = zeros({});
    for (int t = 0; t < 3; ++t) {
      auto note = debug::note("t", t);
      Tensor h = debug::name(net(full({1, 2}, 0.5)), "h");
      total = total + sum(square(h));
    }
    tape.backward(total);
    auto note = debug::note("t", 300);
    static_cast<void>(log(tensor({1.0f, -2.0f})));
    try {
      static_cast<void>(matmul(ones({2, 3}), ones({2, 3})));
    } catch (const ShapeError&) {  // it is in the recording
    }
  }
  return RecordedRun::read(file.path());
}

}  // namespace

TEST_CASE("the debugger finds the first op with NaN, and names its module, line and notes") {
  Terminal terminal(recorded());
  CHECK_THAT(terminal.after("run until has_inf_or_nan"),
             contains("stopped, has_inf_or_nan: %") && contains(" log at tests/debug/debugger_test.cpp:") &&
                 contains(", step 0, with t = 300") && contains("1 NaN, 0 Inf"));
  CHECK_THAT(terminal.after("where"), contains(" ops, %1 to %") && contains(" log at "));
  CHECK_THAT(terminal.after("pt"), contains("nan"));
  CHECK_THAT(terminal.after("cont until has_nan"), contains("error: the recording ends without has_nan"));
  CHECK_THAT(terminal.after("cont until error"), contains("matmul") && contains("error: matmul: "));
  CHECK(terminal.debugger.failures() == 1);
}

TEST_CASE("lt lists tensors by filter, op, line, module and name, in an order, as many as asked for") {
  Terminal terminal(recorded());
  CHECK_THAT(terminal.after("lt"), contains("id ") && contains("tanh 'h'") && contains("(1, 3) f32"));
  std::string tanhs = terminal.after("lt -o tanh");
  CHECK(std::count(tanhs.begin(), tanhs.end(), '\n') == 4);  // with the heading
  CHECK(terminal.after("lt -n ^h$ -m cell").find("tanh 'h'") != std::string::npos);
  CHECK(terminal.after("lt -n ^h$ -m nowhere") == "No tensor fits.\n");
  CHECK_THAT(terminal.after("lt -f has_nan"), contains("log"));
  CHECK_THAT(terminal.after("lt -l debugger_test.cpp:1"), contains("No tensor fits."));
  CHECK_THAT(terminal.after("lt -s size -c 1"), contains("more; `lt -c COUNT`"));
  CHECK_THAT(terminal.after("lt -s time -r -a -o tanh"), contains("gradient of tanh"));
  CHECK_THAT(terminal.after("lt -f nothing"),
             contains("error: there is no filter 'nothing'; there are: all_zero, error"));
  CHECK_THAT(terminal.after("lt -n ("), contains("error: '(' is no regular expression"));
  CHECK_THAT(terminal.after("lt -x"), contains("error: lt has no option '-x'"));
  CHECK_THAT(terminal.after("lt -f"), contains("error: -f needs a value"));
  CHECK_THAT(terminal.after("lt -s name"), contains("must be id, time or size"));
}

TEST_CASE("ni, li and lo show an op with its inputs, consumers and gradient") {
  Terminal terminal(recorded());
  CHECK_THAT(terminal.after("ni h"), contains("tanh 'h'") && contains("  input 0: %") &&
                                         contains("  output 0 'h': (1, 3) f32") && contains("used by") &&
                                         contains("square") && contains("  gradient: %") && !contains("output 1"));
  CHECK_THAT(terminal.after("li h"), contains("\n  %") && contains("parameter 'cell.input.weight'"));
  CHECK_THAT(terminal.after("li h -d 1"), contains("more; -d DEPTH goes deeper"));
  CHECK_THAT(terminal.after("lo h"), contains("square"));
  CHECK_THAT(terminal.after("ni"), contains("error: the run is at its beginning"));
  CHECK_THAT(terminal.after("ni %99999"), contains("error: there is no op %99999; the run has %1 to %"));
  CHECK_THAT(terminal.after("ni nothing"), contains("error: there is no tensor 'nothing'"));
}

TEST_CASE("pt prints values, slices, statistics and histograms") {
  Terminal terminal(recorded());
  CHECK_THAT(terminal.after("pt h"), contains("(1, 3) f32: min "));
  CHECK_THAT(terminal.after("pt h[0, 1]"), contains("0."));
  CHECK_THAT(terminal.after("pt h[:, 1:]"), contains("[["));
  CHECK(terminal.after("pt h -s").find('[') == std::string::npos);
  CHECK_THAT(terminal.after("pt h -h"), contains("█"));
  CHECK_THAT(terminal.after("pt h[3]"), contains("error: index 3 is out of range for axis 0 of size 1"));
  CHECK_THAT(terminal.after("pt h[0, 0, 0]"), contains("error: there are more indices than axes"));
  CHECK_THAT(terminal.after("pt h[x]"), contains("error: an index is 'x', which is no integer"));
  CHECK_THAT(terminal.after("pt h[0"), contains("error: 'h[0' has no closing bracket"));
  CHECK_THAT(terminal.after("pt %2:7"), contains("there is no 7"));
  TemporaryFile file("run.reel");
  {
    debug::Recording recording(file.path(), {.value_elements = 0});
    static_cast<void>(exp(ones({2})));
  }
  Terminal without(RecordedRun::read(file.path()));
  CHECK_THAT(without.after("pt %2"), contains("were not kept; record with .value_elements of at least 2"));
}

TEST_CASE("units that are zero in all examples are listed by a filter, and printed") {
  TemporaryFile file("run.reel");
  {
    debug::Recording recording(file.path());
    Tensor x = tensor({1.0f, -1.0f, 2.0f, 3.0f, -4.0f, -5.0f});
    static_cast<void>(relu(reshape(x, {2, 3})));
  }
  Terminal terminal(RecordedRun::read(file.path()));
  CHECK_THAT(terminal.after("lt -f zero_units"), contains(" relu ") && !contains(" reshape "));
  CHECK_THAT(terminal.after("run until zero_units"), contains(" relu at "));
  CHECK_THAT(terminal.after("pt -s"), contains("zero in all examples: 1 of 3 units: 1\n"));
}

TEST_CASE("grad shows the gradients of all executions of a line, and diff compares tensors") {
  Terminal terminal(recorded());
  terminal.after("run until tanh");
  CHECK_THAT(terminal.after("grad"), contains("gradient of tanh") &&
                                         contains("at the 3 executions of this line in step 0") && contains("t = 2"));
  CHECK_THAT(terminal.after("grad %1"), contains("error: no gradient of %1"));
  CHECK_THAT(terminal.after("diff h h"), contains("The values are equal."));
  CHECK_THAT(terminal.after("diff h %2"), contains("The shapes differ."));
  CHECK_THAT(terminal.after("diff h"), contains("error: diff takes two tensors"));
}

TEST_CASE("src shows lines with the tensors that they made") {
  Terminal terminal(recorded());
  terminal.after("run until log");
  std::string shown = terminal.after("src");
  CHECK_THAT(shown, contains("→") && contains("log: (2,) f32: min 0, max 0"));
  CHECK_THAT(terminal.after("src debugger_test.cpp"), contains("tanh: (1, 3) f32") && contains("ops of this line"));
  CHECK_THAT(terminal.after("src nowhere.cpp:3"),
             contains("error: no op of the run was called in a file 'nowhere.cpp'"));
}

TEST_CASE("src lists lines however far apart they are") {
  RecordedRun run;
  auto add = [&](std::string_view file, int line) {
    debug::RecordedOp op;
    op.id = static_cast<std::uint64_t>(line);
    op.op = run.intern("exp");
    op.file = run.intern(file);
    op.line = line;
    op.outputs.resize(1);
    run.add(std::move(op));
  };
  add("nowhere.cpp", 1);
  add("known.cpp", 2);
  add("nowhere.cpp", std::numeric_limits<int>::max());
  run.add_source("known.cpp", "first\nsecond\n");
  Terminal terminal(std::move(run));
  CHECK_THAT(terminal.after("src known.cpp"),
             contains("first\n") && contains("second\n          %2 exp") && !contains("was not found"));
  CHECK_THAT(
      terminal.after("src nowhere.cpp"),
      contains("%1 exp") && contains("%2147483647 exp") &&
          contains("nowhere.cpp was not found, neither here nor with --source FOLDER; its lines without their "));
  CHECK_THAT(terminal.after("src nowhere.cpp:2147483647"), !contains("%1 exp") && contains("%2147483647 exp"));
}

TEST_CASE("li goes through a chain of any length to a bounded depth") {
  RecordedRun run;
  for (std::uint64_t id = 1; id <= 100'000; ++id) {
    debug::RecordedOp op;
    op.id = id;
    op.op = run.intern("exp");
    op.inputs = {{id - 1, 0}, {id, 0}};
    run.add(std::move(op));
  }
  Terminal terminal(std::move(run));
  CHECK_THAT(terminal.after("li %100000 -d 1000"), contains("%99000 exp") && !contains("%98999 exp"));
  CHECK_THAT(terminal.after("li %100000 -d 100000"), contains("error: the depth is 100000, but must be at most 1000"));
}

TEST_CASE("a pattern that is too much for a long name is an error of the command") {
  RecordedRun run;
  debug::RecordedOp op;
  op.id = 1;
  op.op = run.intern("exp");
  op.outputs.resize(1);
  op.outputs[0].name = run.intern(std::string(1 << 20, 'a'));
  run.add(std::move(op));
  Terminal terminal(std::move(run));
  CHECK_THAT(terminal.after("lt -n a*b"), contains("No tensor fits."));
  CHECK_THAT(terminal.after("lt -n a"), contains("%1"));
}

TEST_CASE("step, back, cont and run move through a recording") {
  Terminal terminal(recorded());
  CHECK_THAT(terminal.after("step"), contains("%"));
  std::string second = terminal.after("step");
  terminal.after("step 2");
  CHECK(terminal.after("back 2") == second);
  CHECK_THAT(terminal.after("cont until id %5"), contains("stopped, op %5: %5"));
  CHECK_THAT(terminal.after("cont"), contains("the recording ends: "));
  CHECK_THAT(terminal.after("step"), contains("error: the recording has no such op"));
  CHECK_THAT(terminal.after("run until op matmul"), contains("matmul"));
  CHECK_THAT(terminal.after("run until tests/debug/debugger_test.cpp:1"),
             contains("error: the recording ends without"));
  CHECK_THAT(terminal.after("run until step 0"), contains("stopped, step 0: %1 "));
  CHECK_THAT(terminal.after("run until"), contains("error: name a condition"));
  CHECK_THAT(terminal.after("run quickly"), contains("error: write until CONDITION"));
  CHECK_THAT(terminal.after("run until fire"), contains("error: there is no filter 'fire'"));
  CHECK_THAT(terminal.after("step x"), contains("error: the number of ops is 'x', which is no integer"));
}

TEST_CASE("a condition that cannot come true any more, or is none, is refused") {
  Terminal terminal(recorded());
  terminal.after("run until id 5");
  CHECK_THAT(terminal.after("cont until id 2"), contains("error: the run cannot come to op %2 any more: it is at %5 "));
  CHECK_THAT(terminal.after("cont until id 5"), contains("error: the run cannot come to op %5 any more"));
  CHECK_THAT(terminal.after("cont until step 0"),
             contains("error: the run cannot come to step 0 any more: it is at %5 "));
  CHECK_THAT(terminal.after("where"), contains("at: %5 "));
  CHECK_THAT(terminal.after("cont until id 6"), contains("stopped, op %6: %6 "));
  CHECK_THAT(terminal.after("run until id 2"), contains("stopped, op %2: %2 "));
  CHECK_THAT(terminal.after("cont until op bogus"), contains("error: there is no op 'bogus'"));
  CHECK_THAT(terminal.after("cont until bogus"), contains("error: there is no filter 'bogus'"));
  CHECK_THAT(terminal.after("cont until data"), contains("error: there is no filter 'data'"));  // no op gives it
  CHECK_THAT(terminal.after("cont until :3"), contains("error: ':3' names no file"));
  CHECK_THAT(terminal.after("cont until step"), contains("error: there is no filter 'step'"));
}

TEST_CASE("cont goes on to a later step of a recording, and to no earlier one") {
  TemporaryFile file("run.reel");
  {
    debug::Recording recording(file.path());
    Tensor w = ones({2}).requires_grad();
    optim::SGD sgd({w}, {.learning_rate = 0.1});
    for (int step = 0; step < 4; ++step) {
      Tape tape;
      tape.backward(sum(square(w)));
      sgd.step();
      sgd.zero_grad();
    }
  }
  Terminal terminal(RecordedRun::read(file.path()));
  CHECK_THAT(terminal.after("cont until step 2"), contains("stopped, step 2: ") && contains(", step 2\n"));
  CHECK_THAT(terminal.after("cont until step 1"), contains("error: the run cannot come to step 1 any more"));
  CHECK_THAT(terminal.after("cont until step 2"), contains("error: the run cannot come to step 2 any more"));
  CHECK_THAT(terminal.after("cont until step 3"), contains(", step 3\n"));
  CHECK_THAT(terminal.after("cont until step 4"), contains("error: the recording ends without step 4"));
  CHECK_THAT(terminal.after("run until step 1"), contains(", step 1\n"));
}

TEST_CASE("grad shows gradients with NaN and infinity as the largest, not as none or zero") {
  TemporaryFile file("run.reel");
  {
    debug::Recording recording(file.path());
    Tensor w = ones({2}).requires_grad();
    Tape tape;
    Tensor total = zeros({});
    const double factors[] = {1, std::numeric_limits<double>::infinity(), std::nan(""), 0};
    for (double factor : factors) {
      Tensor h = tanh(w);
      total = total + sum(h * factor);
    }
    tape.backward(total);
  }
  Terminal terminal(RecordedRun::read(file.path()));
  terminal.after("run until tanh");
  std::string shown = terminal.after("grad");
  CHECK_THAT(shown, contains("at the 4 executions") && contains("1.414e+00") && contains("  inf ") &&
                        contains("  nan ") && contains("0.000e+00") && !contains("none"));
  std::string bar;
  for (int i = 0; i < 40; ++i) bar += "█";
  std::size_t bars = 0;
  for (std::size_t at = shown.find(bar); at != std::string::npos; at = shown.find(bar, at + bar.size())) ++bars;
  CHECK(bars == 3);
}

TEST_CASE("a filter of the program's own selects tensors and ends a run") {
  Terminal terminal(recorded());
  terminal.debugger.add_filter("wide", [](const debug::RecordedOp&, const debug::RecordedTensor& tensor) {
    return tensor.shape.rank() == 2 && tensor.shape[1] == 3;
  });
  CHECK_THAT(terminal.after("filters"), contains("wide\n"));
  CHECK_THAT(terminal.after("lt -f wide"), contains("(1, 3) f32"));
  CHECK_THAT(terminal.after("run until wide"), contains("stopped, wide"));
  CHECK_THAT(error_of<Error>([&] { terminal.debugger.add_filter("", {}); }), contains("Debugger::add_filter"));
}

TEST_CASE("the debugger lists its commands, completes words, and refuses what it does not know") {
  Terminal terminal(recorded());
  CHECK_THAT(terminal.after("help"), contains("lt [-f FILTER]") && contains("quit"));
  CHECK_THAT(terminal.after("help pt"), contains("print a tensor"));
  CHECK_THAT(terminal.after("help fly"), contains("error: there is no command 'fly'"));
  CHECK_THAT(terminal.after("fly"), contains("error: there is no command 'fly'; `help` lists them"));
  CHECK_THAT(terminal.after("pt \"h"), contains("error: a quotation mark is missing"));
  CHECK(terminal.after("").empty());
  CHECK(terminal.after("# a comment").empty());
  CHECK(terminal.debugger.completions("s") == std::vector<std::string>{"src", "step"});
  CHECK(terminal.debugger.completions("lt -f has_") ==
        std::vector<std::string>{"has_inf", "has_inf_or_nan", "has_nan"});
  CHECK(terminal.debugger.completions("run until lo") == std::vector<std::string>{"log"});
  CHECK(terminal.debugger.completions("pt cell.input.w") == std::vector<std::string>{"cell.input.weight"});
  CHECK(terminal.debugger.execute("quit") == Debugger::Next::quit);
  CHECK_THAT(error_of<Error>([&] { Debugger broken(terminal.run, {}); }), contains("there is no .output"));
}

TEST_CASE("li shows the inputs of an op once, also where several ops lead to it") {
  TemporaryFile file("run.reel");
  Tensor x = ones({2});
  {
    debug::Recording recording(file.path());
    Tensor h = exp(x);
    static_cast<void>(debug::name(h * h + h, "y"));
  }
  Terminal terminal(RecordedRun::read(file.path()));
  std::string shown = terminal.after("li y");
  CHECK(std::count(shown.begin(), shown.end(), '\n') == 5);  // add, mul, exp, x, and exp once more
  CHECK(shown.ends_with(" (shown above)\n"));
}

TEST_CASE("diff says how many elements differ and where the most, or that values were not kept") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  struct Case {
    debug::RecordingOptions options;
    std::vector<float> a, b;
    std::string sentence;
  };
  const Case cases[] = {
      {{}, {1, 2, 3, 4}, {1, 2.5, 3, 2}, "2 of 4 elements differ, the most by 2 at [3]: 4 and 2\n"},
      {{}, {1, 2, nan, 4}, {9, 2, 3, 4}, "2 of 4 elements differ, the most by inf at [2]: nan and 3\n"},
      {{.fingerprints = false}, {1, 2}, {1, 3}, "1 of 2 elements differ, the most by 1 at [1]: 2 and 3\n"},
      {{.fingerprints = false}, {0, nan}, {-0.0f, nan}, "The values are equal.\n"},
      {{.value_elements = 0}, {1, 2}, {1, 2}, "The values are equal.\n"},
      {{.value_elements = 0}, {1, 2}, {1, 3}, "The values differ; they were not kept.\n"},
      {{.fingerprints = false, .value_elements = 0}, {1, 2}, {1, 2}, "Neither fingerprints nor values were kept.\n"},
  };
  for (const Case& one : cases) {
    TemporaryFile file("run.reel");
    {
      debug::Recording recording(file.path(), one.options);
      debug::name(tensor(one.a), "a");
      debug::name(tensor(one.b), "b");
    }
    Terminal terminal(RecordedRun::read(file.path()));
    std::string shown = terminal.after("diff a b");
    INFO(shown);
    CHECK(shown.ends_with("\n" + one.sentence));
    CHECK(std::count(shown.begin(), shown.end(), '\n') == 3);
  }
}

TEST_CASE("grad has no norm of an execution whose gradient is unknown, and shows a gradient by its own id") {
  TemporaryFile file("run.reel");
  {
    debug::Recording recording(file.path());
    Tape tape;
    Tensor x = ones({2}).requires_grad(), total = zeros({});
    for (int i = 0; i < 3; ++i) {
      Tensor y = tanh(x);
      std::vector<Tensor> halves = split(y, 1);
      if (i > 0) total = total + sum(halves[i == 1 ? 0 : 1]);  // the first is not used, the last by its second half
    }
    tape.backward(total);
  }
  Terminal terminal(RecordedRun::read(file.path()));
  auto count_of = [](const std::string& text, const std::string& word) {
    int count = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
    return count;
  };
  auto shown_of = [&](const std::string& op, debug::OpKind kind) {
    std::uint64_t id = 0;
    for (const debug::RecordedOp& one : terminal.run.ops())
      if (one.op == op && one.kind == kind) id = one.id;
    return terminal.after("grad %" + std::to_string(id));
  };
  std::string norms = shown_of("tanh", debug::OpKind::forward), halves = shown_of("split", debug::OpKind::forward);
  CHECK_THAT(norms, contains("at the 3 executions"));
  CHECK(count_of(norms, "none") == 1);
  CHECK_THAT(halves, contains("at the 3 executions"));
  CHECK(count_of(halves, "none") == 2);
  std::string own = shown_of("tanh", debug::OpKind::gradient);
  CHECK_THAT(own, contains("gradient of tanh") && contains("  gradient of output 0: (2,) f32: ") &&
                      !contains("executions") && !contains("error"));
}

TEST_CASE("li and ni name inputs that the recording has dropped") {
  TemporaryFile file("run.reel");
  {
    debug::Recording recording(file.path());
    static_cast<void>(exp(ones({2})));
  }
  RecordedRun run = RecordedRun::read(file.path());
  run.keep_last(1);
  std::string dropped = "%" + std::to_string(run.ops().front().inputs[0].op) + " is not in the recording\n";
  std::string own = "%" + std::to_string(run.ops().front().id);
  Terminal terminal(std::move(run));
  CHECK_THAT(terminal.after("li " + own), contains("\n  " + dropped));
  CHECK_THAT(terminal.after("ni " + own), contains("  input 0: " + dropped));
}
