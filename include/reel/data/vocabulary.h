#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <reel/location.h>

namespace reel::data {

/// Counts how often each word occurs, and remembers which came first.
class WordCounts {
 public:
  /// A word and how often it was added.
  struct Entry {
    std::string word;        ///< the word
    std::int64_t count = 0;  ///< how often it was added
  };

  /// Counts a word once more, or `count` times.
  void add(std::string_view word, std::int64_t count = 1);
  /// Counts each word of a range.
  template <class Words>
  void add_all(const Words& words) {
    for (const auto& word : words) add(word);
  }
  /// How often a word was added; 0 if never.
  std::int64_t count(std::string_view word) const;
  /// The words and their counts, in the order of their first occurrence.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

/// How a Vocabulary orders its words.
enum class WordOrder : std::uint8_t {
  count,       ///< the most frequent ones first, equally frequent ones by their first occurrence
  occurrence,  ///< by their first occurrence
  alphabet,    ///< by their bytes, which in UTF-8 is the order of their code points
};

/// Options of a Vocabulary.
struct VocabularyOptions {
  /// Words that were added less often are left out; at least 1. Default 1.
  std::int64_t least_count = 1;
  /// The most words beside the special ones: of more, the most frequent ones are kept. Default: no bound.
  std::optional<std::int64_t> most_words = {};
  /// The special word whose id, 0, all words have that are not in the vocabulary. Default "<unk>"; nothing: such a word
  /// is an error.
  std::optional<std::string> unknown = "<unk>";
  /// Further special words, such as one for padding, whose ids follow that of the unknown one. Default: none.
  std::vector<std::string> specials = {};
  /// The order of the words behind the special ones. Default WordOrder::count.
  WordOrder order = WordOrder::count;
};

/// The words that a model knows, and their ids 0, 1, …: first the unknown word, if there is one, then the special
/// words, then those that were counted.
///
///     data::WordCounts counts;
///     for (const auto& sentence : sentences) counts.add_all(sentence.words);
///     data::Vocabulary vocabulary(counts, {.least_count = 2});
///     io::save("model.safetensors", model, {{"words", vocabulary.text()}});
class Vocabulary {
 public:
  /// A vocabulary of the unknown word "<unk>" alone.
  Vocabulary();
  /// The words that were counted often enough, as the options have it.
  /// Throws: Error for options out of range, a special word that occurs twice, and words that are not UTF-8.
  explicit Vocabulary(const WordCounts& counts, const VocabularyOptions& options = {},
                      Location where = Location::here());

  /// The number of words, with the special ones.
  std::int64_t size() const { return static_cast<std::int64_t>(words_.size()); }
  /// The id of a word, or that of the unknown word.
  /// Throws: Error for a word that is not there in a vocabulary without an unknown word.
  std::int64_t operator[](std::string_view word) const;
  /// The ids of several words. Throws: Error for a word that is not there in a vocabulary without an unknown word.
  template <class Words>
  std::vector<std::int64_t> ids(const Words& words) const {
    std::vector<std::int64_t> ids;
    for (const auto& word : words) ids.push_back((*this)[word]);
    return ids;
  }
  /// The id of a word; nothing if it is not in the vocabulary.
  std::optional<std::int64_t> find(std::string_view word) const;
  /// True if the word is in the vocabulary.
  bool contains(std::string_view word) const { return find(word).has_value(); }
  /// The word with an id. Throws: IndexError for an id outside [0, size).
  const std::string& word(std::int64_t id, Location where = Location::here()) const;
  /// The words in the order of their ids.
  const std::vector<std::string>& words() const { return words_; }
  /// How often the word with an id was counted; 0 for special words that never were.
  /// Throws: IndexError for an id outside [0, size).
  std::int64_t count(std::int64_t id, Location where = Location::here()) const;
  /// The id of the unknown word, 0; nothing in a vocabulary without one.
  std::optional<std::int64_t> unknown() const;

  /// The vocabulary as a text, for the metadata of the file that has the weights: a line `reel vocabulary 1 U` where U
  /// is 1 if there is an unknown word and 0 if not, then for each id a line with the count, a space and the word, in
  /// which a backslash, a line feed and a carriage return are `\\`, `\n` and `\r`.
  std::string text() const;
  /// The vocabulary that `text` has given, exactly.
  /// Throws: Error, with the number of the line, for a text that is none.
  static Vocabulary from_text(std::string_view text, Location where = Location::here());

 private:
  struct Empty {};
  explicit Vocabulary(Empty) {}
  bool append(std::string word, std::int64_t count);

  // Finds a string_view without making a string of it.
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
  };

  std::vector<std::string> words_;
  std::vector<std::int64_t> counts_;
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> ids_;
  bool has_unknown_ = false;
};

}  // namespace reel::data
