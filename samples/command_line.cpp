#include "command_line.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <reel/cuda.h>
#include <CLI/CLI.hpp>

#include "ranks/ranks.h"

namespace samples {
namespace {

// The end of a training run before its last epoch: a sentence for stderr and the program's exit status.
struct EarlyEnd : std::runtime_error {
  EarlyEnd(const std::string& sentence, int status) : std::runtime_error(sentence), status(status) {}
  int status;
};

// Refuses numbers below a bound, in a sentence that a reader of the command line understands.
CLI::Validator at_least_validator(double bound) {
  auto check = [bound](const std::string& text) {
    bool fits = std::strtod(text.c_str(), nullptr) >= bound;
    return fits ? std::string() : fmt::format("{} is not a number of {} or more", text, bound);
  };
  return {check, fmt::format(">= {}", bound)};
}

void limit(CLI::Option& option, const Accepted& accepted) {
  switch (accepted.kind) {
    case Accepted::Kind::all: break;
    case Accepted::Kind::at_least: option.check(at_least_validator(accepted.low)); break;
    case Accepted::Kind::integers:
      option.check(CLI::Range(static_cast<int>(accepted.low), static_cast<int>(accepted.high)));
      break;
    case Accepted::Kind::numbers: option.check(CLI::Range(accepted.low, accepted.high)); break;
    case Accepted::Kind::words: option.check(CLI::IsMember(accepted.words)); break;
  }
}

}  // namespace

Accepted at_least(double bound) { return {.kind = Accepted::Kind::at_least, .low = bound}; }
Accepted between(int low, int high) {
  return {.kind = Accepted::Kind::integers, .low = static_cast<double>(low), .high = static_cast<double>(high)};
}
Accepted between(double low, double high) { return {.kind = Accepted::Kind::numbers, .low = low, .high = high}; }
Accepted one_of(std::vector<std::string> words) { return {.kind = Accepted::Kind::words, .words = std::move(words)}; }

struct CommandLine::Parser {
  CLI::App app;

  Parser(const std::string& description, const std::string& name) : app(description, name) {
    app.option_defaults()->always_capture_default();
  }
};

CommandLine::CommandLine(const std::string& description, const std::string& name)
    : parser_(std::make_unique<Parser>(description, name)) {}
CommandLine::~CommandLine() = default;

void CommandLine::add_option(const char* name, std::string& value, const char* help, const Accepted& accepted) {
  limit(*parser_->app.add_option(name, value, help), accepted);
}
void CommandLine::add_option(const char* name, int& value, const char* help, const Accepted& accepted) {
  limit(*parser_->app.add_option(name, value, help), accepted);
}
void CommandLine::add_option(const char* name, std::int64_t& value, const char* help, const Accepted& accepted) {
  limit(*parser_->app.add_option(name, value, help), accepted);
}
void CommandLine::add_option(const char* name, std::uint64_t& value, const char* help, const Accepted& accepted) {
  limit(*parser_->app.add_option(name, value, help), accepted);
}
void CommandLine::add_option(const char* name, double& value, const char* help, const Accepted& accepted) {
  limit(*parser_->app.add_option(name, value, help), accepted);
}
void CommandLine::add_option(const char* name, std::optional<std::int64_t>& value, const char* help,
                             const Accepted& accepted) {
  limit(*parser_->app.add_option(name, value, help), accepted);
}
void CommandLine::add_flag(const char* name, bool& value, const char* help) {
  parser_->app.add_flag(name, value, help);
}

int CommandLine::run(int argc, char** argv, const std::function<void()>& body) {
  return run_on_ranks([&] { return parse_and_run(argc, argv, body); });
}

int CommandLine::parse_and_run(int argc, char** argv, const std::function<void()>& body) {
  // Writing to a pipe without a reader then fails instead of ending the process.
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App& app = parser_->app;
  std::string device = "cpu";
  app.add_option("--device", device, "cpu, cuda:0, …, or cuda:auto for the GPU with most free memory");
  try {
    try {
      app.parse(argc, argv);
      reel::DeviceGuard guard(reel::parse_device(device));
      body();
    } catch (const CLI::Success& help) {
      app.exit(help);
    }
    flush_output();
    return 0;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}: {}; --help lists the options.\n", app.get_name(), error.what());
    return 2;
  } catch (const EarlyEnd& end) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), end.what());
    return end.status;
  } catch (const reel::train::Interrupted& interrupted) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), interrupted.what());
    return interrupted.exit_status();
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "{}: there is not enough memory; choose smaller sizes.\n", app.get_name());
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), error.what());
    return 1;
  }
}

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return;
  throw std::runtime_error(
      fmt::format("cannot write to stdout: {}", errno != 0 ? std::strerror(errno) : "some output was lost"));
}

void train_and_save(reel::train::BestWeights& best, const std::string& path, const std::function<void()>& train,
                    const std::function<void()>& save) {
  auto save_best = [&] {
    best.restore();
    if (!path.empty()) save();
  };
  auto end_early = [&](const std::string& why, int status) {
    bool saves = !path.empty() && !best.empty();
    if (saves) save_best();
    std::string then = path.empty() ? "" : saves ? "; the best weights so far are in '{}'" : "; '{}' was not written";
    throw EarlyEnd(why + fmt::format(fmt::runtime(then), path), status);
  };
  reel::train::Interruption interruption;
  try {
    train();
    reel::train::check_interruption();
    if (best.empty()) best.offer(0);  // no epoch has run
  } catch (const reel::train::Interrupted& interrupted) {
    // The weights of an unfinished first epoch are saved, too.
    if (best.empty()) best.offer(0);
    end_early(interrupted.what(), interrupted.exit_status());
  } catch (const std::bad_alloc&) {
    end_early("there is not enough memory; choose smaller sizes", 1);
  } catch (const std::exception& error) {
    end_early(error.what(), 1);
  }
  save_best();
}

}  // namespace samples
