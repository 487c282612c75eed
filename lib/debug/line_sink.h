#pragma once

#include <iostream>

#include <reel/debug/log_placement.h>

namespace reel::debug {

/// The sink, or stderr if it is empty.
inline LineSink or_stderr(LineSink sink) {
  if (sink) return sink;
  return [](const std::string& line) { std::cerr << line + '\n'; };
}

}  // namespace reel::debug
