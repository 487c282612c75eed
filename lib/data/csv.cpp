#include <reel/data/csv.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "../core/op_error.h"
#include "../core/printable.h"
#include "text_lines.h"

namespace reel::data {

using detail::fail;
using detail::shown;

namespace {

constexpr const char* csv_name = "data::read_csv";

template <class T>
T parsed(const std::string& cell, const Source& source, const char* kind, Location where) {
  std::string_view text = cell;
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  // from_chars does not take a plus sign.
  bool has_sign = text.size() > 1 && text[0] == '+' && text[1] != '-';
  T value = 0;
  auto [stop, error] = std::from_chars(text.data() + has_sign, text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range)
    fail<io::FileError>("data::Row", where, "{}: the number {} is out of range", to_string(source), shown(cell));
  if (error != std::errc() || stop != text.data() + text.size())
    fail<io::FileError>("data::Row", where, "{}: {} is no {}", to_string(source), shown(cell), kind);
  return value;
}

// Reads one row after another.
class RowReader {
 public:
  RowReader(const std::string& path, const CsvOptions& options, Location where)
      : options_(options), lines_(csv_name, path, options.reading, where), where_(where), expected_(options.columns) {}

  // The next row that is not broken; returns false at the end. `line`: where it begins. A broken header is never skipped,
  // because the row behind it would become the header.
  bool next(std::vector<std::string>& cells, std::int64_t& line, bool is_header = false) {
    for (detail::TextLine first; lines_.next(first);) {
      if (first.text.empty()) continue;
      line = first.number;
      cells.assign(1, {});
      std::string fault = read_row(std::move(first), cells);
      auto count = static_cast<std::int64_t>(cells.size());
      if (expected_ == 0 && fault.empty()) expected_ = count;
      if (fault.empty() && count != expected_) fault = fmt::format("{} cells where {} are expected", count, expected_);
      if (fault.empty()) return true;
      if (is_header) fail<io::FileError>(csv_name, where_, "{}: the header: {}", to_string(source(line)), fault);
      lines_.refuse(line, fault);
    }
    return false;
  }
  Source source(std::int64_t line) const { return lines_.source(line); }

 private:
  // Returns what is wrong with the row; empty if nothing is.
  std::string read_row(detail::TextLine line, std::vector<std::string>& cells) {
    if (!line.fault.empty()) return line.fault;
    std::uint64_t bytes = line.text.size();
    for (std::size_t at = 0;; ++at) {
      if (options_.quote != 0 && at < line.text.size() && line.text[at] == options_.quote) {
        if (std::string fault = read_quoted(line, ++at, bytes, cells.back()); !fault.empty()) return fault;
        if (at < line.text.size() && line.text[at] != options_.delimiter)
          return fmt::format("text behind the quoted cell {}", cells.size());
      } else {
        std::size_t end = std::min(line.text.find(options_.delimiter, at), line.text.size());
        cells.back() = line.text.substr(at, end - at);
        at = end;
      }
      if (at >= line.text.size()) return {};
      cells.emplace_back();
    }
  }
  // Reads behind the quote, into further lines if need be, up to behind the closing one.
  std::string read_quoted(detail::TextLine& line, std::size_t& at, std::uint64_t& bytes, std::string& cell) {
    while (true) {
      std::size_t end = line.text.find(options_.quote, at);
      if (end != line.text.npos) {
        cell += line.text.substr(at, end - at);
        at = end + 1;
        if (at == line.text.size() || line.text[at] != options_.quote) return {};
        cell += line.text[at++];
        continue;
      }
      cell += line.text.substr(at);
      cell += line.end;
      if (!lines_.next(line)) return "a quote that does not end";
      if (!line.fault.empty()) return fmt::format("line {} of the row: {}", line.number, line.fault);
      bytes += line.text.size() + 1;
      if (bytes > lines_.most_line_bytes())
        return fmt::format("the row is longer than {} bytes; a quote may not be closed", lines_.most_line_bytes());
      at = 0;
    }
  }

  const CsvOptions& options_;
  detail::TextLines lines_;
  Location where_;
  std::int64_t expected_;
};

}  // namespace

std::int64_t Columns::index(std::string_view name, Location where) const {
  auto found = std::ranges::find(names_, name);
  if (found != names_.end()) return found - names_.begin();
  std::string all;
  for (const std::string& one : names_) all += fmt::format("{}{}", all.empty() ? "" : ", ", shown(one));
  fail<Error>("data::Columns", where, "there is no column {}; there {}", shown(name),
              all.empty() ? "are no names, since the table was read without a header" : "are " + all);
}

const std::string& Row::operator[](std::int64_t column) const {
  if (column < 0 || column >= size())
    fail<IndexError>("data::Row", {}, "{}: there is no column {} among {}", to_string(source), column, size());
  return cells_[static_cast<std::size_t>(column)];
}

const std::string& Row::operator[](std::string_view column) const { return (*this)[columns_->index(column, {})]; }

double Row::number(std::int64_t column, Location where) const {
  return parsed<double>((*this)[column], source, "number", where);
}
double Row::number(std::string_view column, Location where) const {
  return number(columns_->index(column, where), where);
}
std::int64_t Row::integer(std::int64_t column, Location where) const {
  return parsed<std::int64_t>((*this)[column], source, "integer", where);
}
std::int64_t Row::integer(std::string_view column, Location where) const {
  return integer(columns_->index(column, where), where);
}

Table read_csv(const std::string& path, const CsvOptions& options, Location where) {
  auto is_line_end = [](char c) { return c == '\n' || c == '\r'; };
  if (options.delimiter == options.quote || is_line_end(options.delimiter) || is_line_end(options.quote))
    fail<Error>(csv_name, where, "delimiter and quote must differ, and be no line ends");
  if (options.columns < 0) fail<Error>(csv_name, where, "columns is {}, but must be at least 0", options.columns);
  RowReader reader(path, options, where);
  std::vector<std::string> cells;
  std::int64_t line = 0;
  std::vector<std::string> names;
  if (options.header && reader.next(cells, line, true)) {
    std::set<std::string_view> seen;
    for (const std::string& name : cells)
      if (!seen.insert(name).second)
        fail<io::FileError>(csv_name, where, "{}: two columns have the name {}; read it with .header = false",
                            to_string(reader.source(line)), shown(name));
    names = cells;
  }
  auto columns = std::make_shared<const Columns>(std::move(names));
  std::vector<Row> rows;
  while (reader.next(cells, line)) rows.emplace_back(std::move(cells), columns, reader.source(line));
  return {std::move(columns), std::move(rows)};
}

}  // namespace reel::data
