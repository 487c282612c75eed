#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <reel/debug/recorded_run.h>

#include "debug/profile/slices.h"
#include "print.h"
#include "verb.h"

std::function<int()> add_trace(CLI::App& command) {
  struct Arguments {
    std::string recording, trace = "trace.perfetto-trace";
    bool json = false;
  };
  auto given = std::make_shared<Arguments>();
  command.add_option("FILE", given->recording, "a recording")->required();
  command
      .add_option("-o,--output", given->trace, "the trace: Chrome's JSON if it ends in .json, else Perfetto's format")
      ->capture_default_str();
  command.add_flag("--json", given->json, "prints JSON");
  return [given] {
    reel::debug::RecordedRun run = reel::debug::RecordedRun::read(given->recording);
    reel::debug::write_trace(slices_of(run), run.program(), given->trace, {});
    given->json ? print_json(nlohmann::json{{"file", given->trace}}, -1) : print("{}\n", given->trace);
    return 0;
  };
}
