// A program that looks at what it has computed, with what libreel_debug has: a recorded run, a debugger, a report, a figure.

#include <reel/debug/debugger.h>
#include <reel/debug/recording.h>
#include <reel/debug/report.h>
#include <reel/logging/writer.h>
#include <reel/ops.h>

#include <cstdio>
#include <string>

using namespace reel;

int main() {
  {
    debug::Recording recording("looks.reel");
    Tensor y = tanh(full({2, 2}, 0.5));
    logging::Writer("looks").figure("y", logging::HeatMap{.values = y}, 0);
  }
  debug::RecordedRun run = debug::RecordedRun::read("looks.reel");
  std::string printed;
  debug::Debugger debugger(run, {.output = [&](std::string_view text) { printed += text; }});
  debugger.execute("lt");
  debug::report("looks.reel", "looks.html");
  std::printf("tanh is %s\n", printed.find("tanh") == printed.npos ? "missing" : "listed");
}
