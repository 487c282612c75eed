#include "text_lines.h"

#include "../core/op_error.h"
#include "../core/utf8.h"
#include "../io/byte_source.h"
#include "../io/compressed.h"

namespace reel::detail {

using io::FileError;

std::string read_bytes(const char* function, const std::string& path, std::uint64_t most_bytes, Location where,
                       bool is_text) {
  io::ByteSource source(function, path, most_bytes, where);
  // A device may have no end, which no line would show.
  bool refuse_nul = is_text && source.is_device();
  std::string bytes;
  for (std::string_view piece = source.next(refuse_nul); !piece.empty(); piece = source.next(refuse_nul))
    bytes += piece;
  return bytes;
}

TextLines::TextLines(const char* function, const std::string& path, const data::ReadOptions& options, Location where)
    : function_(function),
      options_(options),
      where_(where),
      file_(std::make_shared<const std::string>(path)),
      text_(read_bytes(function, path, options.most_bytes, where, true)) {
  if (is_gzip(text_)) text_ = gunzip(text_, options.most_bytes, path, where);
  rest_ = text_;
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
