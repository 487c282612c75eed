#include <reel/debug/session.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include <reel/reel.h>
#include <reel/train/interruption.h>

#include "catch.h"
#include "debug/session/live_page.h"
#include "debug/session/page_server.h"
#include "io/folder.h"

using namespace reel;
using debug::Debugger;
using namespace reel_test;

namespace {

// Commands for a session, one list for each stop, and what it has printed.
struct Script {
  std::vector<std::vector<std::string>> stops;
  std::string printed = {};
  std::size_t stop_count = 0;

  debug::SessionOptions options(bool stop_at_start = false) {
    return {.stop_at_start = stop_at_start,
            .commands =
                [this](Debugger& debugger) {
                  std::vector<std::string> commands =
                      stop_count < stops.size() ? stops[stop_count] : std::vector<std::string>{"cont"};
                  ++stop_count;
                  auto next = Debugger::Next::command;
                  for (const std::string& command : commands)
                    if (next == Debugger::Next::command) next = debugger.execute(command);
                  return next;
                },
            .output = [this](std::string_view text) { printed += text; }};
  }
};

}  // namespace

TEST_CASE("the logarithm of a negative number 300 steps deep in a recurrent net is found live") {
  Script script{{{"cont until has_inf_or_nan"}, {"pt", "li -d 1", "where", "cont"}}};
  {
    debug::Session session(script.options(true));
    Tensor h = full({2}, 0.5);
    for (int t = 0; t < 310; ++t) {
      auto note = debug::note("t", t);
      h = t == 300 ? log(h - 2.0f) : tanh(h) + 0.1f;
    }
  }
  CHECK_THAT(script.printed, contains("the first op: %"));
  CHECK_THAT(script.printed, contains(" log at tests/debug/session_test.cpp:") && contains("step 0, with t = 300"));
  CHECK_THAT(script.printed, contains("[nan") && contains("sub at"));
  CHECK(script.stop_count == 2);
}

TEST_CASE("a session shows the program's own sources, wherever they are, to the debugger and to its page") {
  reel_test::Folder sources;
  const std::string file = sources.file("model.cpp");
  std::ofstream(file) << "text of the program\n";
  Script script{{{"src", "cont"}}};
  {
    debug::Session session(script.options(true));
    CallerScope scope({file.c_str(), 1});
    static_cast<void>(exp(ones({2})));
  }
  CHECK_THAT(script.printed, contains("1  text of the program"));
  debug::RecordedRun run;
  debug::RecordedOp op;
  op.id = 1;
  op.op = run.intern("exp");
  op.file = run.intern(file);
  run.add(std::move(op));
  Debugger debugger(run, {.output = [](std::string_view) {}});
  const std::string no_logs;
  debug::LivePage page(run, debugger, {}, no_logs);
  page.added(1);
  auto data = nlohmann::json::parse(page.answer({.what = "data", .body = "0 0 0 0 0"}).text);
  CHECK(page.answer({.what = "source", .body = data["file"][0].dump()}).text == R"(["text of the program"])");
}

TEST_CASE("a breakpoint stops after each call of an op for which its predicate is true") {
  Script script;
  debug::Session session(script.options());
  debug::break_on("exp", [](const debug::RecordedOp& op) { return op.outputs[0].shape == Shape{3}; });
  static_cast<void>(exp(ones({2})));
  CHECK(script.stop_count == 0);
  static_cast<void>(exp(ones({3})));
  CHECK(script.stop_count == 1);
  CHECK_THAT(script.printed, contains("breakpoint: %") && contains("exp at tests/debug/session_test.cpp:"));
  CHECK_THAT(error_of<Error>([] { debug::break_on("fly"); }), contains("debug::break_on: there is no op 'fly'"));
  CHECK_THAT(error_of<Error>([] { debug::break_on("linear"); }), contains("or it is composed of others"));
}

