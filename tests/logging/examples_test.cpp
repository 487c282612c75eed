#include <reel/reel.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "catch.h"
#include "io/folder.h"

// The examples in the headers of logs.

using namespace reel;

TEST_CASE("the example of a log writes numbers and a text") {
  reel_test::Folder folder;
  std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(std::filesystem::path(folder.file()).parent_path());
  {
#include "examples/logging_writer_1.h"
  } std::filesystem::current_path(before);
  std::string csv = reel_test::bytes_of(folder.file("runs/first/scalars.csv"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 101);
}
