#pragma once

#include <string>

namespace reel {

/// A place in the caller's source. Default arguments fill it, so that a function taking one knows who called it.
struct Location {
  const char* file = nullptr;
  int line = 0;

  /// The place where this function is called.
  static constexpr Location here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  friend bool operator==(const Location&, const Location&) = default;
};

/// `file:line`, without leading `../`; `unknown place` if empty.
std::string to_string(Location where);

/// While it lives, every op of this thread reports `where` as its caller, unless an outer scope already names one:
/// a function composed of several ops opens one with the place of its own caller.
class CallerScope {
 public:
  explicit CallerScope(Location where);
  ~CallerScope();
  CallerScope(const CallerScope&) = delete;
  CallerScope& operator=(const CallerScope&) = delete;

 private:
  bool opened_;
};

}  // namespace reel
