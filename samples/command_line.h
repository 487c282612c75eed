#pragma once

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <reel/cuda.h>
#include <reel/train.h>
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

/// Sends what was printed on its way. Throws: std::runtime_error if stdout takes it no longer, as a full disk or a pipe
/// without a reader.
inline void flush_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return;
  throw std::runtime_error(
      fmt::format("cannot write to stdout: {}", errno != 0 ? std::strerror(errno) : "some output was lost"));
}

/// The end of a training run before its last epoch: a sentence for stderr and the program's exit status.
struct EarlyEnd : std::runtime_error {
  EarlyEnd(const std::string& sentence, int status) : std::runtime_error(sentence), status(status) {}
  int status;
};

/// What `--help` says of `--save` where `train_and_save` saves.
constexpr const char* save_help =
    "file for the weights of the epoch that does best on the dev set, or of --load if none does better; a run that "
    "SIGINT, SIGTERM or an error ends saves its best epoch so far, signals also an unfinished first one; what is NaN "
    "or "
    "infinite is never saved";

/// Calls `train`, gives the module the best weights, and calls `save`; also where `train` ends early, by a signal or by an
/// exception, unless there is nothing worth saving. `path`: the file that `save` writes; "": it is not called.
/// Throws: EarlyEnd; what `save` throws.
template <class Train, class Save>
void train_and_save(reel::train::BestWeights& best, const std::string& path, Train train, Save save) {
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
    if (best.empty()) best.offer(0);  // there was no epoch
  } catch (const reel::train::Interrupted& interrupted) {
    // A first epoch that has not ended is better than nothing.
    if (best.empty()) best.offer(0);
    end_early(interrupted.what(), interrupted.exit_status());
  } catch (const std::bad_alloc&) {
    end_early("there is not enough memory; choose smaller sizes", 1);
  } catch (const std::exception& error) {
    end_early(error.what(), 1);
  }
  save_best();
}

/// Reads the command line into the app's options and runs `body`, which makes its tensors on the device that the caller
/// names. Whatever goes wrong becomes one sentence on stderr.
/// Returns the program's exit status: 0, 1 if the run failed, 2 if the command line is wrong, 128 and the signal's number
/// if a signal ended the training.
template <class F>
int run(CLI::App& app, int argc, char** argv, F body) {
  // Writing to a pipe without a reader is then an error.
  std::signal(SIGPIPE, SIG_IGN);
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
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "{}: there is not enough memory; choose smaller sizes.\n", app.get_name());
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), error.what());
    return 1;
  }
}

}  // namespace samples
