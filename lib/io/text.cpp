#include <reel/io/text.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "../core/op_error.h"
#include "../core/printable.h"
#include "../core/utf8.h"
#include "file.h"

namespace reel::io {

using detail::fail;
using detail::find_not_utf8;

namespace {

// Reads the bytes of a text in pieces.
class TextSource {
 public:
  TextSource(const char* function, const std::string& path, const TextOptions& options, Location where)
      : function_(function), path_(path), most_bytes_(options.most_bytes), where_(where) {
    check_path(function, "cannot open", path, where);
    file_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!file_.is_open()) refuse("cannot open '{}': {}", printable(path), words_of(errno));
  }

  // The next piece; empty at the end. Valid until the next call.
  std::string_view next() {
    ssize_t count;
    do count = ::read(file_.get(), piece_->data(), piece_->size());
    while (count < 0 && errno == EINTR);
    if (count < 0) refuse_rest(errno);
    std::string_view piece(piece_->data(), static_cast<std::size_t>(count));
    if (std::size_t zero = piece.find('\0'); zero != piece.npos)
      refuse("'{}' is no text: its byte {} is a NUL", printable(path_), bytes_ + zero + 1);
    bytes_ += piece.size();
    if (bytes_ > most_bytes_)
      refuse("'{}' is longer than the {} bytes that are read of a text", printable(path_), most_bytes_);
    return piece;
  }

  [[noreturn]] void refuse_rest(int code) const {
    if (bytes_ == 0) refuse("cannot read '{}': {}", printable(path_), words_of(code));
    refuse("cannot read '{}' beyond its first {} bytes: {}", printable(path_), bytes_, words_of(code));
  }

  template <class... T>
  [[noreturn]] void refuse(fmt::format_string<T...> words, T&&... values) const {
    fail<FileError>(function_, where_, words, std::forward<T>(values)...);
  }

 private:
  const char* function_;
  const std::string& path_;
  std::uint64_t most_bytes_;
  Location where_;
  Descriptor file_;
  std::uint64_t bytes_ = 0;
  std::unique_ptr<std::array<char, 1 << 16>> piece_ = std::make_unique<std::array<char, 1 << 16>>();
};

}  // namespace

std::string read_text(const std::string& path, const TextOptions& options, Location where) {
  TextSource source("io::read_text", path, options, where);
  std::string text;
  for (std::string_view piece = source.next(); !piece.empty(); piece = source.next()) text += piece;
  if (std::size_t place = find_not_utf8(text); place != text.npos)
    source.refuse("'{}' is not UTF-8 at byte {}; `iconv -t UTF-8` converts other texts", printable(path), place + 1);
  return text;
}

std::vector<std::string> read_lines(const std::string& path, const TextOptions& options, Location where) {
  TextSource source("io::read_lines", path, options, where);
  std::vector<std::string> lines;
  std::string line;
  auto extend = [&](std::string_view part) {
    line += part;
    if (line.size() > options.most_line_bytes)
      source.refuse("'{}':{}: the line is longer than {} bytes", printable(path), lines.size() + 1,
                    options.most_line_bytes);
  };
  auto end_line = [&] {
    if (line.ends_with('\r')) line.pop_back();
    if (std::size_t place = find_not_utf8(line); place != line.npos)
      source.refuse("'{}':{}: the line is not UTF-8 at byte {}; `iconv -t UTF-8` converts other texts", printable(path),
                    lines.size() + 1, place + 1);
    lines.push_back(std::exchange(line, {}));
  };
  for (std::string_view piece = source.next(); !piece.empty(); piece = source.next()) {
    for (std::size_t end = piece.find('\n'); end != piece.npos; end = piece.find('\n')) {
      extend(piece.substr(0, end));
      end_line();
      piece.remove_prefix(end + 1);
    }
    extend(piece);
  }
  if (!line.empty()) end_line();
  return lines;
}

std::string printable(std::string_view text) { return detail::printable(text); }

}  // namespace reel::io
