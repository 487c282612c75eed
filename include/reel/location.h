#pragma once

#include <string>

#include <reel/detail/immovable.h>

namespace reel {

/// A line of the caller's source. Default arguments fill it, so that a function that takes one knows where it was
/// called.
struct Location {
  const char* file = nullptr;  ///< null: unknown
  int line = 0;                ///< from 1

  /// The location where this function is called.
  static constexpr Location here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  /// True if file and line are equal; files are compared by their pointers.
  friend bool operator==(const Location&, const Location&) = default;
};

/// The location as `file:line`, without leading `../`; `unknown place` if it is empty.
std::string to_string(Location where);

/// While it lives, every op of this thread reports `where` as its caller, unless an outer scope already names one: a
/// function composed of several ops opens one with its own caller's location.
class CallerScope : detail::Immovable {
 public:
  /// Opens the scope for the ops of this thread; it has no effect within another one. `function`: the name of the
  /// caller's function, for messages; null: unknown.
  explicit CallerScope(Location where, const char* function = nullptr);
  /// Ends the scope.
  ~CallerScope();

 private:
  bool opened_;
};

}  // namespace reel
