#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <reel/debug/recorded_run.h>
#include <reel/detail/immovable.h>

namespace reel::debug {

/// Chooses tensors: true for an output of an op that it selects.
using TensorFilter = std::function<bool(const RecordedOp& op, const RecordedTensor& output)>;

/// Options of `Debugger`.
struct DebuggerOptions {
  /// Receives what commands print, line by line or in larger pieces, with newlines. Must not be empty.
  std::function<void(std::string_view text)> output;
  /// The width of the terminal, in columns, at least 40. Default 120.
  int width = 120;
  /// Folders in which source files are searched that the recording does not hold, beside the current one. Links and
  /// hidden files below them, and files of more than 4 MB, are not read.
  std::vector<std::string> source_folders = {};
  /// For a program that is stopped: called with a condition by the commands that let it run on. Empty: the commands move
  /// through the recorded run.
  std::function<void(std::function<bool(const RecordedOp&)> stop_at)> resume = {};
};

/// The commands of `reel debug`, on a recorded run: they list tensors, show an op with its inputs, consumers, gradient
/// and source, print values, and move forward and backward through the run. `help` lists them. Tensors are named by the
/// id of their op, `%12` or `%12:1` for its second output, or by the name that the program gave them.
class Debugger : detail::Immovable {
 public:
  /// The step that follows a command.
  enum class Next : std::uint8_t {
    command,  ///< another command
    resume,   ///< the program runs on
    quit,     ///< the end of the session
  };

  /// A debugger at the beginning of a run, which must outlive it. Throws: Error without an output.
  Debugger(const RecordedRun& run, DebuggerOptions options, Location where = Location::here());
  /// Releases the debugger.
  ~Debugger();

  /// Runs one command. One that fails prints a sentence that begins with "error: ".
  Next execute(std::string_view line);
  /// The number of commands that have failed.
  int failures() const;
  /// Adds a filter of the program's own, which `lt -f NAME`, `run until NAME` and `cont until NAME` know; one of the
  /// same name is replaced. Throws: Error for an empty name or filter.
  void add_filter(std::string_view name, TensorFilter filter, Location where = Location::here());
  /// Moves the cursor to an op, and prints where it is.
  void stop_at(const RecordedOp& op, std::string_view reason);
  /// Possible completions of an incomplete line: commands, options, filters, ops, or names of tensors.
  std::vector<std::string> completions(std::string_view line) const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

/// Reads commands from standard input until its end or `quit`, and prints to standard output: with line editing, history and
/// completion if both are terminals and libedit is installed. Returns how the last command ended.
Debugger::Next run_commands(Debugger& debugger, std::string_view prompt = "(reel) ");

}  // namespace reel::debug
