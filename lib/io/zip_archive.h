#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <reel/location.h>

#include "file.h"
#include "modules/files_table.h"

namespace reel::detail {

/// A zip archive to read, whose members are stored or deflated. The stored bytes of all members together are at most
/// those of the file, and no member claims more contents than deflate could have stored in its bytes.
class ZipArchive : Immovable {
 public:
  struct Member {
    std::string name;           ///< in UTF-8
    std::uint64_t size;         ///< of the contents in bytes, as the archive says
    std::uint64_t stored_size;  ///< of the bytes that hold them
  };

  /// Opens an archive and reads the list of its members. `path` must outlive this object.
  /// Throws: FileError, in the name of `function`, if the file cannot be read, is no complete archive, has two members of
  /// one name or members that are encrypted or compressed in other ways; MemoryError.
  ZipArchive(const char* function, const std::string& path, Location where);
  ~ZipArchive();

  /// The members in the order of the archive's list.
  const std::vector<Member>& members() const { return members_; }
  /// The size of the archive's file in bytes.
  std::uint64_t file_size() const { return file_.size(); }

  /// The contents of a member, read from the beginning on. The archive must outlive it.
  class MemberReader {
   public:
    /// Throws: FileError if the member cannot be read.
    MemberReader(const ZipArchive& archive, std::size_t index);
    /// Reads up to `bytes.size()` bytes; fewer only at the end. The checksum is compared when the end is reached: by the
    /// call that returns 0. Throws: FileError if the bytes are faulty or their checksum is another.
    std::size_t read_some(std::span<std::byte> bytes);
    /// Fills `bytes`. Throws: FileError if the contents are shorter or faulty.
    void read(std::span<std::byte> bytes);
    /// Throws: FileError if there are more contents, or their checksum is another.
    void finish();

   private:
    struct Close {
      const FilesTable* files;
      void operator()(OpenMember* member) const { files->close_member(member); }
    };
    const ZipArchive& archive_;
    const Member& member_;
    std::unique_ptr<OpenMember, Close> open_;
  };

  /// The contents of a member, whose size is that which the archive says. Throws: FileError; MemoryError.
  std::string contents(std::size_t index) const;

 private:
  void read_members();

  const char* function_;
  const std::string& path_;
  Location where_;
  io::Reader file_;
  const FilesTable& files_;
  struct Close {
    const FilesTable* files;
    void operator()(OpenArchive* archive) const { files->close_zip(archive); }
  };
  std::unique_ptr<OpenArchive, Close> open_;
  std::vector<Member> members_;
};

/// A member to be written; what it refers to is the caller's.
struct NewZipMember {
  std::string name;  ///< in UTF-8
  std::string head;  ///< precedes the elements
  std::span<const std::byte> elements;
};

/// Writes a zip archive, all at once: a failure leaves an older file as it was. Equal members give equal files.
/// Throws: FileError, in the name of `function`.
void write_zip(const char* function, const std::string& path, std::span<const NewZipMember> members, bool compresses,
               Location where);

}  // namespace reel::detail
