#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <reel/debug/debugger.h>

namespace reel::debug {

/// The arguments of a command, split at spaces; "…" keeps them together.
using Words = std::vector<std::string>;

/// Why a command failed: printed after "error: ".
struct CommandError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class... T>
[[noreturn]] void refuse_command(fmt::format_string<T...> sentence, T&&... values) {
  throw CommandError(fmt::format(sentence, std::forward<T>(values)...));
}

/// A tensor that a command names, with the part of it that the command asks for: "%12:1[0:3, 1]".
struct TensorReference {
  TensorId id;
  std::string part;  ///< what is between the brackets; empty: all
};

/// A condition of `run until` and `cont until`, with its text.
struct Condition {
  std::string text;
  std::function<bool(const RecordedOp&)> matches;
  bool is_position = false;  ///< true if it matches all ops from the first one on
};

/// The state that commands read and change.
struct Debugger::State {
  const RecordedRun& run;
  DebuggerOptions options;
  std::map<std::string, TensorFilter, std::less<>> filters = {};
  std::uint64_t cursor = 0;  ///< the id of the op at which the run is stopped; 0: before the first
  int failures = 0;
  Next next = Next::command;

  template <class... T>
  void print(fmt::format_string<T...> text, T&&... values) {
    print_text(fmt::format(text, std::forward<T>(values)...));
  }
  void print_text(const std::string& text);
  /// The op with the given id. Throws: CommandError if the run does not have it.
  const RecordedOp& op(std::uint64_t id) const;
  const RecordedTensor& tensor(TensorId id) const;
  /// The op of a word such as "%12" or "12"; the cursor's op for no word. Throws: CommandError.
  const RecordedOp& op_of(const Words& words) const;
  /// The tensor of a word such as "%12:1", "12" or "h[0]". Throws: CommandError.
  TensorReference reference(std::string_view word) const;
  const TensorFilter& filter(std::string_view name) const;
  /// The condition that words describe: a filter, "op NAME", "FILE:LINE", "step N", "id N", or the name of an op.
  Condition condition(const Words& words) const;
  bool may_run(std::string_view op) const;
  bool matches(const TensorFilter& filter, const RecordedOp& op) const;
};

/// A command: what it is called, how, what it does.
struct Command {
  const char* name;
  const char* usage;
  const char* help;
  void (*run)(Debugger::State& state, const Words& words);
};
/// All commands, in the order of `help`.
const std::vector<Command>& debugger_commands();

// The commands, by files.
void list_tensors(Debugger::State& state, const Words& words);  // listing.cpp
void show_op(Debugger::State& state, const Words& words);       // node.cpp
void show_inputs(Debugger::State& state, const Words& words);
void show_outputs(Debugger::State& state, const Words& words);
void show_gradient(Debugger::State& state, const Words& words);  // gradient.cpp
void print_tensor(Debugger::State& state, const Words& words);   // values.cpp
void compare_tensors(Debugger::State& state, const Words& words);
void show_source(Debugger::State& state, const Words& words);  // source.cpp
void show_cursor(Debugger::State& state, const Words& words);  // cursor.cpp
void step_forward(Debugger::State& state, const Words& words);
void step_back(Debugger::State& state, const Words& words);
void continue_run(Debugger::State& state, const Words& words);
void run_from_start(Debugger::State& state, const Words& words);

// How ops and tensors are written.
std::string form_of(const RecordedTensor& tensor);   ///< "(2, 3) f32"
std::string text_of_bytes(std::size_t bytes);        ///< "16.4 KB"
std::string text_of_time(std::int64_t nanoseconds);  ///< "12.3 µs"
std::string statistics_text(
    const RecordedTensor& tensor);                    ///< "min -1, max 2, mean 0.5, norm 3, 1 NaN, 0 Inf, 4 zeros"
std::string short_sentence_of(const RecordedOp& op);  ///< "%12 matmul at model.cpp:31 in encoder, step 0"
std::string sentence_of(const RecordedOp& op);        ///< with the notes, too: "…, with t = 3"
/// Rows in columns that are as wide as their longest cell, cut at `width`; the columns `right` are aligned to the right.
std::string table_of(const std::vector<std::vector<std::string>>& rows, int width,
                     const std::vector<std::size_t>& right = {});
/// A bar of at most `columns` characters.
std::string bar_of(double share, int columns);
/// An integer that a word holds. Throws: CommandError unless it is one and at least `least`.
std::int64_t integer_of(std::string_view word, const char* what, std::int64_t least = 0);

}  // namespace reel::debug
