#include <reel/data/dataset.h>
#include <reel/error.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

struct Word {
  std::string text;
  data::Source source;
};

std::vector<Word> words(const std::string& file, int count) {
  std::vector<Word> made;
  for (int i = 0; i < count; ++i) made.push_back({file + std::to_string(i), data::Source(file, i + 1)});
  return made;
}

}  // namespace

TEST_CASE("views reach the items of their datasets, and their sources") {
  std::vector<Word> a = words("a", 3);
  auto both = data::concat(a, words("b", 2));
  auto some = data::subset(both, {4, 0, 3});
  auto sizes = data::transformed(some, [](const Word& word) { return word.text + "!"; });
  CHECK(both.size() == 5);
  CHECK(both[2].text == "a2");
  CHECK(both[3].text == "b0");
  CHECK(&both[1] == &a[1]);
  REQUIRE(sizes.size() == 3);
  CHECK(sizes[0] == "b1!");
  CHECK(sizes[1] == "a0!");
  CHECK(to_string(sizes.source(0)) == "b:2");
  CHECK(to_string(data::source_at(some, 1)) == "a:1");
  auto pointers = data::transformed(a, [](const Word& word) { return &word; });
  CHECK(to_string(data::source_at(pointers, 2)) == "a:3");
  CHECK_FALSE(data::source_at(std::vector<int>{1}, 0).known());
}

TEST_CASE("a subset with an index that does not exist is refused") {
  std::vector<int> items{1, 2};
  CHECK_THAT(error_of<IndexError>([&] { data::subset(items, {0, 2}); }), contains("no item 2 in a dataset of 2"));
  CHECK_THAT(error_of<IndexError>([&] { data::subset(items, {-1}); }), contains("no item -1"));
}

TEST_CASE("a split divides all items at random, and as a seed has it") {
  std::vector<int> items;
  for (int i = 0; i < 101; ++i) items.push_back(i);
  auto parts = data::split(items, {0.8, 0.15, 0.05}, 3);
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].size() == 81);
  CHECK(parts[1].size() == 15);
  CHECK(parts[2].size() == 5);
  std::set<int> seen;
  std::vector<int> order;
  for (auto& part : parts)
    for (std::int64_t i = 0; i < part.size(); ++i) {
      seen.insert(part[i]);
      order.push_back(part[i]);
    }
  CHECK(seen.size() == 101);
  CHECK_FALSE(std::ranges::is_sorted(order));
  CHECK(data::split(items, {0.8, 0.2}, 3)[0][0] == order[0]);
  CHECK_THAT(error_of<Error>([&] { data::split(items, {0.5, 0.4}, 1); }), contains("sum up to 0.9"));
  CHECK_THAT(error_of<Error>([&] { data::split(items, {1.5, -0.5}, 1); }), contains("a share is 1.5"));
  CHECK_THAT(error_of<Error>([&] { data::split(items, {}, 1); }), contains("sum up to 0"));
}

TEST_CASE("sources are printed safely, and many of them in part") {
  CHECK(to_string(data::Source("a\nb", 3)) == "a\\u{a}b:3");
  CHECK(to_string(data::Source("a", 0)) == "a");
  CHECK(to_string(data::Source()) == "unknown source");
  std::vector<data::Source> many;
  for (int i = 1; i <= 5; ++i) many.emplace_back("f", i);
  many.emplace_back();
  CHECK(data::to_string(many, 2) == "f:1, f:2 and 3 more");
  CHECK(data::to_string(std::vector<data::Source>(3)).empty());
}
