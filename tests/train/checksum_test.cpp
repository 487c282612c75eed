#include "train/checksum.h"

#include <string>
#include <vector>

#include <reel/ops.h>

#include "catch.h"

using namespace reel;
using namespace reel_test;

TEST_CASE("contents with more or fewer checksums than tensors are damaged") {
  io::Contents contents{.tensors = {{"a", ones({2})}, {"b", zeros({3})}}, .metadata = {{"step", "7"}}};
  std::string whole = detail::checksums_of(contents.tensors, contents.metadata), last = whole.substr(2 * 17);
  auto damage = [&](const std::string& checksums) {
    contents.metadata[detail::checksums_key] = checksums;
    return detail::damage_of(contents);
  };
  CHECK(damage(whole).empty());
  CHECK(damage(last) == "is damaged: it has 1 checksums for 2 tensors");
  CHECK(damage(whole.substr(17)) == "is damaged: it has 2 checksums for 2 tensors");
  CHECK(damage(whole + " " + last) == "is damaged: it has 4 checksums for 2 tensors");
  CHECK(damage("") == "is damaged: it has 0 checksums for 2 tensors");
}

TEST_CASE("the damage of contents is named") {
  const io::Contents whole{.tensors = {{"a", ones({2})}, {"b", zeros({3})}}, .metadata = {{"step", "7"}}};
  CHECK(detail::damage_of(whole) == "is no checkpoint: it has no checksums");
  auto damage = [&](auto change) {
    io::Contents changed = whole;
    changed.metadata[detail::checksums_key] = detail::checksums_of(whole.tensors, whole.metadata);
    change(changed);
    return detail::damage_of(changed);
  };
  CHECK(damage([](io::Contents&) {}).empty());
  CHECK(damage([](io::Contents& one) { one.metadata["step"] = "8"; }) == "has damaged metadata");
  CHECK(damage([](io::Contents& one) { one.metadata["more"] = ""; }) == "has damaged metadata");
  for (std::size_t i : {0u, 1u}) {
    const std::string named = "has a damaged tensor '" + whole.tensors[i].name + "'";
    CHECK(damage([&](io::Contents& one) { one.tensors[i].tensor = one.tensors[i].tensor + 1; }) == named);
    CHECK(damage([&](io::Contents& one) { one.tensors[i].tensor = reshape(one.tensors[i].tensor, {1, -1}); }) == named);
    CHECK(damage([&](io::Contents& one) { one.tensors[i].tensor = to(one.tensors[i].tensor, i32); }) == named);
  }
  CHECK(damage([](io::Contents& one) { one.tensors[1].name = "c"; }) == "has a damaged tensor 'c'");
}