TEST_CASE("a watch stops at anomalies, bounds, zeros, large gradients and changes of scale") {
  auto stops = [](const debug::Watch& watch, auto f) {
    Script script;
    debug::Session session(script.options());
    debug::watch(watch);
    f();
    return script.printed;
  };
  CHECK_THAT(stops({.anomalies = true}, [] { static_cast<void>(log(zeros({1}))); }),
             contains("watch: NaN or infinity: %"));
  CHECK(stops({.anomalies = true}, [] { static_cast<void>(log(ones({1}))); }).empty());
  CHECK_THAT(stops({.bound = 10}, [] { static_cast<void>(ones({1}) * -11.0f); }),
             contains("watch: a magnitude above 10: %"));
  CHECK(stops({.bound = 12}, [] { static_cast<void>(ones({1}) * -11.0f); }).empty());
  CHECK_THAT(stops({.all_zero = true}, [] { static_cast<void>(relu(full({3}, -1))); }), contains("watch: all zero: %"));
  auto train = [](float factor) {
    Tensor w = ones({2}).requires_grad();
    optim::SGD sgd({w}, {.learning_rate = 1e-9});
    for (int step = 0; step < 2; ++step) {
      Tape tape;
      tape.backward(sum(w * (step == 1 ? factor : 1.0f)));
      sgd.step();
      sgd.zero_grad();
    }
  };
  CHECK_THAT(stops({.gradient_norm = 5}, [&] { train(50); }), contains("watch: a gradient's norm above 5: %"));
  CHECK(stops({.gradient_norm = 5}, [&] { train(1); }).empty());
  CHECK_THAT(stops({.scale_change = 20}, [&] { train(50); }),
             contains("watch: the norm is 50 times that of the step before"));
  CHECK(stops({.scale_change = 20}, [&] { train(2); }).empty());
  CHECK_THAT(error_of<Error>([] { debug::watch({.scale_change = 1}); }), contains("debug::watch: .bound is"));
}

TEST_CASE("watches see norms and magnitudes that are NaN or infinite") {
  auto stops = [](const debug::Watch& watch, double factor) {
    Script script;
    debug::Session session(script.options());
    debug::watch(watch);
    Tensor w = ones({2}).requires_grad();
    optim::SGD sgd({w}, {.learning_rate = 0});
    for (int step = 0; step < 2; ++step) {
      Tape tape;
      tape.backward(sum(w * (step == 1 ? factor : 1.0)));
      sgd.step();
      sgd.zero_grad();
    }
    return script.printed;
  };
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  CHECK_THAT(stops({.bound = 10}, infinity), contains("watch: a magnitude above 10: %"));
  CHECK_THAT(stops({.gradient_norm = 5}, infinity), contains("watch: a gradient's norm above 5: %"));
  CHECK_THAT(stops({.gradient_norm = 5}, nan), contains("watch: a gradient's norm is NaN: %"));
  CHECK_THAT(stops({.scale_change = 20}, infinity), contains("watch: the norm is inf times that of the step before"));
  CHECK_THAT(stops({.scale_change = 20}, nan), contains("watch: the norm is nan times that of the step before"));
  CHECK(stops({.all_zero = true}, nan).empty());
  Script script;
  debug::Session session(script.options());
  debug::watch({.all_zero = true});
  static_cast<void>(zeros({2, 3}));
  CHECK(script.stop_count == 0);
}

TEST_CASE("a watch for changes of scale looks at what ops compute, and not at the data that they are given") {
  std::vector<Tensor> data{ones({3}), full({3}, 100)};
  auto stops = [&](auto f) {
    Script script;
    debug::Session session(script.options());
    debug::watch({.scale_change = 20});
    Tensor w = ones({3}).requires_grad();
    optim::SGD sgd({w}, {.learning_rate = 0});
    for (const Tensor& x : data) {
      Tape tape;
      tape.backward(sum(w * f(x)));
      sgd.step();
      sgd.zero_grad();
    }
    return script.printed;
  };
  CHECK(stops([](const Tensor& x) { return sign(x); }).empty());
  CHECK_THAT(stops([](const Tensor& x) { return x; }),
             contains("watch: the norm is 100 times that of the step before"));
}

