#pragma once

#include <cstddef>
#include <cstdint>

#include "../../core/modules/module_table.h"

namespace reel::detail {

/// A member of a zip archive.
struct ZipMember {
  const char* name;           ///< lives as long as the archive is open
  std::size_t name_size;      ///< in bytes
  std::uint64_t size;         ///< of the contents in bytes, as the archive says
  std::uint64_t stored_size;  ///< of the bytes in the archive that hold the contents
};

/// The result of opening the archive's next part, and what is passed back to read it.
struct OpenArchive;
/// A member while it is read.
struct OpenMember;

/// A member to be written: the two pieces follow each other.
struct ZipEntry {
  const char* name;  ///< UTF-8, ends with a NUL
  const void* head;
  std::size_t head_size;  ///< in bytes
  const void* elements;
  std::size_t elements_size;  ///< in bytes
};

/// The sizes of an image of 8 bits a channel.
struct ImageSize {
  std::uint32_t height, width, channels;  ///< channels: 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha
  std::uint64_t least_bytes;              ///< a file with fewer bytes cannot hold such an image
};

/// The functions of libreel_files.so. Functions that return bool return false after they have written a message, a
/// predicate about the file such as "is cut off".
struct FilesTable {
  static constexpr ModuleName module = {"reel_files", "compressed files and images",
                                        "zlib1g, libzip4, libpng16-16 and libjpeg62-turbo", 1};

  /// Decompresses the members of a gzip file.
  bool (*gunzip)(const void* bytes, std::size_t count, ByteSink sink, ModuleMessage& message) noexcept;
  /// Compresses to a gzip file without a name or a time.
  bool (*gzip)(const void* bytes, std::size_t count, ByteSink sink, ModuleMessage& message) noexcept;

  /// Opens a zip archive; the descriptor stays the caller's. Null after a message.
  OpenArchive* (*open_zip)(int descriptor, ModuleMessage& message) noexcept;
  void (*close_zip)(OpenArchive* archive) noexcept;
  std::uint64_t (*zip_members)(OpenArchive* archive) noexcept;
  bool (*zip_member)(OpenArchive* archive, std::uint64_t index, ZipMember& member, ModuleMessage& message) noexcept;
  /// Null after a message.
  OpenMember* (*open_member)(OpenArchive* archive, std::uint64_t index, ModuleMessage& message) noexcept;
  /// Returns the number of bytes read, 0 at the end, which is where the checksum is compared; −1 after a message.
  std::int64_t (*read_member)(OpenMember* member, void* bytes, std::size_t count, ModuleMessage& message) noexcept;
  void (*close_member)(OpenMember* member) noexcept;
  bool (*write_zip)(const ZipEntry* entries, std::size_t count, bool compresses, PositionedSink sink,
                    ModuleMessage& message) noexcept;

  /// Reads the header of an image in a PNG or JPEG file.
  bool (*image_size)(const void* bytes, std::size_t count, ImageSize& size, ModuleMessage& message) noexcept;
  /// Decodes an image whose size `image_size` has given: height × width × channels values.
  bool (*decode_image)(const void* bytes, std::size_t count, const ImageSize& size, std::uint8_t* values,
                       ModuleMessage& message) noexcept;
  bool (*encode_png)(const ImageSize& size, const std::uint8_t* values, ByteSink sink, ModuleMessage& message) noexcept;
};

/// Writes a message, shortened to fit.
[[gnu::format(printf, 2, 3)]] void write_message(ModuleMessage& message, const char* format, ...) noexcept;

void fill_gzip(FilesTable& table);
void fill_zip(FilesTable& table);
void fill_images(FilesTable& table);

}  // namespace reel::detail
