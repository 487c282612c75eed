#include <sys/ioctl.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <reel/debug/debugger.h>

#include "print.h"
#include "verb.h"

namespace {

// The columns of the terminal; a pipe gets lines of any length.
int terminal_width() {
  winsize size = {};
  if (isatty(STDOUT_FILENO) == 0) return 1000;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 120;
}

}  // namespace

std::function<int()> add_debug(CLI::App& command) {
  struct Arguments {
    std::string file;
    std::vector<std::string> commands, folders;
    bool json = false;
  };
  auto given = std::make_shared<Arguments>();
  command.add_option("FILE", given->file, "a recording")->required();
  command.add_option("-c,--command", given->commands, "a command to run instead of those of the input; repeatable")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command
      .add_option("--source", given->folders,
                  "a folder below which source files are searched, as below the current one; repeatable")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command.add_flag("--json", given->json, "prints what each --command has printed as JSON");
  return [given] {
    using reel::debug::Debugger;
    if (given->json && given->commands.empty()) throw CLI::ValidationError("--json", "needs --command");
    reel::debug::RecordedRun run = reel::debug::RecordedRun::read(given->file);
    std::string printed;
    Debugger debugger(run, {.output =
                                [&](std::string_view text) {
                                  if (given->json) {
                                    printed += text;
                                    return;
                                  }
                                  print_text(text);
                                  std::fflush(stdout);
                                },
                            .width = terminal_width(),
                            .source_folders = given->folders});
    auto next = Debugger::Next::command;
    nlohmann::json results = nlohmann::json::array();
    for (const std::string& line : given->commands) {
      if (next != Debugger::Next::command) break;
      int failures = debugger.failures();
      printed.clear();
      next = debugger.execute(line);
      results.push_back({{"command", line}, {"output", printed}, {"failed", debugger.failures() > failures}});
    }
    if (given->json) print_json(results);
    if (!given->commands.empty()) return debugger.failures() == 0 ? 0 : 1;
    bool on_terminal = isatty(STDIN_FILENO) != 0;
    if (on_terminal) {
      debugger.execute("where");
      print("`help` lists the commands.\n");
    }
    std::setlocale(LC_CTYPE, "");  // the line editor reads the letters of the terminal's encoding
    run_commands(debugger);
    return on_terminal || debugger.failures() == 0 ? 0 : 1;
  };
}
