#pragma once

#include <string>

namespace reel::detail {

struct Context;

/// A note that is active on a thread or fibre: a node of a list from the innermost note to the outermost one.
struct ActiveNote {
  const ActiveNote* outer = nullptr;
  const char* key = nullptr;
  /// Appends the text of the value.
  void (*append_value)(const ActiveNote& frame, std::string& text) = nullptr;
};

/// The notes from the outermost to `innermost`: "epoch = 2, t = 31"; empty for null.
std::string notes_text(const ActiveNote* innermost);

}  // namespace reel::detail
