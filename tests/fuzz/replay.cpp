// Runs the readers on the files that fuzzing has kept, and on each of these cut off at several places.
//
// Usage: replay CORPUS

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <vector>

#include "readers.h"

namespace {

std::vector<unsigned char> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns false after a message if the reader did more than refuse the bytes.
bool is_read(const reel_fuzz::FuzzedReader& reader, const std::filesystem::path& path,
             std::span<const unsigned char> bytes) {
  try {
    reel_fuzz::read_bytes(reader, bytes);
    return true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s, its first %zu bytes: %s\n", path.c_str(), bytes.size(), error.what());
    return false;
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: replay CORPUS\n", stderr);
    return 2;
  }
  int files = 0, failures = 0;
  for (const reel_fuzz::FuzzedReader& reader : reel_fuzz::readers()) {
    int of_reader = 0;
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(arguments[1]) / reader.name)) {
      std::vector<unsigned char> bytes = bytes_of(entry.path());
      std::span<const unsigned char> all(bytes);
      for (std::size_t part = 1; part <= 4; ++part)
        failures += !is_read(reader, entry.path(), all.first(bytes.size() * part / 4));
      ++of_reader;
    }
    if (of_reader == 0) {
      std::fprintf(stderr, "%s has no files\n", reader.name);
      ++failures;
    }
    files += of_reader;
  }
  std::printf("%d files, %d failures\n", files, failures);
  return failures != 0;
}
