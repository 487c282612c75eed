#include <reel/io/text.h>

#include <utility>

#include "../core/printable.h"
#include "../core/utf8.h"
#include "byte_source.h"

namespace reel::io {

using detail::find_not_utf8;

std::string read_text(const std::string& path, const TextOptions& options, Location where) {
  ByteSource source("io::read_text", path, options.most_bytes, where);
  std::string text;
  for (std::string_view piece = source.next(true); !piece.empty(); piece = source.next(true)) text += piece;
  if (std::size_t place = find_not_utf8(text); place != text.npos)
    source.refuse("'{}' is not UTF-8 at byte {}; `iconv -t UTF-8` converts other texts", printable(path), place + 1);
  return text;
}

std::vector<std::string> read_lines(const std::string& path, const TextOptions& options, Location where) {
  ByteSource source("io::read_lines", path, options.most_bytes, where);
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
  for (std::string_view piece = source.next(true); !piece.empty(); piece = source.next(true)) {
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
