#include <reel/data/vocabulary.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "../core/op_error.h"
#include "../core/printable.h"
#include "../core/utf8.h"

namespace reel::data {

using detail::fail;
using detail::find_not_utf8;
using detail::shown;

namespace {

constexpr const char* vocabulary_name = "data::Vocabulary";
constexpr std::string_view first_words = "reel vocabulary 1 ";

void append_escaped(std::string& text, std::string_view word) {
  for (char letter : word) {
    if (letter == '\\')
      text += "\\\\";
    else if (letter == '\n')
      text += "\\n";
    else if (letter == '\r')
      text += "\\r";
    else
      text += letter;
  }
}

// Returns nothing for a backslash with another letter behind it.
std::optional<std::string> unescaped(std::string_view text) {
  std::string word;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      word += text[i];
      continue;
    }
    char letter = ++i < text.size() ? text[i] : '\0';
    if (letter != '\\' && letter != 'n' && letter != 'r') return std::nullopt;
    word += letter == 'n' ? '\n' : letter == 'r' ? '\r' : '\\';
  }
  return word;
}

}  // namespace

void WordCounts::add(std::string_view word, std::int64_t count) {
  auto found = index_.find(word);
  if (found == index_.end()) {
    found = index_.emplace(std::string(word), entries_.size()).first;
    entries_.push_back({std::string(word), 0});
  }
  entries_[found->second].count += count;
}

std::int64_t WordCounts::count(std::string_view word) const {
  auto found = index_.find(word);
  return found == index_.end() ? 0 : entries_[found->second].count;
}

Vocabulary::Vocabulary() : Vocabulary(WordCounts()) {}

Vocabulary::Vocabulary(const WordCounts& counts, const VocabularyOptions& options, Location where)
    : has_unknown_(options.unknown.has_value()) {
  if (options.least_count < 1)
    fail<Error>(vocabulary_name, where, "least_count is {}, but must be at least 1", options.least_count);
  std::int64_t most = options.most_words.value_or(std::numeric_limits<std::int64_t>::max());
  if (most < 0) fail<Error>(vocabulary_name, where, "most_words is {}, but must be at least 0", most);
  auto checked = [&](const std::string& word) -> const std::string& {
    if (find_not_utf8(word) != word.npos) fail<Error>(vocabulary_name, where, "the word {} is not UTF-8", shown(word));
    return word;
  };
  auto add_special = [&](const std::string& word) {
    if (!append(checked(word), counts.count(word)))
      fail<Error>(vocabulary_name, where, "the special word {} occurs twice", shown(word));
  };
  if (options.unknown) add_special(*options.unknown);
  for (const std::string& word : options.specials) add_special(word);

  std::vector<const WordCounts::Entry*> kept;
  for (const WordCounts::Entry& entry : counts.entries())
    if (entry.count >= options.least_count && !ids_.contains(entry.word)) kept.push_back(&entry);
  bool is_cut = static_cast<std::uint64_t>(most) < kept.size();
  auto more_frequent = [](const auto* a, const auto* b) { return a->count > b->count; };
  if (options.order == WordOrder::count || is_cut) std::ranges::stable_sort(kept, more_frequent);
  if (is_cut) kept.resize(static_cast<std::size_t>(most));
  // Entries are elements of one vector, in the order of their first occurrence.
  if (options.order == WordOrder::occurrence) std::ranges::sort(kept);
  if (options.order == WordOrder::alphabet) std::ranges::sort(kept, {}, &WordCounts::Entry::word);
  for (const WordCounts::Entry* entry : kept) append(checked(entry->word), entry->count);
}

bool Vocabulary::append(std::string word, std::int64_t count) {
  if (!ids_.emplace(word, size()).second) return false;
  words_.push_back(std::move(word));
  counts_.push_back(count);
  return true;
}

std::optional<std::int64_t> Vocabulary::find(std::string_view word) const {
  auto found = ids_.find(word);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::int64_t Vocabulary::operator[](std::string_view word) const {
  if (std::optional<std::int64_t> id = find(word)) return *id;
  if (!has_unknown_)
    fail<Error>(vocabulary_name, {}, "the word {} is not among its {} words, and none stands for unknown ones",
                shown(word), size());
  return 0;
}

const std::string& Vocabulary::word(std::int64_t id, Location where) const {
  if (id < 0 || id >= size()) fail<IndexError>(vocabulary_name, where, "there is no id {} among {} words", id, size());
  return words_[static_cast<std::size_t>(id)];
}

std::int64_t Vocabulary::count(std::int64_t id, Location where) const {
  word(id, where);
  return counts_[static_cast<std::size_t>(id)];
}

std::optional<std::int64_t> Vocabulary::unknown() const {
  return has_unknown_ ? std::optional<std::int64_t>(0) : std::nullopt;
}

std::string Vocabulary::text() const {
  std::string text(first_words);
  text += has_unknown_ ? "1\n" : "0\n";
  for (std::size_t i = 0; i < words_.size(); ++i) {
    text += fmt::format("{} ", counts_[i]);
    append_escaped(text, words_[i]);
    text += '\n';
  }
  return text;
}

Vocabulary Vocabulary::from_text(std::string_view text, Location where) {
  std::size_t line = 1;
  auto refuse = [&](const char* why) {
    fail<Error>(vocabulary_name, where, "line {} of the text {}; it is not one that text() has given", line, why);
  };
  auto next_line = [&] {
    std::size_t end = text.find('\n');
    if (end == text.npos) refuse("has no end");
    std::string_view found = text.substr(0, end);
    text.remove_prefix(end + 1);
    return found;
  };
  Vocabulary vocabulary{Empty()};
  std::string_view first = next_line();
  if (!first.starts_with(first_words) ||
      (first.substr(first_words.size()) != "0" && first.substr(first_words.size()) != "1"))
    refuse("is not 'reel vocabulary 1 0' or 'reel vocabulary 1 1'");
  vocabulary.has_unknown_ = first.ends_with('1');
  for (line = 2; !text.empty(); ++line) {
    std::string_view entry = next_line();
    std::int64_t count = 0;
    auto [stop, error] = std::from_chars(entry.data(), entry.data() + entry.size(), count);
    if (error != std::errc() || stop == entry.data() + entry.size() || *stop != ' ' || count < 0)
      refuse("does not begin with a count and a space");
    std::optional<std::string> word = unescaped(entry.substr(static_cast<std::size_t>(stop - entry.data()) + 1));
    if (!word || find_not_utf8(*word) != word->npos) refuse("has a word that is not UTF-8, or a wrong backslash");
    if (!vocabulary.append(std::move(*word), count)) refuse("has a word for the second time");
  }
  if (vocabulary.has_unknown_ && vocabulary.words_.empty()) refuse("is missing, which has the unknown word");
  return vocabulary;
}

}  // namespace reel::data