TEST_CASE("a running program is not let go until what cannot come true, or is no condition") {
  Script script{{{"run until step 0", "cont until id 1", "cont until bogus", "cont until op bogus", "cont until linear",
                  "cont until step", "cont until id 3"},
                 {"cont until tanh"}}};
  {
    debug::Session session(script.options(true));
    Tensor x = exp(ones({2}));
    x = log(x);
    x = tanh(x);
  }
  CHECK_THAT(script.printed,
             contains("error: the run cannot come to step 0 any more") &&
                 contains("error: the run cannot come to op %1 any more") &&
                 contains("error: there is no filter 'bogus'") && contains("error: there is no op 'bogus'") &&
                 contains("error: there is no filter 'linear'") && contains("error: there is no filter 'step'"));
  CHECK(script.stop_count == 3);
  CHECK_THAT(script.printed, contains("stopped: %3 ") && contains(" tanh at "));
}

TEST_CASE("a session stops where an op throws, and at stop() in the code") {
  Script script;
  debug::Session session(script.options());
  CHECK_THROWS_AS(matmul(ones({2, 3}), ones({2, 3})), ShapeError);
  CHECK_THAT(script.printed, contains("error: %") && contains("matmul at") && contains("matmul: "));
  static_cast<void>(exp(ones({1})));
  debug::stop();
  CHECK_THAT(script.printed, contains("stop() at tests/debug/session_test.cpp:") && contains("exp at"));
  CHECK(script.stop_count == 2);
  CHECK(session.run().ops().back().op == "exp");
}

TEST_CASE("step stops at the next op, and quit lets the program run on without stops") {
  Script script{{{"step"}, {"step 2"}, {"quit"}}};
  debug::Session session(script.options(true));
  Tensor x = exp(ones({1}));
  Tensor y = log(x), z = tanh(y), u = relu(z);
  debug::stop();
  CHECK(script.stop_count == 3);
  CHECK(u.defined());
}

TEST_CASE("a session stops at its end if that is asked for, also where an exception ends it") {
  Script script;
  debug::SessionOptions options = script.options();
  options.stop_at_end = true;
  auto fails = [&] {
    debug::Session session(options);
    static_cast<void>(exp(ones({1})));
    throw std::runtime_error("of the program");
  };
  CHECK_THROWS_AS(fails(), std::runtime_error);
  CHECK_THAT(script.printed, contains("the end of the session: %") && contains("exp at"));
  CHECK(script.stop_count == 1);
  options.commands = [](Debugger&) -> Debugger::Next { throw std::runtime_error("of the commands"); };
  auto ends = [&] {
    debug::Session session(options);
    static_cast<void>(exp(ones({1})));
  };
  CHECK_NOTHROW(ends());
}

