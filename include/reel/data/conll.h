#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <reel/data/reading.h>

namespace reel::data {

/// A sentence of a file in columns.
struct Sentence {
  /// (columns, words): the cells of each column, such as the words and their tags.
  std::vector<std::vector<std::string>> columns;
  std::vector<std::string> comments;  ///< the comment lines in front of it, whole
  Source source;                      ///< its first line that is no comment

  /// The number of words.
  std::int64_t size() const { return columns.empty() ? 0 : static_cast<std::int64_t>(columns[0].size()); }
};

/// Options of `read_conll`.
struct ConllOptions {
  /// The number of columns of every line. 0 (default): that of the first one.
  std::int64_t columns = 0;
  /// The separator of columns; a space stands for any number of spaces and tabulators, as in CoNLL-2003. Default: a
  /// tabulator.
  char delimiter = '\t';
  /// The prefix of comment lines, "#" in CoNLL-U; empty (default): there are none.
  std::string comment = {};
  ReadOptions reading = {};  ///< what happens to broken sentences, and limits
};

/// Reads sentences of a line a word, whose columns are separated by a delimiter; an empty line ends a sentence. Cells
/// are not empty.
/// Throws: io::FileError, which names the file, if it cannot be read or is too long, and for a line with another number
/// of columns or an empty cell, unless broken sentences are skipped.
/// Source: Tjong Kim Sang and De Meulder, Introduction to the CoNLL-2003 shared task (CoNLL 2003), section 3;
/// universaldependencies.org/format.html.
std::vector<Sentence> read_conll(const std::string& path, const ConllOptions& options = {},
                                 Location where = Location::here());

}  // namespace reel::data
