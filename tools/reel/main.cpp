// The command-line tool: reel VERB.

#include <cstdio>
#include <exception>
#include <string>

#include <fmt/format.h>

#include <reel/version.h>

#include "print.h"
#include "verb.h"

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> all = {
      {"completion", "Prints what bash or zsh needs to complete commands of reel.", add_completion},
      {"convert", "Converts a file of tensors to the safetensors, npz or npy format.", add_convert},
      {"debug", "Looks into a recording: lists tensors, shows ops, values, gradients and source lines.", add_debug},
      {"devices", "Lists the CPU and the GPUs, or says why there is none of these.", add_devices},
      {"diff", "Names the first op whose values differ between two recordings.", add_diff},
      {"inspect", "Lists the tensors of a file with their forms and statistics, or compares two files.", add_inspect},
      {"ops", "Lists all ops, by families.", add_ops},
      {"plot", "Draws the logs of a folder and those within it as one HTML page.", add_plot},
      {"report", "Writes recordings and logs as one HTML page, which steps through their ops.", add_report},
      {"trace", "Writes a recording as a trace for ui.perfetto.dev.", add_trace},
  };
  return all;
}

namespace {

constexpr int done = 0, failed = 1, wrong_usage = 2;

std::string version_line() {
  std::string text = fmt::format("reel {}", reel::version.string);
  if (!(reel::library_version() == reel::version))
    text += fmt::format(", with the library of {}", reel::library_version().string);
  return text;
}

// "devices takes no arguments" and the like, for arguments that CLI11 does not know.
std::string usage_error(const std::string& unknown) {
  std::string names;
  for (const Verb& verb : verbs()) {
    if (unknown == verb.name)
      return fmt::format("{} takes no such arguments; `reel {} --help` lists them", unknown, unknown);
    names += (names.empty() ? "" : ", ") + std::string(verb.name);
  }
  return fmt::format("there is no verb '{}'; there are: {}", unknown, names);
}

void print_error(std::string_view sentence) { print_text(fmt::format("reel: {}\n", sentence), stderr); }

}  // namespace

int main(int count, char** arguments) {
  CLI::App app("Looks into runs, and shows what reel computes on and what it has logged.", "reel");
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", version_line(), "Prints the version.");
  app.footer("Exit status: 0 done, 1 failed or, of a comparison, different, 2 wrong usage.");
  std::function<int()> run;
  for (const Verb& verb : verbs()) {
    CLI::App* command = app.add_subcommand(verb.name, verb.help);
    command->final_callback([&run, action = verb.add(*command)] { run = action; });
  }
  try {
    app.parse(count, arguments);
    if (run) return run();
    fmt::print("{}", app.help());
    return done;
  } catch (const CLI::Success& asked) {  // for help or the version
    return app.exit(asked);
  } catch (const CLI::ExtrasError&) {
    print_error(usage_error(count > 1 ? arguments[1] : ""));
    return wrong_usage;
  } catch (const CLI::ParseError& error) {
    print_error(error.what());
    return wrong_usage;
  } catch (const std::exception& error) {
    print_error(error.what());
    return failed;
  }
}
