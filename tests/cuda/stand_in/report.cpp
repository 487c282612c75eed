#include <cstdio>
#include <cstdlib>
#include <string>

#include "record.h"

// For programs that start with the stand-in preloaded: when one ends, its calls and what a GPU would have refused are added to
// the file of REEL_STAND_IN_REPORT, as lines "count NAME NUMBER" and "violation SENTENCE".

namespace reel_test::stand_in {
namespace {

void write_report() {
  const char* path = std::getenv("REEL_STAND_IN_REPORT");
  if (!path || !*path) return;
  std::string text;
  for (const auto& [name, number] : counts()) text += fmt::format("count {} {}\n", name, number);
  for (std::string& sentence : take_violations()) {
    for (char& letter : sentence)
      if (letter == '\n') letter = ' ';
    text += fmt::format("violation {}\n", sentence);
  }
  std::FILE* file = std::fopen(path, "a");
  if (!file) return std::perror(path);
  // In one call, because other programs may end at the same time.
  std::setvbuf(file, nullptr, _IOFBF, text.size() + 1);
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

// Registered before the program's own functions, it runs after them.
[[gnu::constructor]] void register_report() { std::atexit(write_report); }

}  // namespace
}  // namespace reel_test::stand_in
