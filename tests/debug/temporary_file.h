#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "catch.h"

namespace reel_test {

/// A file in a folder of its own, which is removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name) {
    std::string pattern = (std::filesystem::temp_directory_path() / "reel_debug_XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    path_ = folder_ / name;
  }
  ~TemporaryFile() { std::filesystem::remove_all(folder_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path folder_, path_;
};

}  // namespace reel_test
