#pragma once

#include <cstddef>
#include <cstdint>

#include "../../core/dtype_dispatch.h"
#include "../../core/modules/module_table.h"

namespace reel::detail {

/// The type of a dataset's elements.
struct Hdf5Type {
  NumberKind kind;
  std::uint8_t bytes;
};

/// A dataset of numbers.
struct Hdf5Dataset {
  const char* path;  ///< from the file's root, without a slash before it; valid during the call
  std::uint32_t rank;
  std::uint64_t sizes[8];
  Hdf5Type type;
  std::uint64_t stored_bytes;  ///< in the file, if need be compressed
  bool is_compressed;          ///< by deflate
  bool has_other_filters;      ///< another compression, or deflate again: a byte can become any number
  bool is_elsewhere;           ///< in other files, which are not read
};

/// Receives the datasets of a file one by one.
struct Hdf5Visitor {
  void* object;
  /// Returns false to end the visit.
  bool (*visit)(void* object, const Hdf5Dataset& dataset) noexcept;
};

struct OpenHdf5;

/// The functions of libreel_hdf5.so. Functions that return bool return false after they have written a message, a predicate
/// about the file such as "is cut off".
struct Hdf5Table {
  static constexpr ModuleName module = {"reel_hdf5", "HDF5 files", "libhdf5-103-1", 4};

  /// Opens a file to read. Null after a message.
  OpenHdf5* (*open)(const char* path, ModuleMessage& message) noexcept;
  void (*close)(OpenHdf5* file) noexcept;
  /// Visits the datasets of numbers in the order of their paths.
  bool (*visit)(OpenHdf5* file, Hdf5Visitor visitor, ModuleMessage& message) noexcept;
  /// Reads all elements of a dataset, converted to `type`, in row-major order.
  bool (*read)(OpenHdf5* file, const char* path, Hdf5Type type, void* elements, ModuleMessage& message) noexcept;
};

}  // namespace reel::detail
