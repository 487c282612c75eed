#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include <reel/error.h>

namespace reel::detail {

/// Throws a copy of an error of `fail_for_memory` whose text goes on with `more` and a call site; allocates no memory
/// itself. Returns if it is another error.
void throw_extended(const MemoryError& error, std::string_view more, Location where);

/// Throws a copy of an error with another text; returns if the error is of another type than it knows. Set by a layer
/// that has an error of its own; null before.
extern std::atomic<void (*)(const Error& error, const std::string& text)> throw_with_text;

}  // namespace reel::detail
