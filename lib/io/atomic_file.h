#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <sys/stat.h>

#include <reel/location.h>

#include "file.h"

namespace reel::io {

/// A file that appears all at once: data goes into a temporary file in the same folder, which is renamed when
/// everything is on the disk. A file that is not committed leaves nothing, and the temporary file of a killed process
/// is removed by the next process that writes a file of that name.
///
/// The path that a user gives may lead through symbolic links: the last one is kept, and the file that it points to is
/// replaced. A name that the library makes in a folder leads through none, as another program may have put one there: a
/// link that has the name is replaced, and one in the place of a folder refused. The new file has the old one's
/// permissions, but not its set-user-ID, set-group-ID and sticky bits; its owner, if root writes it; and its group, if
/// this process may set that: else the group's permissions are those of all other users.
class AtomicFile : detail::Immovable {
 public:
  /// `own_names`: how many of the path's last names the library has made; folders among them are created where they are
  /// missing. Throws: FileError if it cannot be created; for a link or a file of another user in a sticky world-writable
  /// folder such as /tmp, as Linux refuses them by fs.protected_symlinks and fs.protected_regular.
  AtomicFile(const char* function, const std::string& path, Location where, int own_names = 0);
  ~AtomicFile();

  /// Writes bytes at the end. Throws: FileError, for instance if the disk is full.
  void write(std::span<const std::byte> bytes);
  /// Writes bytes at an offset from the beginning, which leaves the end for `write` as it is. Throws: FileError.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  void commit();

 private:
  void find_place(int own_names);
  std::string enter_folders(int own_names);
  void open_folder(const std::string& path, int links = 0);
  void check_owner(const struct stat& found) const;
  void create_temporary();
  bool lock_temporary();
  void adopt_permissions();
  [[noreturn]] void fail_with(int code) const;

  const char* function_;
  const std::string& path_;
  Location where_;
  Descriptor folder_;  // held open, so that the folder cannot be replaced meanwhile
  bool folder_is_readable_ = false;
  std::string name_, temporary_;
  std::optional<struct stat> replaced_;
  Descriptor file_;  // holds the lock that shows other processes that this one is alive
};

/// Removes the temporary files of killed processes whose final names `is_own` accepts from a folder; does nothing if
/// the folder cannot be read.
void remove_abandoned(const std::string& folder, const std::function<bool(std::string_view)>& is_own);

/// Creates a folder, with those around it, and synchronises each that got an entry. Throws: FileError.
void create_folder(const char* function, const std::string& path, Location where);

}  // namespace reel::io
