#include "file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <reel/io/safetensors.h>
#include <reel/io/text.h>

#include "../core/op_error.h"

namespace reel::io {

using detail::fail;

namespace {

// One read on Linux transfers at most a little less than 2 GB.
constexpr std::size_t most_read_at_once = std::size_t{1} << 30;

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Descriptor::~Descriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string words_of(int code) {
  // The system has one code for both.
  return std::generic_category().message(code) + (code == ELOOP ? ", or one where none is followed" : "");
}

void check_path(const char* function, const char* failed, const std::string& path, Location where) {
  if (path.find('\0') != path.npos)
    fail<FileError>(function, where, "{} '{}': a path cannot have a NUL in it", failed, printable(path));
}

Reader::Reader(const char* function, const std::string& path, Location where, int own_names)
    : function_(function), path_(path), where_(where) {
  check_path(function, "cannot open", path, where);
  // Non-blocking, because opening a pipe would wait for a writer.
  int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (own_names > 0 ? O_NOFOLLOW : 0);
  file_ = Descriptor(::open(path.c_str(), flags));
  struct stat found;
  if (!file_.is_open() || fstat(file_.get(), &found) != 0)
    fail<FileError>(function, where, "cannot open '{}': {}", printable(path), words_of(errno));
  if (!S_ISREG(found.st_mode)) fail<FileError>(function, where, "'{}' is no ordinary file", printable(path));
  size_ = static_cast<std::uint64_t>(found.st_size);
}

void Reader::read(std::uint64_t from, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    ssize_t count =
        pread(file_.get(), bytes.data(), std::min(bytes.size(), most_read_at_once), static_cast<off_t>(from));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail<FileError>(function_, where_, "cannot read '{}': {}", printable(path_), words_of(errno));
    if (count == 0) fail<FileError>(function_, where_, "'{}' has become shorter while it was read", printable(path_));
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    from += static_cast<std::uint64_t>(count);
  }
}

std::string Reader::beginning(std::uint64_t most) const {
  std::string bytes(static_cast<std::size_t>(std::min(size_, most)), '\0');
  read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

}  // namespace reel::io
