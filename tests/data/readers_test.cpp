#include <clocale>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <reel/data/conll.h>
#include <reel/data/csv.h>
#include <reel/data/idx.h>
#include <reel/data/reading.h>
#include <reel/data/trees.h>
#include <reel/ops.h>

#include "catch.h"
#include "io/compressed.h"
#include "io/folder.h"

using namespace reel;
using namespace reel_test;
using Words = std::vector<std::string>;

namespace {

// A file of the given bytes, for one reading.
struct File {
  explicit File(const std::string& bytes) { put_bytes(path, bytes); }
  Folder folder;
  std::string path = folder.file("input");
};

// A text that is no item of its format, the line where that shows, and words of the error.
struct Broken {
  std::string text;
  int line;
  std::string says;
};

// Each text is refused with its line; skipped, it leaves its good items, and is counted.
template <class Read>
void check_broken(const std::vector<Broken>& texts, std::size_t good, Read read) {
  for (const Broken& broken : texts) {
    INFO(broken.text);
    File file(broken.text);
    std::string place = file.path + ":" + std::to_string(broken.line) + ": ";
    CHECK_THAT(error_of<io::FileError>([&] { read(file.path, data::ReadOptions{}); }),
               contains(place) && contains(broken.says) && contains("readers_test.cpp:"));
    data::Skipped skipped;
    CHECK(read(file.path, data::ReadOptions{.on_error = data::OnError::skip, .skipped = &skipped}) == good);
    CHECK(skipped.count == 1);
    REQUIRE(skipped.first.size() == 1);
    CHECK_THAT(skipped.first[0], contains(place) && contains(broken.says));
  }
}

std::string idx(const std::vector<int>& bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

TEST_CASE("lines are read with their sources, plain and compressed, without a byte order mark") {
  std::string text =
      "\xef\xbb\xbf"
      "a\r\n\nc ü";
  for (const std::string& bytes : {text, detail::gzip(text, {})}) {
    File file(bytes);
    std::vector<data::Line> lines = data::read_lines(file.path);
    REQUIRE(lines.size() == 3);
    CHECK(lines[0].text == "a");
    CHECK(lines[1].text.empty());
    CHECK(lines[2].text == "c ü");
    CHECK(to_string(lines[2].source) == file.path + ":3");
  }
  CHECK(data::read_lines("/dev/null").empty());
}

TEST_CASE("lines that are no text are refused or skipped, and texts that are too long are refused") {
  auto read = [](const std::string& path, data::ReadOptions options) {
    options.most_line_bytes = 9;
    return data::read_lines(path, options, Location::here()).size();
  };
  check_broken({{"a\nb\xff\nc", 2, "not UTF-8 at byte 2"},
                {std::string("a\nb\nc\0", 6), 3, "its byte 2 is a NUL"},
                {"a\nb\n0123456789", 3, "longer than 9 bytes"}},
               2, read);
  File file("0123456789");
  CHECK_THAT(error_of<io::FileError>([&] { data::read_lines(file.path, {.most_bytes = 9}); }),
             contains("is longer than the 9 bytes that are read of it"));
  File bomb(detail::gzip(std::string(1'000'000, 'x'), {}));
  CHECK_FALSE(error_of<io::FileError>([&] { data::read_lines(bomb.path, {.most_bytes = 100'000}); }).empty());
  CHECK_THAT(error_of<io::FileError>([&] { data::read_lines("/nowhere/text"); }),
             contains("cannot open '/nowhere/text': No such file"));
  CHECK_THAT(error_of<io::FileError>([&] { data::read_lines("/"); }), contains("cannot read '/': Is a directory"));
  CHECK_THAT(error_of<io::FileError>([&] { data::read_lines("/dev/zero"); }),
             contains("'/dev/zero' is no text: its byte 1 is a NUL"));
}

TEST_CASE("of many broken lines all are counted and ten are told") {
  std::string text;
  for (int i = 0; i < 25; ++i) text += "\xff\n";
  File file(text);
  data::Skipped skipped;
  for (int i = 0; i < 2; ++i) data::read_lines(file.path, {.on_error = data::OnError::skip, .skipped = &skipped});
  CHECK(skipped.count == 50);
  CHECK(skipped.first.size() == 10);
  CHECK(data::read_lines(file.path, {.on_error = data::OnError::skip}).empty());
}

TEST_CASE("CoNLL sentences end with an empty line or with the file") {
  File file("\n\n# one\na\tN\nb c\tV\n\n\n# two\n#tag\t#\n");
  std::vector<data::Sentence> sentences = data::read_conll(file.path, {.columns = 2, .comment = "# "});
  REQUIRE(sentences.size() == 2);
  CHECK(sentences[0].columns == std::vector<Words>{{"a", "b c"}, {"N", "V"}});
  CHECK(sentences[0].comments == Words{"# one"});
  CHECK(to_string(sentences[0].source) == file.path + ":4");
  CHECK(sentences[1].columns == std::vector<Words>{{"#tag"}, {"#"}});
  CHECK(sentences[1].comments == Words{"# two"});
  CHECK(sentences[0].size() == 2);
  File spaced("EU  NNP\tB-ORG\n \nrejects VBZ O\n");
  sentences = data::read_conll(spaced.path, {.delimiter = ' '});
  REQUIRE(sentences.size() == 2);
  CHECK(sentences[0].columns == std::vector<Words>{{"EU"}, {"NNP"}, {"B-ORG"}});
}

TEST_CASE("broken CoNLL sentences are refused with their line, or left out whole") {
  auto read = [](const std::string& path, const data::ReadOptions& options) {
    return data::read_conll(path, {.reading = options}, Location::here()).size();
  };
  check_broken({{"a\tN\n\nb\tV\nthe D\nc\tV\n\nd\tN\n", 4,
                 "1 columns where 2 are expected, separated by a tabulator, in 'the D'"},
                {"a\tN\n\nb\tV\tx\nc\n\nd\tN\n", 3, "3 columns where 2 are expected"},
                {"a\tN\n\nb\t\n\nd\tN\n", 3, "an empty cell in 'b\\u{9}'"},
                {"a\tN\n\n\tV\nd\tN\n\nd\tN", 3, "an empty cell"},
                {"a\tN\n\nb\tV\nb\xff\tN\n\nd\tN\n", 4, "not UTF-8"}},
               2, read);
  CHECK_THAT(error_of<Error>([] { data::read_conll("x", {.columns = -1}); }), contains("columns is -1"));
}

TEST_CASE("labelled trees have children before their parents") {
  File file("(3 (2 The) (3 (3 good) (2 film)))\n\n  (1 only)  \n");
  auto trees = data::read_trees(file.path, {.labels = data::TreeOptions::Labels{0, 4}, .lower_case = true});
  REQUIRE(trees.size() == 2);
  CHECK(trees[0].words == Words{"the", "good", "film"});
  REQUIRE(trees[0].nodes.size() == 5);
  CHECK(trees[0].nodes[3].children == std::vector<std::int64_t>{1, 2});
  CHECK(trees[0].root().children == std::vector<std::int64_t>{0, 3});
  CHECK(trees[0].root().value == 3);
  CHECK(trees[0].nodes[2].word == 2);
  CHECK(trees[0].nodes[0].value == 2);
  CHECK(trees[1].root().word == 0);
  CHECK(to_string(trees[1].source) == file.path + ":3");
}

TEST_CASE("trees of the Penn Treebank extend over lines and have any labels and any number of children") {
  File file("( (S\n   (NP (DT The) (NN cat))\n (VP (VBZ sleeps))\n   (. .)) )\n( (X (Y y)) ) (FRAG (UH oh))\n");
  auto trees = data::read_trees(file.path, {.several_lines = true});
  REQUIRE(trees.size() == 3);
  CHECK(trees[0].root().label == "S");
  CHECK(trees[0].root().children.size() == 3);
  CHECK(trees[0].words == Words{"The", "cat", "sleeps", "."});
  CHECK(trees[1].root().label == "X");
  CHECK(trees[2].root().label == "FRAG");
  CHECK(trees[2].source.line() == 5);
}

TEST_CASE("broken trees are refused with their line and character, or left out") {
  auto read = [](const std::string& path, const data::ReadOptions& options) {
    data::TreeOptions all{
        .labels = data::TreeOptions::Labels{0, 4}, .most_children = 2, .deepest = 3, .reading = options};
    return data::read_trees(path, all, Location::here()).size();
  };
  std::vector<Broken> texts;
  for (auto [tree, says] : std::vector<std::pair<std::string, std::string>>{
           {"(3 (2 the) (3 good)", "no ')' at character 20; a line is one tree"},
           {"(3 a) b", "text behind the tree at character 7"},
           {"(3 a))", "text behind the tree at character 6"},
           {"(5 a)", "no label from 0 to 4 behind '(' at character 1"},
           {"(x a)", "no label from 0 to 4"},
           {"(3x a)", "no label from 0 to 4"},
           {"( a)", "no label from 0 to 4"},
           {"(3)", "a leaf without a word at character 3"},
           {"()", "no label"},
           {"a", "no '(' at character 1"},
           {")", "no '(' at character 1"},
           {"(3 a b)", "no ')' at character 6"},
           {"(3 a (2 b))", "a bracket behind a word at character 6"},
           {"(3 (2 b) a)", "no ')' at character 10"},
           {"(3 (2 b) (2 b) (2 b))", "a node with 3 children, of at most 2, at character 21"},
           {"(3 (2 (2 (2 b))))", "a tree deeper than 3 nodes at character 10"},
           {"(99999999999999999999 a)", "no label"},
           {"(", "no label"}})
    texts.push_back({"(1 a)\n" + tree + "\n(1 b)\n", 2, says});
  check_broken(texts, 2, read);
  auto read_lines = [](const std::string& path, const data::ReadOptions& options) {
    return data::read_trees(path, {.several_lines = true, .reading = options}, Location::here()).size();
  };
  check_broken({{"(A a)\n(B\n (C c) d)\n (E e)\n(F f)\n", 3, "no ')' at character 8"},
                {"(A a)\n(B b)\n(C (D\n d)\n", 3, "does not end"},
                {"(A a)\n) (B b)\n (B b)\n(C c)", 2, "no '(' at character 1"},
                {"(A a)\n(B\n (C c)\n (D d)\n(E\n (F f))\n", 2, "does not end before line 5, where another begins"},
                {"(A a)\n(B b\n(C c)\n", 2, "does not end before line 3"},
                {"(A a) (B (C\n c)\n(D d)\n", 1, "does not end before line 3"},
                {"(A a)\n(B\n\xff)\n (C c)\n(D d)\n", 3, "not UTF-8"}},
               2, read_lines);
}

TEST_CASE("a missing bracket costs one tree, not the rest of the file") {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text +=
        i % 10 == 3 ? "( (S\n    (NP (DT a) (NN b)\n    (VP c)) )\n" : "( (S\n    (NP (DT a) (NN b))\n    (VP c)) )\n";
  File file(text + "(S\n (X\n(Y \xff)\n(Z z)\n");
  data::Skipped skipped;
  auto trees = data::read_trees(
      file.path, {.several_lines = true, .reading = {.on_error = data::OnError::skip, .skipped = &skipped}});
  REQUIRE(trees.size() == 91);
  for (const data::LabelledTree& tree : trees) CHECK(tree.source.line() % 3 == 1);
  CHECK(trees.back().words == Words{"z"});
  CHECK(skipped.count == 12);
  CHECK_THAT(skipped.first[1], contains(":40: the tree that begins here does not end before line 43"));
}

TEST_CASE("a tree of any depth is read without recursion") {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "(1 ";
  text += "a" + std::string(100'000, ')');
  File file(text);
  CHECK(data::read_trees(file.path, {.deepest = 100'000}).at(0).nodes.size() == 100'000);
  CHECK_THAT(error_of<io::FileError>([&] { data::read_trees(file.path); }), contains("deeper than 1000"));
}

TEST_CASE("CSV cells may be quoted, and are found by the name of their column") {
  File file("name,age,\"a \"\"quoted\"\" name\"\r\nAnn,+12,x\r\n\r\n\"B,\r\nC\", -1.5e2 ,\"\"\n\"\",\"7\",it\"s\n");
  data::Table table = data::read_csv(file.path);
  CHECK(table.columns().names() == Words{"name", "age", "a \"quoted\" name"});
  REQUIRE(table.size() == 3);
  CHECK(table[0]["name"] == "Ann");
  CHECK(table[0].integer("age") == 12);
  CHECK(table[1][0] == "B,\r\nC");
  CHECK(table[1].number("age") == -150);
  CHECK(table[1]["a \"quoted\" name"].empty());
  CHECK(table[2].cells() == Words{"", "7", "it\"s"});
  CHECK(table[2].source.line() == 6);
  CHECK(table[1].source.line() == 4);
  File tabs("1\t\"2\n3\t4\n");
  data::Table plain = data::read_csv(tabs.path, {.delimiter = '\t', .quote = 0, .header = false});
  REQUIRE(plain.size() == 2);
  CHECK(plain[0][1] == "\"2");
  CHECK_THAT(error_of<Error>([&] { (void)plain[0]["a"]; }), contains("without a header"));
  CHECK(data::read_csv("/dev/null").size() == 0);
}

TEST_CASE("numbers in cells do not depend on the locale, and what is none names its line") {
  File file("a,b\n1.5,x\n1e999, \n-,9223372036854775808\n1.5x,1.5\n+-1,++1\n");
  std::string before = std::setlocale(LC_ALL, nullptr);
  std::setlocale(LC_ALL, "de_DE.UTF-8");
  data::Table table = data::read_csv(file.path);
  CHECK(table[0].number("a") == 1.5);
  std::setlocale(LC_ALL, before.c_str());
  auto number = [&](std::int64_t row, const char* column) {
    return error_of<io::FileError>([&] { (void)table[row].number(column); });
  };
  auto integer = [&](std::int64_t row, const char* column) {
    return error_of<io::FileError>([&] { (void)table[row].integer(column); });
  };
  CHECK_THAT(number(0, "b"), contains(file.path + ":2: 'x' is no number") && contains("readers_test.cpp:"));
  CHECK_THAT(number(1, "a"), contains(":3: the number '1e999' is out of range"));
  CHECK_THAT(number(1, "b"), contains("' ' is no number"));
  CHECK_THAT(number(2, "a"), contains("'-' is no number"));
  CHECK_THAT(number(3, "a"), contains("'1.5x' is no number"));
  CHECK_FALSE(number(4, "a").empty());
  CHECK_FALSE(number(4, "b").empty());
  CHECK_THAT(integer(2, "b"), contains("out of range"));
  CHECK_THAT(integer(3, "b"), contains("'1.5' is no integer"));
  CHECK_THAT(error_of<Error>([&] { (void)table[0]["c"]; }), contains("no column 'c'; there are 'a', 'b'"));
  CHECK_THAT(error_of<IndexError>([&] { (void)table[0][2]; }), contains("no column 2 among 2"));
}

TEST_CASE("broken CSV rows are refused with their line, or left out") {
  auto read = [](const std::string& path, data::ReadOptions options) {
    options.most_line_bytes = 30;
    return static_cast<std::size_t>(data::read_csv(path, {.reading = options}, Location::here()).size());
  };
  check_broken({{"a,b\n1,2\n3\n4,5\n", 3, "1 cells where 2 are expected"},
                {"a,b\n1,2\n3,4,5\n4,5\n", 3, "3 cells where 2 are expected"},
                {"a,b\n1,2\n\"3\"x,4\n4,5\n", 3, "text behind the quoted cell 1"},
                {"a,b\n1,2\n1,2\n3,\"4\n4,5\n", 4, "a quote that does not end"},
                {"a,b\n1,2\n3,\"4\n45\xff\"\n4,5\n", 3, "line 4 of the row: the line is not UTF-8 at byte 3"},
                {"a,b\n1,2\n4,5\n3,\"4\n0123456789\n0123456789\n0123456789\n", 4, "the row is longer than 30 bytes"}},
               2, read);
  File twice("a,b,a\n");
  CHECK_THAT(error_of<io::FileError>([&] { data::read_csv(twice.path); }),
             contains(":1: two columns have the name 'a'"));
  CHECK_THAT(error_of<Error>([] { data::read_csv("x", {.delimiter = '"'}); }), contains("must differ"));
}

TEST_CASE("IDX files of all types are read, plain and compressed") {
  std::string images = idx({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255});
  for (const std::string& bytes : {images, detail::gzip(images, {})}) {
    File file(bytes);
    Tensor x = data::read_idx(file.path);
    CHECK(x.shape() == Shape{2, 3});
    CHECK(x.to_vector<std::uint8_t>() == std::vector<std::uint8_t>{1, 2, 3, 4, 5, 255});
  }
  auto numbers = [](const std::vector<int>& bytes) {
    File file(idx(bytes));
    Tensor x = data::read_idx(file.path);
    return std::pair(x.dtype(), to(x, f64).to_vector<double>());
  };
  using Numbers = std::pair<DType, std::vector<double>>;
  CHECK(numbers({0, 0, 9, 1, 0, 0, 0, 2, 255, 127}) == Numbers{i8, {-1, 127}});
  CHECK(numbers({0, 0, 11, 1, 0, 0, 0, 2, 255, 254, 1, 0}) == Numbers{i16, {-2, 256}});
  CHECK(numbers({0, 0, 12, 1, 0, 0, 0, 1, 0, 1, 0, 2}) == Numbers{i32, {65538}});
  CHECK(numbers({0, 0, 13, 1, 0, 0, 0, 1, 0x3f, 0xc0, 0, 0}) == Numbers{f32, {1.5}});
  CHECK(numbers({0, 0, 14, 0, 0xbf, 0xf8, 0, 0, 0, 0, 0, 0}) == Numbers{f64, {-1.5}});
  CHECK(numbers({0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 9}) == Numbers{u8, {}});
}

TEST_CASE("broken IDX files are refused before anything is allocated") {
  auto refusal = [](const std::vector<int>& bytes) {
    File file(idx(bytes));
    return error_of<io::FileError>([&] { data::read_idx(file.path, {}, Location::here()); });
  };
  CHECK_THAT(refusal({}), contains("no file of the IDX format"));
  CHECK_THAT(refusal({0, 1, 8, 1, 0, 0, 0, 0}), contains("no file of the IDX format"));
  CHECK_THAT(refusal({0, 0, 10, 1, 0, 0, 0, 0}), contains("no file of the IDX format"));
  CHECK_THAT(refusal({0, 0, 8, 9}), contains("has 9 axes"));
  CHECK_THAT(refusal({0, 0, 8, 2, 0, 0, 0, 1, 0, 0}), contains("ends within its header, at byte 10"));
  CHECK_THAT(refusal({0, 0, 8, 1, 0, 0, 0, 2, 1}), contains("has 1 bytes of elements"));
  CHECK_THAT(refusal({0, 0, 8, 1, 0, 0, 0, 2, 1, 2, 3}), contains("has 3 bytes of elements"));
  CHECK_THAT(refusal({0, 0, 12, 1, 0, 0, 0, 1, 1, 2, 3}), contains("readers_test.cpp:"));
  std::vector<int> huge{0, 0, 8, 8};
  for (int i = 0; i < 32; ++i) huge.push_back(255);
  huge.push_back(1);
  CHECK_THAT(refusal(huge), contains("has 1 bytes of elements"));
}

TEST_CASE("of a compressed IDX file no more is decompressed than its header says") {
  auto refusal = [](const std::string& contents, std::uint64_t most_bytes) {
    File file(detail::gzip(contents, {}));
    return error_of<io::FileError>([&] { data::read_idx(file.path, {.most_bytes = most_bytes}); });
  };
  const std::string zeros(8'000'000, '\0');
  CHECK_THAT(refusal(zeros, 100'000), contains("no file of the IDX format"));
  CHECK_THAT(refusal(idx({0, 0, 8, 1, 0, 0, 0, 3}) + zeros, zeros.size() * 2),
             contains("is more than 11 bytes when it is decompressed"));
  CHECK_THAT(refusal(idx({0, 0, 8, 1, 0, 0, 0, 3, 1, 2}), 100), contains("has 2 bytes of elements"));
  CHECK_THAT(refusal(idx({0, 0, 8, 1, 0, 122, 18, 0}) + zeros, 100'000), contains("more than 100000 bytes"));
  CHECK(refusal(idx({0, 0, 8, 1, 0, 122, 18, 0}) + zeros, zeros.size() * 2).empty());
}

TEST_CASE("a broken CSV header is refused, even where broken rows are skipped") {
  File file(
      "gr\xf6\xdf"
      "e,name\n1,2\n3,4\n");
  data::ReadOptions skip{.on_error = data::OnError::skip};
  CHECK_THAT(error_of<io::FileError>([&] { data::read_csv(file.path, {.reading = skip}); }),
             contains(":1: the header: the line is not UTF-8"));
}

TEST_CASE("readers of random bytes throw errors or read items, and nothing else") {
  std::uint64_t seed = 20;
  std::mt19937_64 random(seed);
  INFO("seed " << seed);
  const std::string letters = "((()))  ,\"\t\n\n\r0134abé\xff";
  for (int i = 0; i < 300; ++i) {
    std::string bytes;
    for (std::size_t k = random() % 60; k > 0; --k) bytes += letters[random() % letters.size()];
    File file(i % 7 == 0 ? std::string("\0\0", 2) + bytes : bytes);
    data::ReadOptions skip{.on_error = data::OnError::skip};
    CHECK_NOTHROW(data::read_lines(file.path, skip));
    CHECK_NOTHROW(data::read_conll(file.path, {.reading = skip}));
    CHECK_NOTHROW(data::read_csv(file.path, {.header = false, .reading = skip}));
    CHECK_NOTHROW(data::read_trees(file.path, {.reading = skip}));
    CHECK_NOTHROW(data::read_trees(file.path, {.several_lines = true, .reading = skip}));
    try {
      data::read_idx(file.path);
    } catch (const io::FileError&) {
    }
  }
}
