#include "file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <reel/io/safetensors.h>

#include "../core/op_error.h"

namespace reel::io {

using detail::fail;

namespace {

// The most that one call of the system moves on Linux is a little less than 2 GB.
constexpr std::size_t most_at_once = std::size_t{1} << 30;

std::string words_of(int code) { return std::generic_category().message(code); }

// Where a path leads, so that a link goes on to be one, also where nothing is there yet.
std::string followed(const std::string& path) {
  constexpr int most_links = 40;  // as Linux has it
  std::error_code none;
  std::filesystem::path place = path;
  for (int i = 0; i < most_links && std::filesystem::is_symlink(place, none); ++i) {
    std::filesystem::path next = std::filesystem::read_symlink(place, none);
    if (none) break;
    place = place.parent_path() / next;
  }
  return place.string();
}

// Unlike that of any other that this process writes. The whole name could be too long with more behind it.
std::string name_beside(const std::string& path) {
  static std::atomic<std::uint64_t> count{0};
  constexpr std::size_t most_letters = 200;
  std::filesystem::path place = path;
  std::string name = place.filename().string();
  if (name.size() > most_letters) {
    std::size_t end = most_letters;
    // Not within a letter of UTF-8.
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
    name.resize(end);
  }
  name += fmt::format(".{}-{}.part", getpid(), count.fetch_add(1, std::memory_order_relaxed));
  return (place.parent_path() / name).string();
}

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (&other != this) {
    close();
    number_ = std::exchange(other.number_, -1);
  }
  return *this;
}

Descriptor::~Descriptor() { close(); }

bool Descriptor::close() { return number_ < 0 || ::close(std::exchange(number_, -1)) == 0; }

Reader::Reader(const char* function, const std::string& path, Location where)
    : function_(function), path_(path), where_(where) {
  // A pipe would wait here for somebody who writes.
  file_ = Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat found;
  if (!file_.is_open() || fstat(file_.number(), &found) != 0)
    fail<FileError>(function, where, "cannot open '{}': {}", path, words_of(errno));
  if (!S_ISREG(found.st_mode)) fail<FileError>(function, where, "'{}' is no ordinary file", path);
  size_ = static_cast<std::uint64_t>(found.st_size);
}

void Reader::read(std::uint64_t from, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    ssize_t count = pread(file_.number(), bytes.data(), std::min(bytes.size(), most_at_once), static_cast<off_t>(from));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail<FileError>(function_, where_, "cannot read '{}': {}", path_, words_of(errno));
    if (count == 0) fail<FileError>(function_, where_, "'{}' has become shorter while it was read", path_);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    from += static_cast<std::uint64_t>(count);
  }
}

AtomicFile::AtomicFile(const char* function, const std::string& path, Location where)
    : function_(function), given_path_(path), where_(where), path_(followed(path)) {
  folder_ = std::filesystem::path(path_).parent_path().string();
  if (folder_.empty()) folder_ = ".";
  struct stat before;
  bool replaces = stat(path_.c_str(), &before) == 0;
  if (replaces && !S_ISREG(before.st_mode))
    fail<FileError>(function, where, "'{}' is there and is no ordinary file", path);
  if (!replaces && errno != ENOENT) fail_with(errno);
  // One that is there already was left by a process of the same number, which was stopped.
  do {
    beside_ = name_beside(path_);
    file_ = Descriptor(open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  } while (!file_.is_open() && errno == EEXIST);
  if (!file_.is_open()) fail_with(errno);
  // Whoever could read the old one can read the new one; where that is not ours to say, they cannot.
  if (replaces) static_cast<void>(fchmod(file_.number(), before.st_mode & 07777));
}

AtomicFile::~AtomicFile() {
  if (committed_ || beside_.empty()) return;
  file_.close();
  unlink(beside_.c_str());
}

void AtomicFile::fail_with(int code) const {
  fail<FileError>(function_, where_, "cannot write '{}': {}", given_path_, words_of(code));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(file_.number(), bytes.data(), std::min(bytes.size(), most_at_once));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_with(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void AtomicFile::commit() {
  if (fsync(file_.number()) != 0) fail_with(errno);
  if (!file_.close()) fail_with(errno);
  if (rename(beside_.c_str(), path_.c_str()) != 0) fail_with(errno);
  committed_ = true;
  // The new name is on the disk when the folder is. Some file systems do that by themselves, and refuse.
  Descriptor folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.is_open() && fsync(folder.number()) != 0 && errno != EINVAL && errno != ENOTSUP) fail_with(errno);
}

}  // namespace reel::io
