#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

#include "catch.h"

namespace reel_test {

/// Returns what f writes to the standard error stream.
template <class F>
std::string printed_to_stderr(F f) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file);
  int kept = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  f();
  std::fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  REQUIRE(std::fseek(file, 0, SEEK_SET) == 0);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

}  // namespace reel_test
