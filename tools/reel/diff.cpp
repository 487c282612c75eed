#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <reel/debug/diff.h>

#include "print.h"
#include "verb.h"

namespace {

void print_as_json(const reel::debug::RunDifference& found) {
  constexpr const char* kinds[] = {"values", "op", "end"};
  nlohmann::json json = {{"equal", found.equal()}, {"compared", found.compared}, {"differing", found.differing}};
  json["first"] = nlohmann::json::array();
  for (const reel::debug::OpDifference& one : found.first)
    json["first"].push_back({{"kind", kinds[static_cast<int>(one.kind)]},
                             {"a", one.a},
                             {"b", one.b},
                             {"output", one.output},
                             {"description", one.description}});
  print_json(json);
}

}  // namespace

std::function<int()> add_diff(CLI::App& command) {
  struct Arguments {
    std::string a, b;
    reel::debug::DiffOptions options;
    bool json = false;
  };
  auto given = std::make_shared<Arguments>();
  command.add_option("A", given->a, "a recording")->required();
  command.add_option("B", given->b, "another recording")->required();
  command.add_option("--tolerance", given->options.tolerance, "numbers may differ by so much")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--relative", given->options.relative, "numbers may differ by this fraction of the larger one")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--ignore-lines", given->options.ignore_lines, "lines may differ: the program has been changed");
  command.add_option("--most", given->options.most, "differences to show")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command.add_flag("--json", given->json, "prints JSON");
  return [given] {
    using reel::debug::RecordedRun;
    reel::debug::RunDifference found =
        reel::debug::diff(RecordedRun::read(given->a), RecordedRun::read(given->b), given->options);
    given->json ? print_as_json(found) : print("{}\n", to_string(found));
    return found.equal() ? 0 : 1;
  };
}
