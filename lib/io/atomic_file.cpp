#include "atomic_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include <reel/io/safetensors.h>
#include <reel/io/text.h>

#include "../core/op_error.h"
#include "../core/utf8.h"

namespace reel::io {

using detail::fail;
using detail::whole_characters;

namespace {

constexpr std::size_t most_written_at_once = std::size_t{1} << 30;
constexpr int most_links = 40;  // Linux's limit

struct SplitPath {
  std::string folder, name;
};

// A path that ends in a slash names a folder, whose own name in it is ".".
SplitPath split(const std::string& path) {
  std::size_t slash = path.rfind('/');
  if (slash == path.npos) return {".", path};
  std::string name = path.substr(slash + 1);
  return {path.substr(0, slash + 1), name.empty() ? "." : name};
}

std::string text_of_link(const Descriptor& link) {
  std::array<char, 4096> text;  // PATH_MAX
  ssize_t size = readlinkat(link.get(), "", text.data(), text.size());
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

constexpr std::string_view temporary_mark = ".reel-";
constexpr std::string_view temporary_suffix = ".part";

// The prefix of the temporary files' names of a file. It is shortened, because the name could be too long with a
// suffix.
std::string temporary_prefix(const std::string& name) {
  constexpr std::size_t most_bytes = 200;
  return std::string(whole_characters(name, most_bytes)) + std::string(temporary_mark);
}

// Returns true for a process id, a dash, a count, and the suffix.
bool is_temporary_end(std::string_view name) {
  if (!name.ends_with(temporary_suffix)) return false;
  name.remove_suffix(temporary_suffix.size());
  auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  };
  std::size_t dash = name.find('-');
  return dash != name.npos && is_number(name.substr(0, dash)) && is_number(name.substr(dash + 1));
}

// Returns true for the prefix and the end of a temporary file's name.
bool is_temporary(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) && is_temporary_end(name.substr(prefix.size()));
}

// Opens and locks a temporary file that no process has locked; returns a closed descriptor if it is locked by another,
// or gone.
Descriptor locked_left(int folder, const char* name) {
  constexpr int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  // Network file systems lock only files that are open for writing.
  Descriptor left(openat(folder, name, O_RDWR | flags));
  if (!left.is_open()) left = Descriptor(openat(folder, name, O_RDONLY | flags));
  struct stat opened, named;
  if (!left.is_open() || fstat(left.get(), &opened) != 0 || !S_ISREG(opened.st_mode)) return {};
  if (flock(left.get(), LOCK_EX | LOCK_NB) != 0) return {};
  // Before this process got the lock, the file may have been renamed, and its name may refer to another file.
  bool same = fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_dev == opened.st_dev &&
              named.st_ino == opened.st_ino;
  return same ? std::move(left) : Descriptor();
}

// Removes the entries of a folder that `is_left` names and that no process has locked.
void remove_left(int folder, const std::function<bool(std::string_view)>& is_left) {
  int listed = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listed < 0) return;
  auto close = [](DIR* open) { closedir(open); };
  std::unique_ptr<DIR, decltype(close)> entries(fdopendir(listed));
  if (!entries) return;
  while (const dirent* entry = readdir(entries.get())) {
    if (!is_left(entry->d_name)) continue;
    if (Descriptor left = locked_left(folder, entry->d_name); left.is_open()) unlinkat(folder, entry->d_name, 0);
  }
}

// Some file systems synchronise folders by themselves, and refuse.
bool synchronised(int folder) { return fsync(folder) == 0 || errno == EINVAL || errno == ENOTSUP; }

}  // namespace

AtomicFile::AtomicFile(const char* function, const std::string& path, Location where, int own_names)
    : function_(function), path_(path), where_(where) {
  check_path(function, "cannot write", path, where);
  find_place(own_names);
  std::string prefix = temporary_prefix(name_);
  if (folder_is_readable_)
    remove_left(folder_.get(), [&](std::string_view name) { return is_temporary(name, prefix); });
  create_temporary();
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) unlinkat(folder_.get(), temporary_.c_str(), 0);
}

void AtomicFile::fail_with(int code) const {
  fail<FileError>(function_, where_, "cannot write '{}': {}", printable(path_), words_of(code));
}

