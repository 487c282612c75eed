#include <reel/data/vocabulary.h>
#include <reel/error.h>

#include <random>
#include <string>
#include <vector>

#include "catch.h"

using namespace reel;
using namespace reel_test;
using Words = std::vector<std::string>;

namespace {

data::WordCounts counts_of(const Words& words) {
  data::WordCounts counts;
  counts.add_all(words);
  return counts;
}

const Words sample{"the", "cat", "the", "dog", "cat", "the", "ant"};

}  // namespace

TEST_CASE("words are ordered by their counts, then by their first occurrence") {
  data::Vocabulary vocabulary(counts_of(sample));
  CHECK(vocabulary.words() == Words{"<unk>", "the", "cat", "dog", "ant"});
  CHECK(vocabulary["cat"] == 2);
  CHECK(vocabulary["bird"] == 0);
  CHECK(vocabulary.count(1) == 3);
  CHECK(vocabulary.count(0) == 0);
  CHECK_FALSE(vocabulary.contains("bird"));
  CHECK(vocabulary.ids(Words{"dog", "bird"}) == std::vector<std::int64_t>{3, 0});
  CHECK(vocabulary.unknown() == 0);
  CHECK(data::Vocabulary().words() == Words{"<unk>"});
}

TEST_CASE("words that come late are ordered by their counts, too") {
  data::WordCounts counts = counts_of({"dog", "cat", "ant", "cat", "the", "the", "the", "ant"});
  CHECK(data::Vocabulary(counts).words() == Words{"<unk>", "the", "cat", "ant", "dog"});
  CHECK(data::Vocabulary(counts, {.most_words = 1}).words() == Words{"<unk>", "the"});
  CHECK(data::Vocabulary(counts, {.most_words = 2, .order = data::WordOrder::occurrence}).words() ==
        Words{"<unk>", "cat", "the"});
  CHECK(data::Vocabulary(counts, {.order = data::WordOrder::occurrence}).words() ==
        Words{"<unk>", "dog", "cat", "ant", "the"});
}

TEST_CASE("options cut words off, add special ones, and choose another order") {
  data::WordCounts counts = counts_of(sample);
  CHECK(data::Vocabulary(counts, {.least_count = 2}).words() == Words{"<unk>", "the", "cat"});
  CHECK(data::Vocabulary(counts, {.most_words = 3, .unknown = {}, .order = data::WordOrder::alphabet}).words() ==
        Words{"cat", "dog", "the"});
  CHECK(data::Vocabulary(counts, {.most_words = 0}).words() == Words{"<unk>"});
  CHECK(data::Vocabulary(counts, {.unknown = {}, .order = data::WordOrder::occurrence}).words() ==
        Words{"the", "cat", "dog", "ant"});
  data::Vocabulary special(counts, {.unknown = "?", .specials = {"<pad>", "dog"}});
  CHECK(special.words() == Words{"?", "<pad>", "dog", "the", "cat", "ant"});
  CHECK(special.count(2) == 1);
}

TEST_CASE("without an unknown word, an unknown word is an error") {
  data::Vocabulary tags(counts_of({"N", "V"}), {.unknown = {}});
  CHECK(tags["V"] == 1);
  CHECK_FALSE(tags.find("A").has_value());
  CHECK_FALSE(tags.unknown().has_value());
  CHECK_THAT(error_of<Error>([&] { (void)tags["A"]; }), contains("the word 'A' is not among its 2 words"));
}

TEST_CASE("ids that do not exist and options out of range are refused") {
  data::Vocabulary vocabulary(counts_of(sample));
  for (std::int64_t id : {-1, 5}) {
    CHECK_THAT(error_of<IndexError>([&] { (void)vocabulary.word(id); }), contains("among 5 words"));
    CHECK_THAT(error_of<IndexError>([&] { (void)vocabulary.count(id); }), contains("vocabulary_test.cpp:"));
  }
  auto refusal = [](const data::WordCounts& counts, const data::VocabularyOptions& options) {
    return error_of<Error>([&] { data::Vocabulary made(counts, options); });
  };
  CHECK_THAT(refusal({}, {.least_count = 0}), contains("least_count is 0"));
  CHECK_THAT(refusal({}, {.most_words = -1}), contains("most_words is -1"));
  CHECK_THAT(refusal({}, {.specials = {"<unk>"}}), contains("'<unk>' occurs twice"));
  CHECK_THAT(refusal(counts_of({"\xff"}), {}), contains("is not UTF-8"));
}

TEST_CASE("a vocabulary comes back from its text exactly, whatever its words are") {
  std::mt19937_64 random(7);
  const std::string letters[] = {"a", "\\", "\n", "\r", "n", " ", "ü", "\xf0\x9f\x8c\xb3", "\t", "1"};
  data::WordCounts counts;
  counts.add("");
  for (int i = 0; i < 500; ++i) {
    std::string word;
    for (std::size_t k = 0; k < 1 + random() % 4; ++k) word += letters[random() % std::size(letters)];
    counts.add(word, static_cast<std::int64_t>(random() % 1000));
  }
  for (std::optional<std::string> unknown : {std::optional<std::string>("<unk>"), std::optional<std::string>()}) {
    data::Vocabulary vocabulary(counts, {.unknown = unknown, .specials = {"<pad>"}});
    data::Vocabulary found = data::Vocabulary::from_text(vocabulary.text());
    CHECK(found.words() == vocabulary.words());
    CHECK(found.text() == vocabulary.text());
    CHECK(found.unknown() == vocabulary.unknown());
    CHECK(found.count(5) == vocabulary.count(5));
    CHECK(found["a"] == vocabulary["a"]);
  }
}

TEST_CASE("a text that is no vocabulary is refused with its line") {
  auto refusal = [](std::string_view text) { return error_of<Error>([&] { data::Vocabulary::from_text(text); }); };
  CHECK_THAT(refusal(""), contains("line 1 of the text has no end"));
  CHECK_THAT(refusal("words\n"), contains("line 1 of the text is not"));
  CHECK_THAT(refusal("reel vocabulary 1 2\n"), contains("line 1 of the text is not"));
  CHECK_THAT(refusal("reel vocabulary 1 1\n"), contains("line 2 of the text is missing"));
  const char* head = "reel vocabulary 1 0\n3 a\n";
  for (const char* line :
       {"4 b", "b\n", "-1 b\n", " b\n", "4\n", "99999999999999999999 b\n", "4 a\n", "4 b\\x\n", "4 b\\\n", "4 \xff\n"})
    CHECK_THAT(refusal(head + std::string(line)), contains("line 3 of the text "));
  CHECK(refusal(head).empty());
}
