#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <reel/train.h>

namespace samples {

/// A restriction of the values that an option accepts.
struct Accepted {
  enum class Kind { all, at_least, integers, numbers, words } kind = Kind::all;
  double low = 0, high = 0;
  std::vector<std::string> words = {};
};
/// Accepts numbers of `bound` or more.
Accepted at_least(double bound);
/// Accepts integers from `low` to `high`.
Accepted between(int low, int high);
/// Accepts numbers from `low` to `high`.
Accepted between(double low, double high);
/// Accepts one of several words.
Accepted one_of(std::vector<std::string> words);

/// The command line of a sample: its options, `--help`, and `--device`.
class CommandLine {
 public:
  /// `description`: the first text of `--help`.
  CommandLine(const std::string& description, const std::string& name);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Adds an option, whose default is the present `value`; `help`: its text in `--help`.
  void add_option(const char* name, std::string& value, const char* help, const Accepted& accepted = {});
  void add_option(const char* name, int& value, const char* help, const Accepted& accepted = {});
  void add_option(const char* name, std::int64_t& value, const char* help, const Accepted& accepted = {});
  void add_option(const char* name, std::uint64_t& value, const char* help, const Accepted& accepted = {});
  void add_option(const char* name, double& value, const char* help, const Accepted& accepted = {});
  /// Adds an option that may be absent: `value` is then nothing, for which `help` says what holds.
  void add_option(const char* name, std::optional<std::int64_t>& value, const char* help,
                  const Accepted& accepted = {});
  /// Adds an option without a value, which sets `value` to true.
  void add_flag(const char* name, bool& value, const char* help);

  /// Reads the command line into the options and runs `body`, which makes its tensors on the device that the caller
  /// names. Any error becomes one sentence on stderr.
  /// Returns the program's exit status: 0, 1 if the run failed, 2 if the command line is wrong, 128 and the signal's
  /// number if a signal ended the training.
  int run(int argc, char** argv, const std::function<void()>& body);

 private:
  int parse_and_run(int argc, char** argv, const std::function<void()>& body);

  struct Parser;
  std::unique_ptr<Parser> parser_;
};

/// Flushes stdout. Throws: std::runtime_error if writing fails, for example to a full disk or a pipe
/// without a reader.
void flush_output();

/// The text of `--help` for `--save` in samples that use `train_and_save`.
constexpr const char* save_help =
    "file for the weights of the epoch that does best on the dev set, or of --load if none does better; a run that "
    "SIGINT, SIGTERM or an error ends saves its best epoch so far, signals also an unfinished first one; what is NaN "
    "or infinite is never saved";

/// Calls `train`, restores the best weights, and calls `save`; also if `train` ends early, by a signal or by an
/// exception, unless nothing was learnt. `path`: the file that `save` writes; "": `save` is not called.
/// Throws: std::runtime_error, which `run` prints, if the training ended early; the exceptions of `save`.
void train_and_save(reel::train::BestWeights& best, const std::string& path, const std::function<void()>& train,
                    const std::function<void()>& save);

}  // namespace samples