// Links are resolved here and not by the system, which does not report their target.
void AtomicFile::find_place(int own_names) {
  if (path_.empty()) fail_with(ENOENT);
  std::string rest = own_names > 0 ? enter_folders(own_names) : path_;
  for (int links = 0; links <= most_links; ++links) {
    SplitPath parts = split(rest);
    open_folder(parts.folder);
    name_ = parts.name;
    Descriptor entry(openat(folder_.get(), name_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!entry.is_open() && errno == ENOENT) return;
    struct stat found;
    if (!entry.is_open() || fstat(entry.get(), &found) != 0) fail_with(errno);
    if (!S_ISLNK(found.st_mode) && !S_ISREG(found.st_mode))
      fail<FileError>(function_, where_, "'{}' is there and is no ordinary file", printable(path_));
    check_owner(found);
    if (S_ISREG(found.st_mode)) {
      replaced_ = found;
      return;
    }
    if (own_names > 0) return;
    rest = text_of_link(entry);
  }
  fail_with(ELOOP);
}

// Returns the last name. Each folder is opened in the one before it, so that no link can be put between them meanwhile.
std::string AtomicFile::enter_folders(int own_names) {
  std::size_t begin = path_.size();
  for (int i = 0; i < own_names; ++i) begin = path_.rfind('/', begin - 1);
  open_folder(path_.substr(0, begin + 1));
  for (std::size_t end; (end = path_.find('/', ++begin)) != path_.npos; begin = end) {
    std::string name = path_.substr(begin, end - begin);
    if (mkdirat(folder_.get(), name.c_str(), 0777) != 0 && errno != EEXIST) fail_with(errno);
    open_folder(name, O_NOFOLLOW);
  }
  return path_.substr(begin);
}

// For a link, the path is relative to the link's folder.
void AtomicFile::open_folder(const std::string& path, int links) {
  int from = folder_.is_open() ? folder_.get() : AT_FDCWD;
  Descriptor next(openat(from, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | links));
  folder_is_readable_ = next.is_open();
  // A folder may be writable but not readable.
  if (!next.is_open() && errno == EACCES)
    next = Descriptor(openat(from, path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | links));
  if (!next.is_open()) fail_with(errno);
  folder_ = std::move(next);
}

// In a world-writable folder another user could redirect this process to a file, or own the file that it writes.
void AtomicFile::check_owner(const struct stat& found) const {
  struct stat folder;
  if (fstat(folder_.get(), &folder) != 0) fail_with(errno);
  bool is_shared = (folder.st_mode & S_ISVTX) && (folder.st_mode & S_IWOTH);
  if (!is_shared || found.st_uid == geteuid() || found.st_uid == folder.st_uid) return;
  fail<FileError>(function_, where_,
                  "cannot write '{}': a {} of another user, in a folder that all may write to, has the name",
                  printable(path_), S_ISLNK(found.st_mode) ? "link" : "file");
}

void AtomicFile::create_temporary() {
  static std::atomic<std::uint64_t> count{0};
  std::string prefix = temporary_prefix(name_);
  do {
    std::string name =
        fmt::format("{}{}-{}{}", prefix, getpid(), count.fetch_add(1, std::memory_order_relaxed), temporary_suffix);
    // A user who could not read the old file must not be able to read the new one before it gets the old one's
    // permissions.
    mode_t mode = replaced_ ? 0600 : 0666;
    file_ = Descriptor(openat(folder_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (file_.is_open())
      temporary_ = name;
    else if (errno != EEXIST)
      fail_with(errno);
  } while (!file_.is_open() || !lock_temporary());
}

// Returns false if another process has removed the file as abandoned before it was locked.
bool AtomicFile::lock_temporary() {
  bool locked = flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
  // Without locks, as on some network file systems, no process removes it.
  if (!locked && errno != EWOULDBLOCK) return true;
  struct stat found;
  if (locked && fstat(file_.get(), &found) == 0 && found.st_nlink > 0) return true;
  unlinkat(folder_.get(), temporary_.c_str(), 0);
  temporary_.clear();
  return false;
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(file_.get(), bytes.data(), std::min(bytes.size(), most_written_at_once));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_with(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t count =
        pwrite(file_.get(), bytes.data(), std::min(bytes.size(), most_written_at_once), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_with(errno);
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void AtomicFile::adopt_permissions() {
  if (!replaced_) return;
  mode_t mode = replaced_->st_mode & 0777;
  // Only root can change the owner; a process may set a group that it is in.
  bool has_group = fchown(file_.get(), replaced_->st_uid, replaced_->st_gid) == 0 ||
                   fchown(file_.get(), static_cast<uid_t>(-1), replaced_->st_gid) == 0;
  if (!has_group) mode &= ~static_cast<mode_t>(S_IRWXG) | (mode & S_IRWXO) << 3;
  // If the mode cannot be set either, it stays as restrictive as it was created.
  static_cast<void>(fchmod(file_.get(), mode));
}

void AtomicFile::commit() {
  adopt_permissions();
  if (fsync(file_.get()) != 0) fail_with(errno);
  // The lock is held until the file is renamed, so that no process treats it as abandoned.
  if (renameat(folder_.get(), temporary_.c_str(), folder_.get(), name_.c_str()) != 0) fail_with(errno);
  temporary_.clear();
  // The new name is on the disk when the folder is synchronised.
  if (folder_is_readable_ && !synchronised(folder_.get())) fail_with(errno);
}

void remove_abandoned(const std::string& folder, const std::function<bool(std::string_view)>& is_own) {
  Descriptor open_folder(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!open_folder.is_open()) return;
  remove_left(open_folder.get(), [&](std::string_view name) {
    std::size_t mark = name.rfind(temporary_mark);
    return mark != name.npos && is_temporary_end(name.substr(mark + temporary_mark.size())) &&
           is_own(name.substr(0, mark));
  });
}

void create_folder(const char* function, const std::string& path, Location where) {
  check_path(function, "cannot create", path, where);
  std::string made = path;
  while (made.size() > 1 && made.ends_with('/')) made.pop_back();
  std::string parent = split(made).folder;
  int code = mkdir(made.c_str(), 0777) == 0 ? 0 : errno;
  if (code == ENOENT && !made.empty() && parent != "." && parent != "/") {
    create_folder(function, parent, where);
    code = mkdir(made.c_str(), 0777) == 0 ? 0 : errno;
  }
  if (code == 0) {
    Descriptor folder(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.is_open()) static_cast<void>(synchronised(folder.get()));
    return;
  }
  struct stat found;
  if (code == EEXIST && stat(made.c_str(), &found) == 0 && S_ISDIR(found.st_mode)) return;
  fail<FileError>(function, where, "cannot create the folder '{}': {}", printable(path),
                  code == EEXIST ? "a file has the name" : words_of(code));
}

}  // namespace reel::io
