#include <memory>
#include <string>

#include <fmt/format.h>

#include <reel/debug/diff.h>

#include "verb.h"

std::function<int()> add_diff(CLI::App& command) {
  struct Arguments {
    std::string a, b;
    reel::debug::DiffOptions options;
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
  return [given] {
    using reel::debug::RecordedRun;
    reel::debug::RunDifference found =
        reel::debug::diff(RecordedRun::read(given->a), RecordedRun::read(given->b), given->options);
    fmt::print("{}\n", to_string(found));
    return found.equal() ? 0 : 1;
  };
}
