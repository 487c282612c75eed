#include "line_log.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <span>

#include <fmt/format.h>

#include <reel/io/safetensors.h>
#include <reel/io/text.h>

#include "../core/op_error.h"
#include "../io/atomic_file.h"

namespace reel::logging {

using detail::fail;

namespace {

constexpr const char* line_log_name = "logging::Writer";
constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 20;

// The bytes of a piece of a file.
std::string read_piece(const io::Reader& file, std::uint64_t from, std::uint64_t size) {
  std::string piece(static_cast<std::size_t>(size), '\0');
  file.read(from, std::as_writable_bytes(std::span(piece)));
  return piece;
}

// The size of a file without a last line that has no end.
std::uint64_t size_of_whole_lines(const io::Reader& file) {
  std::uint64_t end = file.size();
  while (end > 0) {
    std::uint64_t size = std::min(end, piece_bytes);
    std::string piece = read_piece(file, end - size, size);
    if (std::size_t newline = piece.rfind('\n'); newline != piece.npos) return end - size + newline + 1;
    end -= size;
  }
  return 0;
}

// Calls f with each line of a file, with its end, and `after_piece` from time to time.
template <class F, class AfterPiece>
void for_each_line(const io::Reader& file, F f, AfterPiece after_piece) {
  std::string waiting;
  for (std::uint64_t from = 0; from < file.size();) {
    std::uint64_t size = std::min(file.size() - from, piece_bytes);
    waiting += read_piece(file, from, size);
    from += size;
    std::string_view rest = waiting;
    for (std::size_t newline; (newline = rest.find('\n')) != rest.npos; rest.remove_prefix(newline + 1))
      f(rest.substr(0, newline + 1));
    waiting.erase(0, waiting.size() - rest.size());
    after_piece();
  }
}

}  // namespace

LineLog::LineLog(const std::string& path, const Form& form, Location where) : form_(form), file_(path, false, where) {
  io::Reader found(line_log_name, path, where, 1);
  std::string_view begin = form.header.empty() ? form.before_step : form.header;
  std::string present = found.beginning(begin.size());
  if (!begin.starts_with(present))
    fail<io::FileError>(line_log_name, where,
                        "'{}' is there and is no log of this kind: it does not begin with '{}'; log to another folder",
                        io::printable(path), io::printable(begin.substr(0, begin.find('\n'))));
  std::uint64_t whole = size_of_whole_lines(found);
  if (whole < found.size() && ftruncate(file_.descriptor(), static_cast<off_t>(whole)) != 0)
    fail<io::FileError>(line_log_name, where, "cannot write '{}': {}", io::printable(path), io::words_of(errno));
  if (whole == 0) {
    file_.append(form.header, where);
    file_.flush(where);
  }
}

bool LineLog::is_kept(std::string_view line, std::int64_t step) const {
  if (!line.starts_with(form_.before_step)) return true;
  line.remove_prefix(form_.before_step.size());
  std::int64_t found;
  auto [end, code] = std::from_chars(line.data(), line.data() + line.size(), found);
  return code != std::errc() || found < step;
}

void LineLog::purge(std::int64_t step, Location where) {
  file_.flush(where);
  const std::string path = file_.path();
  io::Reader found(line_log_name, path, where, 1);
  io::AtomicFile replacement(line_log_name, path, where, 1);
  std::string kept;
  for_each_line(
      found,
      [&](std::string_view line) {
        if (is_kept(line, step)) kept += line;
      },
      [&] {
        replacement.write(std::as_bytes(std::span(kept)));
        kept.clear();
      });
  replacement.commit();
  file_ = AppendedFile(path, false, where);
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of("\",\r\n") == text.npos) return std::string(text);
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string csv_number(double value) {
  if (std::isnan(value)) return "nan";
  return fmt::format("{}", value);
}

}  // namespace reel::logging
