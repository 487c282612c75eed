#pragma once

#include <string>

#include <reel/location.h>

namespace reel::debug {

/// The picture that Graphviz's program dot makes of a graph in its language, as SVG. Throws: Error, in the name of
/// `function`, if the program is missing or fails.
std::string svg_of(const std::string& dot, const char* function, Location where);

}  // namespace reel::debug
