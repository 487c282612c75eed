// The command-line tool: reel VERB.

#include <cstdio>
#include <exception>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <reel/logging/plot.h>
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
  CLI::App app("Looks after what reel computes on, and shows what it has logged.", "reel");
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", version_line(), "Prints the version.");
  CLI::App* devices = app.add_subcommand("devices", "Lists the CPU and the GPUs, or says why there is none of these.");
  CLI::App* plot = app.add_subcommand("plot", "Draws the logs of a folder and those within it as one HTML page.");
  std::string directory, page = "curves.html", title;
  plot->add_option("DIR", directory, "the folder")->required();
  plot->add_option("-o,--output", page, "the page")->capture_default_str();
  plot->add_option("--title", title, "its title; default: the name of the folder");
  try {
    app.parse(count, arguments);
    if (devices->parsed()) {
      print_devices();
    } else if (plot->parsed()) {
      reel::logging::plot(directory, page, {.title = title}, {});
      fmt::print("{}\n", page);
    } else {
      fmt::print("{}", app.help());
    }
    return 0;
  } catch (const CLI::Success& asked) {  // for help or the version
    return app.exit(asked);
  } catch (const CLI::ExtrasError&) {
    std::string unknown = count > 1 ? arguments[1] : "";
    if (unknown == "devices")
      fmt::print(stderr, "reel: devices takes no arguments\n");
    else if (unknown == "plot")
      fmt::print(stderr, "reel: plot takes one folder\n");
    else
      fmt::print(stderr, "reel: there is no verb '{}'; there are: devices, plot\n", unknown);
    return 2;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "reel: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "reel: {}\n", error.what());
    return 1;
  }
}
