#include <reel/data/trees.h>

#include <charconv>
#include <string_view>
#include <utility>

#include "../core/op_error.h"
#include "../core/printable.h"
#include "text_lines.h"

namespace reel::data {

namespace {

constexpr std::string_view blanks = " \t\r\v\f";

// Builds one tree from pieces of text; brackets that are open are kept on a list, not on the stack.
class TreeBuilder {
 public:
  explicit TreeBuilder(const TreeOptions& options) : options_(options) {}

  /// True within a tree, whose brackets are not all closed.
  bool is_open() const { return !open_.empty(); }
  /// Reads a text up to the end of a tree, and returns true, or to its own end. `fault` is set if the text has not the
  /// form of a tree.
  bool read(std::string_view text, std::size_t& at, std::string& fault) {
    while (skip_blanks(text, at) < text.size()) {
      std::size_t begin = at;
      bool closed = false;
      fault = text[at] == '(' ? open(text, at) : text[at] == ')' ? close(at, closed) : read_word(text, at);
      if (!fault.empty()) {
        fault += fmt::format(" at character {}", begin + 1);
        return false;
      }
      if (closed && open_.empty()) return true;
    }
    return false;
  }
  /// The tree that is complete. The builder is empty again.
  LabelledTree take() {
    open_.clear();
    return std::exchange(tree_, {});
  }

 private:
  static std::size_t skip_blanks(std::string_view text, std::size_t& at) {
    return at = std::min(text.find_first_not_of(blanks, at), text.size());
  }
  static std::string_view token(std::string_view text, std::size_t& at) {
    std::size_t end = std::min(text.find_first_of("() \t\r\v\f", at), text.size());
    std::string_view found = text.substr(at, end - at);
    at = end;
    return found;
  }

  std::string open(std::string_view text, std::size_t& at) {
    if (!open_.empty() && open_.back().word >= 0) return "a bracket behind a word";
    if (static_cast<std::int64_t>(open_.size()) >= options_.deepest)
      return fmt::format("a tree deeper than {} nodes", options_.deepest);
    ++at;
    skip_blanks(text, at);
    LabelledTree::Node& node = open_.emplace_back();
    node.label = token(text, at);
    if (!options_.labels) return {};
    auto [stop, error] = std::from_chars(node.label.data(), node.label.data() + node.label.size(), node.value);
    if (node.label.empty() || error != std::errc() || stop != node.label.data() + node.label.size() ||
        node.value < options_.labels->least || node.value > options_.labels->most)
      return fmt::format("no label from {} to {} behind '('", options_.labels->least, options_.labels->most);
    return {};
  }
  std::string read_word(std::string_view text, std::size_t& at) {
    if (open_.empty()) return "no '('";
    LabelledTree::Node& node = open_.back();
    if (node.word >= 0 || !node.children.empty()) return "no ')'";
    node.word = static_cast<std::int64_t>(tree_.words.size());
    std::string word(token(text, at));
    if (options_.lower_case)
      for (char& letter : word)
        letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
    tree_.words.push_back(std::move(word));
    return {};
  }
  std::string close(std::size_t& at, bool& closed) {
    if (open_.empty()) return "no '('";
    LabelledTree::Node node = std::move(open_.back());
    if (node.word < 0 && node.children.empty()) return "a leaf without a word";
    if (options_.most_children > 0 && static_cast<std::int64_t>(node.children.size()) > options_.most_children)
      return fmt::format("a node with {} children, of at most {},", node.children.size(), options_.most_children);
    open_.pop_back();
    ++at;
    closed = true;
    // Brackets around a whole tree that say nothing of it.
    if (open_.empty() && node.label.empty() && node.children.size() == 1) return {};
    tree_.nodes.push_back(std::move(node));
    if (!open_.empty()) open_.back().children.push_back(static_cast<std::int64_t>(tree_.nodes.size()) - 1);
    return {};
  }

  const TreeOptions& options_;
  LabelledTree tree_;
  std::vector<LabelledTree::Node> open_;
};

class TreeReader {
 public:
  TreeReader(const std::string& path, const TreeOptions& options, Location where)
      : options_(options), lines_("data::read_trees", path, options.reading, where), builder_(options) {}

  std::vector<LabelledTree> read() {
    detail::TextLine line;
    while (lines_.next(line)) options_.several_lines ? read_part(line) : read_whole(line);
    if (builder_.is_open()) refuse(first_line_, "the tree that begins here does not end");
    return std::move(trees_);
  }

 private:
  void read_whole(const detail::TextLine& line) {
    if (!line.fault.empty()) return refuse(line.number, line.fault);
    if (line.text.find_first_not_of(blanks) == line.text.npos) return;
    std::size_t at = 0;
    std::string fault;
    bool complete = builder_.read(line.text, at, fault);
    std::size_t behind = line.text.find_first_not_of(blanks, at);
    if (complete && behind != line.text.npos)
      fault = fmt::format("text behind the tree at character {}", behind + 1);
    else if (!complete && fault.empty())
      fault = fmt::format("no ')' at character {}", line.text.size() + 1);
    if (!fault.empty()) return refuse(line.number, fault + "; a line is one tree, as in (3 (2 a) (3 film))");
    keep(line.number);
  }
  void read_part(const detail::TextLine& line) {
    if (line.text.starts_with('(')) {
      // A missing bracket would make the rest of the file a part of this tree.
      if (builder_.is_open())
        refuse(first_line_, fmt::format("the tree that begins here does not end before line {}, where another begins; "
                                        "further lines of a tree begin with a blank",
                                        line.number));
      is_lost_ = false;
    }
    if (is_lost_) return;
    std::string fault = line.fault;
    for (std::size_t at = 0; fault.empty();) {
      if (!builder_.is_open()) first_line_ = line.number;
      if (builder_.read(line.text, at, fault))
        keep(first_line_);
      else if (fault.empty())
        return;
    }
    is_lost_ = true;
    refuse(line.number, line.fault.empty() ? fault + "; a tree is (label word) or (label tree …)" : fault);
  }
  void keep(std::int64_t line) {
    trees_.push_back(builder_.take());
    trees_.back().source = lines_.source(line);
  }
  void refuse(std::int64_t line, const std::string& fault) {
    builder_.take();
    lines_.refuse(line, fault);
  }

  const TreeOptions& options_;
  detail::TextLines lines_;
  TreeBuilder builder_;
  std::vector<LabelledTree> trees_;
  std::int64_t first_line_ = 0;
  bool is_lost_ = false;
};

}  // namespace

std::vector<LabelledTree> read_trees(const std::string& path, const TreeOptions& options, Location where) {
  if (options.deepest < 1)
    detail::fail<Error>("data::read_trees", where, "deepest is {}, but must be at least 1", options.deepest);
  if (options.most_children < 0)
    detail::fail<Error>("data::read_trees", where, "most_children is {}, but must be at least 0",
                        options.most_children);
  return TreeReader(path, options, where).read();
}

}  // namespace reel::data
