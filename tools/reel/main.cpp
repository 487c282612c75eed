// The command-line tool: reel VERB.

#include <cstdio>
#include <exception>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <reel/version.h>

#include "devices.h"

namespace {

std::string version_line() {
  std::string text = fmt::format("reel {}", reel::version.string);
  if (!(reel::library_version() == reel::version))
    text += fmt::format(", with the library of {}", reel::library_version().string);
  return text;
}

}  // namespace

int main(int count, char** arguments) {
  CLI::App app("Looks after what reel computes on.", "reel");
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", version_line(), "Prints the version.");
  CLI::App* devices = app.add_subcommand("devices", "Lists the CPU and the GPUs, or says why there is none of these.");
  try {
    app.parse(count, arguments);
    if (devices->parsed())
      print_devices();
    else
      fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::Success& asked) {  // for help or the version
    return app.exit(asked);
  } catch (const CLI::ExtrasError&) {
    std::string unknown = count > 1 ? arguments[1] : "";
    if (unknown == "devices")
      fmt::print(stderr, "reel: devices takes no arguments\n");
    else
      fmt::print(stderr, "reel: there is no verb '{}'; there is: devices\n", unknown);
    return 2;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "reel: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "reel: {}\n", error.what());
    return 1;
  }
}
