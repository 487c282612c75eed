#pragma once

#include <exception>

#include "../core/modules/module_table.h"
#include "atomic_file.h"

namespace reel::detail {

/// A file that a module writes; exceptions wait until the module has returned.
struct PositionedFile {
  io::AtomicFile& file;
  std::exception_ptr failure = nullptr;

  /// To be passed to one call; refers to this object.
  PositionedSink sink() { return {this, write}; }

 private:
  static bool write(void* object, std::uint64_t offset, const void* bytes, std::size_t count) noexcept {
    auto& own = *static_cast<PositionedFile*>(object);
    try {
      own.file.write_at(offset, {static_cast<const std::byte*>(bytes), count});
      return true;
    } catch (...) {
      own.failure = std::current_exception();
      return false;
    }
  }
};

}  // namespace reel::detail
