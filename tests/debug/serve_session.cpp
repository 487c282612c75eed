// Trains a small recurrent net in a session that serves its page, for tests of the page: serve_session STEPS [LOGS [PORT]].
// With `terminal` for LOGS the session reads commands from the standard input instead.
//
// The first line of its output ends with the page's address. In step 3, time step 5, a logarithm gives NaN.

#include <cstdint>
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include <reel/debug/session.h>
#include <reel/reel.h>

using namespace reel;

namespace {

struct Cell : nn::Module {
  using nn::Module::Module;
  nn::Linear input{*this, "input", 4, 8};
  nn::Linear state{*this, "state", 8, 8};

  Tensor operator()(const Tensor& x, const Tensor& h, Location where = Location::here()) const {
    return call("Cell", {x, h}, where, [&](const Tensor& x, const Tensor& h) { return tanh(input(x) + state(h)); });
  }
};

struct Net : nn::Module {
  Cell cell{*this, "cell"};
  nn::Linear output{*this, "output", 8, 2};
};

int run(int count, char** arguments) {
  std::int64_t steps = count > 1 ? std::stoll(arguments[1]) : 4;
  manual_seed(1);
  Net net;
  optim::SGD sgd(net.parameters(), {.learning_rate = 0.1});
  std::string logs = count > 2 ? arguments[2] : "";
  bool serves = logs != "terminal";
  debug::Session session({.source_folders = {REEL_SOURCE_ROOT},
                          .serve = serves,
                          .port = count > 3 ? std::stoi(arguments[3]) : 0,
                          .logs = serves ? logs : ""});
  session.add_filter("large",
                     [](const debug::RecordedOp&, const debug::RecordedTensor& t) { return t.statistics.max > 1e6; });
  for (std::int64_t step = 0; step < steps; ++step) {
    Tape tape;
    Tensor h = zeros({3, 8});
    for (int t = 0; t < 8; ++t) {
      auto note = debug::note("t", t);
      h = net.cell(randn({3, 4}), h);
      if (step == 3 && t == 5) static_cast<void>(log(h - 2.0f));
    }
    tape.backward(mean(square(net.output(h) - 1.0f)));
    sgd.step();
    sgd.zero_grad();
  }
  fmt::print("serve_session: done\n");
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const Error& error) {
    fmt::print(stderr, "serve_session: {}\n", error.what());
    return 1;
  }
}
