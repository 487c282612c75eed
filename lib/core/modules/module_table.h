#pragma once

#include <cstddef>
#include <cstdint>

// Included by modules, too: no header of it needs a symbol of reel.

namespace reel::detail {

/// The shared module that has a table of functions, and the version that it must have.
struct ModuleName {
  const char* name;       ///< "reel_files" of libreel_files.so
  const char* purpose;    ///< what programs need it for, in the plural: "compressed files and images"
  const char* packages;   ///< Debian's packages of the libraries that it is linked with
  std::uint32_t version;  ///< of the table; each change of the table increases it
};

/// The text of a failure in a module.
struct ModuleMessage {
  char text[240];
};

/// Receives bytes from a module piece by piece.
struct ByteSink {
  void* object;
  /// Returns false to end the call that delivers the bytes.
  bool (*append)(void* object, const void* bytes, std::size_t count) noexcept;
};

/// A file that a module writes, which grows as needed.
struct PositionedSink {
  void* object;
  /// Writes bytes at an offset from the file's beginning. Returns false on failure.
  bool (*write)(void* object, std::uint64_t offset, const void* bytes, std::size_t count) noexcept;
};

/// The type of a module's only symbol, `reel_module_table`: returns the module's table, or null if its version or size
/// in bytes differs. Tables hold plain functions, which throw nothing and use no symbol of reel, so that modules work
/// with libreel.so and libreel.a alike.
using ModuleTable = const void*(std::uint32_t version, std::size_t bytes) noexcept;

/// The result of a module's `reel_module_table` for a program that was built for this version and size of its table.
template <class Table>
const void* table_if_compatible(const Table& table, std::uint32_t version, std::size_t bytes) noexcept {
  return version == Table::module.version && bytes == sizeof table ? &table : nullptr;
}

}  // namespace reel::detail
