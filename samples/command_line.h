#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>

#include <fmt/format.h>
#include <reel/cuda.h>
#include <CLI/CLI.hpp>

namespace samples {

/// Refuses numbers below a bound, in a sentence that a reader of the command line understands.
inline CLI::Validator at_least(double bound) {
  auto check = [bound](const std::string& text) {
    bool fits = std::strtod(text.c_str(), nullptr) >= bound;
    return fits ? std::string() : fmt::format("{} is not a number of {} or more", text, bound);
  };
  return {check, fmt::format(">= {}", bound)};
}

/// Reads the command line into the app's options and runs `body`, which makes its tensors on the device that the caller
/// names. Whatever goes wrong becomes one sentence on stderr.
/// Returns the program's exit status: 0, 1 if the run failed, 2 if the command line is wrong.
template <class F>
int run(CLI::App& app, int argc, char** argv, F body) {
  std::string device = "cpu";
  app.add_option("--device", device, "cpu, cuda:0, …, or cuda:auto for the GPU with most free memory");
  try {
    app.parse(argc, argv);
    reel::DeviceGuard guard(reel::parse_device(device));
    body();
    return 0;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}: {}; --help lists the options.\n", app.get_name(), error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "{}: there is not enough memory; choose smaller sizes.\n", app.get_name());
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), error.what());
    return 1;
  }
}

}  // namespace samples
