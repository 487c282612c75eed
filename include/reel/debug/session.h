#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <reel/debug/debugger.h>
#include <reel/detail/immovable.h>

namespace reel::debug {

/// Options of `Session`.
struct SessionOptions {
  /// The largest number of ops that are kept; the oldest are dropped. Default 100,000.
  std::size_t most_ops = 100'000;
  /// The largest number of elements of a tensor whose values are kept. Default 4,096.
  std::int64_t value_elements = 4096;
  /// Whether the session stops at the first op, where conditions and filters can be set. Default true.
  bool stop_at_start = true;
  /// Whether the session stops where an op throws. Default true.
  bool stop_on_error = true;
  /// Whether the session stops at its end, where all of the run can be looked at. Default false.
  bool stop_at_end = false;
  /// Called at each stop; runs commands until one lets the program run on. Default: reads them from standard input.
  std::function<Debugger::Next(Debugger& debugger)> commands = {};
  /// Receives what the debugger prints. Default: standard output.
  std::function<void(std::string_view text)> output = {};
  /// Folders in which source files are searched, beside the current one.
  std::vector<std::string> source_folders = {};
  /// Whether commands come from a page that the session serves to this machine's browsers, instead of standard input.
  /// Requests must have the random token of its address. Default false: nothing listens.
  bool serve = false;
  /// The port of the page, at 127.0.0.1; 0: any free one. Default 0.
  int port = 0;
  /// A folder of logs whose curves and pictures the page shows, too. Default empty: none.
  std::string logs = {};
};

/// A debugger on the running program: while it lives, ops of this thread are recorded in memory, and the program stops
/// at a breakpoint, a watch, an error, or `debug::stop()`, after the op has run, and reads commands, those of `reel
/// debug`. `cont`, `cont until CONDITION` and `step` let it run on, `quit` without further stops. With `.serve` a page
/// takes the place of the terminal, and ops and values come into it while the program runs; waiting for it ends with
/// `train::Interrupted` at a signal that a `train::Interruption` handles. Lives on the stack only; breakpoints and watches
/// belong to the innermost session of their thread.
class Session : detail::Immovable {
 public:
  /// Begins a session on this thread. With `.serve` it prints the page's address.
  /// Throws: Error for `.serve` with `.commands`, and for a port that is taken; FileError if libreel_serve.so is missing.
  explicit Session(SessionOptions options = {}, Location where = Location::here());
  /// Ends the session; with `.stop_at_end` it first waits for commands.
  ~Session();
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

  /// The ops so far.
  const RecordedRun& run() const;
  /// The address of the page, "http://127.0.0.1:PORT/TOKEN/"; empty without `.serve`.
  std::string_view address() const;
  /// Adds a filter of the program's own, which `lt -f NAME` and `cont until NAME` know. Throws: Error for an empty name
  /// or filter.
  void add_filter(std::string_view name, TensorFilter filter, Location where = Location::here());

  class Live;

 private:
  std::unique_ptr<Live> live_;
};

/// Conditions that `watch` looks for in every tensor; several may be set at once.
struct Watch {
  bool anomalies = false;  ///< NaN or infinity. Default false
  /// A tensor of zeros only, with 2 elements or more, that is not made as such by `zeros` and the like. Default false
  bool all_zero = false;
  double bound = std::numeric_limits<double>::infinity();  ///< an element of a larger magnitude. Default ∞: none
  /// A gradient of a larger Euclidean norm, or with NaN. Default ∞: none.
  double gradient_norm = std::numeric_limits<double>::infinity();
  /// A Euclidean norm that is larger or smaller by this factor, above 1, than that of the tensor which the line gave at
  /// its execution of the same index in the step before, or NaN now. Default ∞: none.
  double scale_change = std::numeric_limits<double>::infinity();
};

/// Lets this thread's session stop where a tensor is as described; without a session it does nothing. Throws: Error
/// unless `bound` and `gradient_norm` are at least 0, and `scale_change` is above 1.
void watch(const Watch& what, Location where = Location::here());

/// Lets this thread's session stop after each call of an op for which `predicate` is true; an empty one always is.
/// Without a session it does nothing. Throws: Error for an op that does not exist, or is composed of others.
void break_on(std::string_view op, std::function<bool(const RecordedOp& op)> predicate = {},
              Location where = Location::here());

/// Stops in this thread's session, after the last op; without a session it does nothing.
void stop(Location where = Location::here());

}  // namespace reel::debug
