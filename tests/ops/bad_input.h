#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "catch.h"

// A table of calls that must fail: the error names the op, the fault, and the line of the call.

namespace reel_test {

// A call that must fail, and the start of its message.
struct Bad {
  Bad(std::string sentence, std::function<void()> call, const char* path = __builtin_FILE(),
      int line = __builtin_LINE())
      : sentence(std::move(sentence)),
        call(std::move(call)),
        file(std::filesystem::path(path).filename()),
        line(line) {}
  std::string sentence;
  std::function<void()> call;
  std::string file;
  int line;
};

template <class E>
void all_fail(const std::vector<Bad>& rows, bool at_start = false) {
  for (const Bad& row : rows) {
    CAPTURE(row.sentence);
    std::string text = error_of<E>(row.call);
    CHECK_THAT(text, contains(row.sentence));
    if (at_start) CHECK(text.starts_with(row.sentence));
    // The formatter puts the call of a row with braces up to two lines below the row's start or above its end.
    bool found = false;
    for (int away = -2; away <= 2; ++away) found |= text.ends_with(fmt::format("{}:{}", row.file, row.line + away));
    CHECK(found);
  }
}

}  // namespace reel_test
