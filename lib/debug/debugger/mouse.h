#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace reel::debug {

/// The id of the op that a printed text, which ends with a line end, names at a place of the terminal: the last id at or
/// before the place in its line, else the line's first. `rows_up`: how far above the row behind the text, from 1;
/// `column`: from 1. None: no op is named there.
std::optional<std::uint64_t> op_at(std::string_view printed, int columns, int rows_up, int column);

/// The keys of a terminal for the line editor, without what the terminal says of the mouse: a click on an op that was
/// printed becomes the command `ni %ID`, or, within a command, the op's id.
class Keys {
 public:
  bool has_mouse() const { return has_mouse_; }
  void use_mouse(bool on) { has_mouse_ = on; }
  /// Text has been printed, or read with its prompt.
  void add(std::string_view text);
  /// The rows above are not known any more.
  void forget() { printed_.clear(); }

  /// A line begins, whose prompt is about to be printed.
  void begin_line();
  /// The line is read.
  void end_line();
  /// The next key, as a code point; −1 at the end of the input.
  int next();

 private:
  int next_byte(int milliseconds);
  int code_point(int first);
  bool take_report();
  void click(int row, int column);

  bool has_mouse_ = false, asked_ = false;
  std::string printed_;
  std::optional<int> prompt_row_;
  std::deque<int> bytes_;    // read, and not looked at yet
  std::deque<int> pending_;  // keys that a click stands for
  int typed_ = 0;            // keys of this line
};

}  // namespace reel::debug
