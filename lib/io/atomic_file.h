#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include <sys/stat.h>

#include <reel/location.h>

#include "file.h"

namespace reel::io {

/// A file that comes into being all at once: what is written goes into a temporary file in the same folder, which takes
/// the name when everything is on the disk. One that is not committed leaves nothing, and what a killed process has left
/// is removed by the next one that writes a file of the same name.
///
/// A link goes on to be one, and the file that it leads to is replaced. The new file has the old one's permissions, but
/// not its set-user-ID, set-group-ID and sticky bits; its owner, if root writes it; and its group, if this process may
/// give it that: else its group gets no more than all others.
class AtomicFile {
 public:
  /// Throws: FileError where it cannot be made; for a link or a file of another user in a sticky folder that all may
  /// write to, such as /tmp, as Linux refuses them by fs.protected_symlinks and fs.protected_regular.
  AtomicFile(const char* function, const std::string& path, Location where);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws: FileError, when the disk is full, say.
  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  void find_place();
  void open_folder(const std::string& path);
  void check_owner(const struct stat& found) const;
  void create_temporary();
  bool lock_temporary();
  void remove_left() const;
  void adopt_permissions();
  [[noreturn]] void fail_with(int code) const;

  const char* function_;
  const std::string& path_;
  Location where_;
  Descriptor folder_;  // so that nobody puts another folder in its place
  bool folder_is_readable_ = false;
  std::string name_, temporary_;
  std::optional<struct stat> replaced_;
  Descriptor file_;  // holds the lock that tells others that this process lives
};

}  // namespace reel::io
