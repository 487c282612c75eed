#pragma once

#include <functional>
#include <vector>

#include <CLI/CLI.hpp>

/// A verb of the tool: `reel NAME …`.
struct Verb {
  const char* name;
  const char* help;  ///< one line, for `reel --help`
  /// Adds the options of the verb; returns what runs it, and gives the exit status: 0 for done, 1 for failed or, of a
  /// comparison, for a difference. An exception is printed, and ends with 1.
  std::function<int()> (*add)(CLI::App& command);
};

/// All verbs, in the order of `reel --help`.
const std::vector<Verb>& verbs();

// The functions of the verbs, each in the file of its name.
std::function<int()> add_completion(CLI::App& command);
std::function<int()> add_convert(CLI::App& command);
std::function<int()> add_debug(CLI::App& command);
std::function<int()> add_devices(CLI::App& command);
std::function<int()> add_diff(CLI::App& command);
std::function<int()> add_inspect(CLI::App& command);
std::function<int()> add_ops(CLI::App& command);
std::function<int()> add_plot(CLI::App& command);
std::function<int()> add_report(CLI::App& command);
std::function<int()> add_trace(CLI::App& command);
