#include "byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "../core/printable.h"

namespace reel::io {

ByteSource::ByteSource(const char* function, const std::string& path, std::uint64_t most_bytes, Location where)
    : function_(function), path_(path), most_bytes_(most_bytes), where_(where) {
  check_path(function, "cannot open", path, where);
  file_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file_.is_open()) refuse("cannot open '{}': {}", detail::printable(path), words_of(errno));
}

std::string_view ByteSource::next(bool is_text) {
  ssize_t count;
  do count = ::read(file_.get(), piece_->data(), piece_->size());
  while (count < 0 && errno == EINTR);
  if (count < 0) {
    int code = errno;
    if (bytes_ == 0) refuse("cannot read '{}': {}", detail::printable(path_), words_of(code));
    refuse("cannot read '{}' beyond its first {} bytes: {}", detail::printable(path_), bytes_, words_of(code));
  }
  std::string_view piece(piece_->data(), static_cast<std::size_t>(count));
  if (std::size_t zero = is_text ? piece.find('\0') : piece.npos; zero != piece.npos)
    refuse("'{}' is no text: its byte {} is a NUL", detail::printable(path_), bytes_ + zero + 1);
  bytes_ += piece.size();
  if (bytes_ > most_bytes_)
    refuse("'{}' is longer than the {} bytes that are read of it", detail::printable(path_), most_bytes_);
  return piece;
}

bool ByteSource::is_device() const {
  struct stat found;
  return fstat(file_.get(), &found) == 0 && S_ISCHR(found.st_mode);
}

}  // namespace reel::io
