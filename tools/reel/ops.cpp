#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <reel/debug/ops.h>

#include "print.h"
#include "verb.h"

std::function<int()> add_ops(CLI::App& command) {
  struct Arguments {
    bool internal = false, json = false;
  };
  auto given = std::make_shared<Arguments>();
  command.add_flag("--internal", given->internal, "also those that run within gradients only");
  command.add_flag("--json", given->json, "prints JSON");
  return [given] {
    std::vector<std::vector<std::string>> rows{{"op", "family", "batching", "gradient"}};
    nlohmann::json json = nlohmann::json::array();
    for (const reel::debug::OpDescription& op : reel::debug::ops()) {
      if (op.internal && !given->internal) continue;
      rows.push_back({std::string(op.name), std::string(op.family), std::string(op.batching),
                      op.differentiable           ? "yes"
                      : op.batching == "composed" ? "of its parts"
                                                  : "no"});
      json.push_back({{"name", op.name},
                      {"family", op.family},
                      {"batching", op.batching},
                      {"differentiable", op.differentiable},
                      {"internal", op.internal}});
    }
    if (given->json)
      print_json(json);
    else
      print_table(rows);
    return 0;
  };
}
