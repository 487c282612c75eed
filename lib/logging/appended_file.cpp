#include "appended_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include <reel/io/safetensors.h>
#include <reel/io/text.h>

#include "../core/op_error.h"

namespace reel::logging {

using detail::fail;

namespace {

// More than this does not wait.
constexpr std::size_t most_waiting = std::size_t{1} << 16;

}  // namespace

AppendedFile::AppendedFile(std::string path, bool is_new, Location where) : path_(std::move(path)) {
  int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | (is_new ? O_EXCL : 0);
  file_ = io::Descriptor(open(path_.c_str(), flags, 0666));
  if (!file_.is_open() && is_new && errno == EEXIST) return;
  struct stat found;
  if (!file_.is_open() || fstat(file_.get(), &found) != 0)
    fail<io::FileError>("logging::Writer", where, "cannot write '{}': {}", io::printable(path_), io::words_of(errno));
  if (!S_ISREG(found.st_mode))
    fail<io::FileError>("logging::Writer", where, "'{}' is there and is no ordinary file", io::printable(path_));
}

AppendedFile::~AppendedFile() {
  if (is_open()) write_waiting();
}

int AppendedFile::write_waiting() noexcept {
  std::size_t done = 0;
  int code = 0;
  while (done < waiting_.size() && code == 0) {
    ssize_t count = ::write(file_.get(), waiting_.data() + done, waiting_.size() - done);
    if (count > 0)
      done += static_cast<std::size_t>(count);
    else if (count == 0 || errno != EINTR)
      code = count == 0 ? ENOSPC : errno;
  }
  // The remainder continues a record that may be on the disk in part.
  waiting_.erase(0, done);
  return code;
}

void AppendedFile::append(std::string_view bytes, Location where) {
  if (!waiting_.empty() && waiting_.size() + bytes.size() > most_waiting) flush(where);
  waiting_ += bytes;
}

void AppendedFile::flush(Location where) {
  if (int code = write_waiting(); code != 0)
    fail<io::FileError>("logging::Writer", where, "cannot write '{}': {}", io::printable(path_), io::words_of(code));
}

}  // namespace reel::logging
