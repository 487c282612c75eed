#pragma once

#include <cstdint>

namespace reel::detail {

/// An offset of a member or the size of a class, in bytes, which debuggers read from the memory of the library: they
/// then need no debug information of it. A table ends with an empty name; tools/gdb/reel_values.py reads it.
struct LayoutNumber {
  char name[32];
  std::uint64_t value;
};

}  // namespace reel::detail
