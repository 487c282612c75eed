#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <reel/logging/plot.h>

#include "print.h"
#include "verb.h"

std::function<int()> add_plot(CLI::App& command) {
  struct Arguments {
    std::string directory, page = "curves.html", title;
    bool json = false;
  };
  auto given = std::make_shared<Arguments>();
  command.add_option("DIR", given->directory, "the folder")->required();
  command.add_option("-o,--output", given->page, "the page")->capture_default_str();
  command.add_option("--title", given->title, "its title; default: the name of the folder");
  command.add_flag("--json", given->json, "prints JSON");
  return [given] {
    reel::logging::plot(given->directory, given->page, {.title = given->title}, {});
    given->json ? print_json(nlohmann::json{{"file", given->page}}, -1) : print("{}\n", given->page);
    return 0;
  };
}
