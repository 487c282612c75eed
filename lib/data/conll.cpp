#include <reel/data/conll.h>

#include <string_view>
#include <utility>

#include "../core/op_error.h"
#include "../core/printable.h"
#include "text_lines.h"

namespace reel::data {

namespace {

// A sentence that is being read.
class SentenceReader {
 public:
  SentenceReader(const std::string& path, const ConllOptions& options, Location where)
      : options_(options), lines_("data::read_conll", path, options.reading, where), columns_(options.columns) {}

  std::vector<Sentence> read() {
    for (detail::TextLine line; lines_.next(line);) read_line(line);
    end_sentence();
    return std::move(sentences_);
  }

 private:
  void read_line(const detail::TextLine& line) {
    if (!line.fault.empty()) return refuse(line, line.fault);
    bool is_blank =
        line.text.empty() || (options_.delimiter == ' ' && line.text.find_first_not_of(" \t") == line.text.npos);
    if (is_blank) return end_sentence();
    if (!options_.comment.empty() && line.text.starts_with(options_.comment)) {
      sentence_.comments.emplace_back(line.text);
      return;
    }
    if (first_line_ == 0) first_line_ = line.number;
    if (!fault_.empty()) return;
    std::vector<std::string_view> cells = cells_of(line.text);
    auto count = static_cast<std::int64_t>(cells.size());
    for (std::string_view cell : cells)
      if (cell.empty()) return refuse(line, fmt::format("an empty cell in {}", detail::shown(line.text)));
    if (columns_ == 0) columns_ = count;
    if (count != columns_)
      return refuse(line, fmt::format("{} columns where {} are expected, separated by {}, in {}", count, columns_,
                                      options_.delimiter == '\t'  ? "a tabulator"
                                      : options_.delimiter == ' ' ? "spaces"
                                                                  : detail::shown({&options_.delimiter, 1}),
                                      detail::shown(line.text)));
    sentence_.columns.resize(cells.size());
    for (std::size_t i = 0; i < cells.size(); ++i) sentence_.columns[i].emplace_back(cells[i]);
  }
  std::vector<std::string_view> cells_of(std::string_view text) const {
    std::vector<std::string_view> cells;
    if (options_.delimiter != ' ') {
      for (std::size_t end = text.find(options_.delimiter); end != text.npos; end = text.find(options_.delimiter)) {
        cells.push_back(text.substr(0, end));
        text.remove_prefix(end + 1);
      }
      cells.push_back(text);
      return cells;
    }
    for (std::size_t begin = text.find_first_not_of(" \t"); begin != text.npos; begin = text.find_first_not_of(" \t")) {
      text.remove_prefix(begin);
      cells.push_back(text.substr(0, text.find_first_of(" \t")));
      text.remove_prefix(cells.back().size());
    }
    return cells;
  }
  // The first fault of a sentence decides; with OnError::stop it ends the reading.
  void refuse(const detail::TextLine& line, std::string fault) {
    if (first_line_ == 0) first_line_ = line.number;
    if (fault_.empty()) {
      fault_ = std::move(fault);
      lines_.refuse(line.number, fault_);
    }
  }
  void end_sentence() {
    if (fault_.empty() && first_line_ > 0) {
      sentence_.source = lines_.source(first_line_);
      sentences_.push_back(std::move(sentence_));
    }
    // Comments of a text end with it, and those in front of an empty line belong to what follows.
    if (first_line_ > 0) sentence_ = {};
    fault_.clear();
    first_line_ = 0;
  }

  const ConllOptions& options_;
  detail::TextLines lines_;
  std::int64_t columns_, first_line_ = 0;
  Sentence sentence_;
  std::string fault_;
  std::vector<Sentence> sentences_;
};

}  // namespace

std::vector<Sentence> read_conll(const std::string& path, const ConllOptions& options, Location where) {
  if (options.columns < 0)
    detail::fail<Error>("data::read_conll", where, "columns is {}, but must be at least 0", options.columns);
  if (options.delimiter == '\n' || options.delimiter == '\r')
    detail::fail<Error>("data::read_conll", where, "the delimiter is a line end");
  return SentenceReader(path, options, where).read();
}

}  // namespace reel::data