TEST_CASE("a session that serves a page refuses other commands, and ports that do not exist") {
  debug::SessionOptions options{.commands = [](Debugger&) { return Debugger::Next::resume; }, .serve = true};
  CHECK_THAT(error_of<Error>([&] { debug::Session session(options); }),
             contains("debug::Session: commands come from .serve or from .commands, not from both"));
  CHECK_THAT(error_of<Error>([] { debug::Session session({.serve = true, .port = 70'000}); }),
             contains("debug::Session: .port is 70000"));
}

TEST_CASE("a page that asks late is told what the run still has, each thing once") {
  debug::RecordedRun run;
  Debugger debugger(run, {.output = [](std::string_view) {}});
  const std::string no_logs;
  debug::LivePage page(run, debugger, {}, no_logs);
  auto data = [&](const char* has) { return nlohmann::json::parse(page.answer({"data", has}).text); };
  constexpr std::uint64_t ops = 30'000, kept = 50;
  for (std::uint64_t id = 1; id <= ops; ++id) {
    debug::RecordedOp op;
    op.id = id;
    op.op = "exp";
    op.outputs.resize(1);
    run.add(op);
    page.added(id);
    run.rename({id, 0}, "h");
    page.renamed({id, 0});
    run.add_update({static_cast<std::int64_t>(id), "w", 1, 2, 3});
    run.keep_last(kept);
  }
  page.dropped_updates(run.keep_last_updates(10));
  nlohmann::json all = data("0 0 0 0 0 next");
  CHECK(all.at("id").size() == kept);
  CHECK(all.at("id").front() == ops - kept + 1);
  CHECK(all.at("skipped") == ops - kept);
  CHECK(all.at("nextOp") == ops);
  CHECK(all.at("names").size() == kept);
  CHECK(all.at("updates").size() == 10);
  CHECK(all.at("nextUpdate") == ops);
  nlohmann::json later = data("29999 0 29999 29999 0 next");
  CHECK(later.at("id") == std::vector<std::uint64_t>{ops});
  CHECK(later.at("names").size() == 1);
  CHECK(later.at("updates").size() == 1);
  nlohmann::json none = data("30000 4 30000 30000 0 newest");
  CHECK((none.at("id").empty() && none.at("names").empty() && none.at("updates").empty()));
  CHECK(data("99999 99 99999 99999 99 next").at("id").empty());  // of another session
  for (const char* broken : {"", "0 0 0 0", "-1 0 0 0 0 next", "0 0 x 0 0 next"}) CHECK_THROWS_AS(data(broken), Error);
}

TEST_CASE("a page is told the name of a tensor that is named again and again") {
  debug::RecordedRun run;
  Debugger debugger(run, {.output = [](std::string_view) {}});
  const std::string no_logs;
  debug::LivePage page(run, debugger, {}, no_logs);
  debug::RecordedOp op;
  op.id = 1;
  op.op = "exp";
  op.outputs.resize(1);
  run.add(op);
  page.added(1);
  for (int i = 0; i < 50'000; ++i) {
    run.rename({1, 0}, i % 2 == 0 ? "h" : "g");
    page.renamed({1, 0});
  }
  CHECK_FALSE(nlohmann::json::parse(page.answer({"data", "0 0 0 0 0 next"}).text).at("names").empty());
}

TEST_CASE("without a session, stop, watch and break_on do nothing") {
  debug::stop();
  debug::watch({.anomalies = true});
  debug::break_on("exp");
  CHECK(exp(zeros({1})).item() == 1);
}

TEST_CASE("a session keeps a bounded number of ops and knows filters of the program") {
  Script script{{{"lt -f small"}, {"cont"}}};
  debug::SessionOptions options = script.options();
  options.most_ops = 50;
  debug::Session session(options);
  session.add_filter("small",
                     [](const debug::RecordedOp&, const debug::RecordedTensor& x) { return x.shape.numel() == 1; });
  Tensor x = ones({1});
  for (int i = 0; i < 200; ++i) x = x + 1.0f;
  CHECK(session.run().ops().size() <= 50);
  CHECK(session.run().dropped() > 100);
  debug::stop();
  CHECK_THAT(script.printed, contains("add") && contains("(1,) f32"));
}

TEST_CASE("a session that waits for its page ends at the first signal that the program handles") {
  pid_t child = fork();
  if (child == 0) {
    alarm(20);  // ends a process that goes on waiting
    bool interrupted = false;
    {
      train::Interruption interruption;
      std::thread sender([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        kill(getpid(), SIGINT);
      });
      try {
        debug::Session session({.stop_at_end = true, .output = [](std::string_view) {}, .serve = true});
        static_cast<void>(exp(ones({1})));
      } catch (const train::Interrupted& signal) {
        interrupted = signal.exit_status() == 130;
      }
      sender.join();
    }
    _exit(interrupted ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

TEST_CASE("a server of a page that is closed as soon as it is open ends") {
  for (int i = 0; i < 30; ++i) try {
      debug::PageServer server(0, Location::here());
      CHECK(server.address().starts_with("http://127.0.0.1:"));
    } catch (const io::FileError&) {
      return;  // built without it
    }
}
