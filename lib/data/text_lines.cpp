#include "text_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "../core/op_error.h"
#include "../core/printable.h"
#include "../core/utf8.h"
#include "../io/compressed.h"
#include "../io/file.h"

namespace reel::detail {

using io::FileError;

std::string read_bytes(const char* function, const std::string& path, std::uint64_t most_bytes, Location where,
                       bool is_text) {
  io::check_path(function, "cannot open", path, where);
  io::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file.is_open()) fail<FileError>(function, where, "cannot open '{}': {}", printable(path), io::words_of(errno));
  // A device may have no end, which no line would show.
  struct stat found;
  bool is_device = fstat(file.get(), &found) == 0 && S_ISCHR(found.st_mode);
  std::string bytes;
  constexpr std::size_t piece = 1 << 16;
  while (true) {
    std::size_t before = bytes.size();
    bytes.resize(before + piece);
    ssize_t count = read(file.get(), bytes.data() + before, piece);
    int code = errno;
    bytes.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && code == EINTR) continue;
    if (count < 0) fail<FileError>(function, where, "cannot read '{}': {}", printable(path), io::words_of(code));
    if (count == 0) break;
    if (std::size_t zero = bytes.find('\0', before); is_text && is_device && zero != bytes.npos)
      fail<FileError>(function, where, "'{}' is no text: its byte {} is a NUL", printable(path), zero + 1);
    if (bytes.size() > most_bytes)
      fail<FileError>(function, where, "'{}' is longer than the {} bytes that are read of it", printable(path),
                      most_bytes);
  }
  return is_gzip(bytes) ? gunzip(bytes, most_bytes, path, where) : bytes;
}

TextLines::TextLines(const char* function, const std::string& path, const data::ReadOptions& options, Location where)
    : function_(function),
      options_(options),
      where_(where),
      file_(std::make_shared<const std::string>(path)),
      text_(read_bytes(function, path, options.most_bytes, where, true)),
      rest_(text_) {
  if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
}

bool TextLines::next(TextLine& line) {
  if (rest_.empty()) return false;
  std::size_t size = rest_.find('\n');
  bool has_end = size != rest_.npos;
  if (!has_end) size = rest_.size();
  std::size_t text_size = has_end && size > 0 && rest_[size - 1] == '\r' ? size - 1 : size;
  line.text = rest_.substr(0, text_size);
  line.end = rest_.substr(text_size, size - text_size + (has_end ? 1 : 0));
  line.number = ++number_;
  line.fault.clear();
  rest_.remove_prefix(size + (has_end ? 1 : 0));
  if (line.text.size() > options_.most_line_bytes)
    line.fault = fmt::format("the line is longer than {} bytes", options_.most_line_bytes);
  else if (std::size_t at = find_not_utf8(line.text); at != line.text.npos)
    line.fault = fmt::format("the line is not UTF-8 at byte {}; `iconv -t UTF-8` converts other texts", at + 1);
  else if (std::size_t zero = line.text.find('\0'); zero != line.text.npos)
    line.fault = fmt::format("the line is no text: its byte {} is a NUL", zero + 1);
  return true;
}

void TextLines::refuse(std::int64_t line, const std::string& sentence) {
  std::string place = data::to_string(source(line));
  if (options_.on_error == data::OnError::stop) fail<FileError>(function_, where_, "{}: {}", place, sentence);
  if (!options_.skipped) return;
  constexpr std::size_t most_sentences = 10;
  ++options_.skipped->count;
  if (options_.skipped->first.size() < most_sentences)
    options_.skipped->first.push_back(fmt::format("{}: {}", place, sentence));
}

}  // namespace reel::detail

namespace reel::data {

std::vector<Line> read_lines(const std::string& path, const ReadOptions& options, Location where) {
  detail::TextLines lines("data::read_lines", path, options, where);
  std::vector<Line> read;
  for (detail::TextLine line; lines.next(line);) {
    if (line.fault.empty())
      read.push_back({std::string(line.text), lines.source(line.number)});
    else
      lines.refuse(line.number, line.fault);
  }
  return read;
}

}  // namespace reel::data
