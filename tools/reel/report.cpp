#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <reel/debug/report.h>

#include "print.h"
#include "verb.h"

std::function<int()> add_report(CLI::App& command) {
  struct Arguments {
    std::vector<std::string> runs;
    std::string page = "report.html";
    reel::debug::ReportOptions options;
    bool json = false;
  };
  auto given = std::make_shared<Arguments>();
  command.add_option("RUN", given->runs, "recordings, and a folder of logs")->required();
  command.add_option("-o,--output", given->page, "the page")->capture_default_str();
  command.add_option("--title", given->options.title, "its title; default: the names of the runs");
  command
      .add_option("--source", given->options.source_folders,
                  "a folder below which source files are searched, as below the current one; repeatable")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command.add_flag("--json", given->json, "prints JSON");
  return [given] {
    reel::debug::report(given->runs, given->page, given->options, {});
    given->json ? print_json(nlohmann::json{{"file", given->page}}, -1) : print("{}\n", given->page);
    return 0;
  };
}
