#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <reel/data/reading.h>

namespace reel::data {

/// The names of a table's columns.
class Columns {
 public:
  /// Names in order, all different or absent.
  explicit Columns(std::vector<std::string> names) : names_(std::move(names)) {}
  /// The names in order; empty for a table without a header.
  const std::vector<std::string>& names() const { return names_; }
  /// The index of a column. Throws: Error, which lists the columns, if there is none of this name.
  std::int64_t index(std::string_view name, Location where = Location::here()) const;

 private:
  std::vector<std::string> names_;
};

/// A row of a table: cells by their index or by the name of their column.
class Row {
 public:
  /// Cells under shared names of columns.
  Row(std::vector<std::string> cells, std::shared_ptr<const Columns> columns, Source where_from)
      : source(std::move(where_from)), cells_(std::move(cells)), columns_(std::move(columns)) {}

  /// The number of cells.
  std::int64_t size() const { return static_cast<std::int64_t>(cells_.size()); }
  /// The cells in order.
  const std::vector<std::string>& cells() const { return cells_; }
  /// The text of a cell. Throws: IndexError for an index outside [0, size).
  const std::string& operator[](std::int64_t column) const;
  /// The text of the cell in the column of this name. Throws: Error if there is no such column.
  const std::string& operator[](std::string_view column) const;
  /// A cell as a number, with a decimal point whatever the locale; spaces around it are ignored.
  /// Throws: io::FileError, with file and line, for a cell that is no number or out of the range of f64; IndexError for
  /// an index outside [0, size).
  double number(std::int64_t column, Location where = Location::here()) const;
  /// The cell in the column of this name as a number, with a decimal point whatever the locale; spaces around it are
  /// ignored.
  /// Throws: io::FileError, with file and line, for a cell that is no number or out of the range of f64; Error if there
  /// is no such column.
  double number(std::string_view column, Location where = Location::here()) const;
  /// A cell as an integer; spaces around it are ignored.
  /// Throws: io::FileError, with file and line, for a cell that is no integer of 64 bits; IndexError for an index
  /// outside [0, size).
  std::int64_t integer(std::int64_t column, Location where = Location::here()) const;
  /// The cell in the column of this name as an integer; spaces around it are ignored.
  /// Throws: io::FileError, with file and line, for a cell that is no integer of 64 bits; Error if there is no such
  /// column.
  std::int64_t integer(std::string_view column, Location where = Location::here()) const;

  Source source;  ///< the file and the line where the row begins

 private:
  std::vector<std::string> cells_;
  std::shared_ptr<const Columns> columns_;
};

/// A table: a dataset of rows.
class Table {
 public:
  /// Rows under names of columns.
  Table(std::shared_ptr<const Columns> columns, std::vector<Row> rows)
      : columns_(std::move(columns)), rows_(std::move(rows)) {}

  /// The number of rows, without the header.
  std::int64_t size() const { return static_cast<std::int64_t>(rows_.size()); }
  /// The row at an index in [0, size), which is not checked.
  const Row& operator[](std::int64_t index) const { return rows_[static_cast<std::size_t>(index)]; }
  /// The names of the columns.
  const Columns& columns() const { return *columns_; }
  /// The first row.
  auto begin() const { return rows_.begin(); }
  /// The end of the rows.
  auto end() const { return rows_.end(); }

 private:
  std::shared_ptr<const Columns> columns_;
  std::vector<Row> rows_;
};

/// Options of `read_csv`.
struct CsvOptions {
  char delimiter = ',';      ///< what separates cells, for TSV a tabulator; default ','
  char quote = '"';          ///< what cells are quoted with; 0: nothing, as often in TSV. Default '"'
  bool header = true;        ///< whether the first row has the names of the columns; default true
  std::int64_t columns = 0;  ///< the number of cells of every row; 0 (default): that of the first one
  ReadOptions reading = {};  ///< what happens to broken rows, and limits; a row is at most as long as a line may be
};

/// Reads a table of comma-separated values. A cell that begins with a quote ends with the next single one: within it
/// delimiters and line ends are text, and two quotes are one. Elsewhere a quote is text. Empty lines are ignored.
/// Throws: io::FileError, which names the file, if it cannot be read or is too long, for a header that has a name twice,
/// and, with the line, for a row with another number of cells, a quote that does not end, and text behind a quoted cell,
/// unless broken rows are skipped, which a broken header never is; Error for a delimiter that is a quote or a line end.
/// Source: RFC 4180.
Table read_csv(const std::string& path, const CsvOptions& options = {}, Location where = Location::here());

}  // namespace reel::data
