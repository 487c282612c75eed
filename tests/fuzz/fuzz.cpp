// A program of libFuzzer, built by tools/fuzz. The environment variable REEL_FUZZ names the reader.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "readers.h"

namespace {

const reel_fuzz::FuzzedReader& chosen_reader() {
  const char* wanted = std::getenv("REEL_FUZZ");
  for (const reel_fuzz::FuzzedReader& reader : reel_fuzz::readers())
    if (wanted && std::string_view(reader.name) == wanted) return reader;
  std::fputs("REEL_FUZZ must name a reader:", stderr);
  for (const reel_fuzz::FuzzedReader& reader : reel_fuzz::readers()) std::fprintf(stderr, " %s", reader.name);
  std::fputs("\n", stderr);
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  static const reel_fuzz::FuzzedReader& reader = chosen_reader();
  reel_fuzz::read_bytes(reader, {bytes, count});
  return 0;
}
