#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

namespace samples {

/// Reads the command line into the app's options and runs `body`. Whatever goes wrong becomes one sentence on stderr.
/// Returns the program's exit status: 0, 1 if the run failed, 2 if the command line is wrong.
template <class F>
int run(CLI::App& app, int argc, char** argv, F body) {
  try {
    app.parse(argc, argv);
    body();
    return 0;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}: {}; --help lists the options.\n", app.get_name(), error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    fmt::print(stderr, "{}: {}\n", app.get_name(), error.what());
    return 1;
  }
}

}  // namespace samples
