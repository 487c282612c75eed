#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include <reel/reel.h>

#include "catch.h"
#include "debug/recorded_run/recording_summary.h"
#include "recording_of_records.h"
#include "temporary_file.h"

namespace reel {

using debug::RecordedOp;
using debug::RecordedRun;
using debug::Recording;
using namespace reel_test;

TEST_CASE("a file that is no recording, or a damaged one, is refused with a sentence") {
  TemporaryFile file("run.reel");
  CHECK_THROWS_WITH(RecordedRun::read(file.path()), contains("RecordedRun::read: cannot open"));
  std::ofstream(file.path()) << "hello";
  CHECK_THROWS_WITH(RecordedRun::read(file.path()), contains("is no recording: it is shorter"));
  std::ofstream(file.path()) << std::string(8192, 'x');
  CHECK_THROWS_WITH(RecordedRun::read(file.path()), contains("is no recording: it does not begin as one"));
  {
    Recording recording(file.path());
    (void)exp(ones({3}));
  }
  std::string whole;
  {
    std::ifstream in(file.path(), std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  // Damage of any byte gives a run or an error, and nothing else; so does any truncation.
  int refused = 0;
  for (std::size_t i = 4096; i < whole.size(); ++i) {
    for (bool cut : {false, true}) {
      std::string damaged = cut ? whole.substr(0, i) : whole;
      if (!cut) damaged[i] = static_cast<char>(damaged[i] ^ 0xff);
      std::ofstream(file.path(), std::ios::binary) << damaged;
      try {
        RecordedRun::read(file.path());
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  CHECK(refused > 10);
}

TEST_CASE("a recording that claims more than its bytes can hold is refused") {
  TemporaryFile file("run.reel");
  auto error = [&](const reel_test::HostileOp& op) {
    std::ofstream(file.path(), std::ios::binary) << reel_test::recording_of(op);
    return error_of<io::FileError>([&] { RecordedRun::read(file.path()); });
  };
  CHECK(error({}).empty());
  constexpr std::uint64_t large = 1'000'000;
  CHECK_THAT(error({.id = 0}), contains("a kind or an id that does not exist"));
  CHECK(error({.kind = 3}).empty());
  CHECK_THAT(error({.kind = 4}), contains("a kind or an id that does not exist"));
  CHECK_THAT(error({.text_index = 2}), contains("a text that is not there"));
  CHECK_THAT(error({.inputs = large}), contains("more inputs than its record holds"));
  CHECK_THAT(error({.outputs = large}), contains("more outputs than its record holds"));
  for (std::uint64_t dtype = 0; dtype < dtype_count; ++dtype) CHECK(error({.dtype = dtype}).empty());
  for (std::uint64_t dtype : {std::uint64_t{dtype_count}, std::uint64_t{255}})
    CHECK_THAT(error({.dtype = dtype}), contains("a dtype does not exist"));
  CHECK(error({.device = 255}).empty());
  CHECK_THAT(error({.device = 256}), contains("a device does not exist"));
  CHECK_THAT(error({.rank = max_rank + 1}), contains("too many axes"));
  CHECK_THAT(error({.rows = std::uint64_t{1} << 63}), contains("an axis is too long"));
  CHECK_THAT(error({.units = std::uint64_t{1} << 31, .rows = std::uint64_t{1} << 31}),
             contains("a tensor is too large"));
  CHECK(error({.zero_unit = 4}).empty());
  for (std::uint64_t unit : {0, 5}) CHECK_THAT(error({.zero_unit = unit}), contains("a unit does not exist"));
  CHECK_THAT(error({.units = std::uint64_t{1} << 30}), contains("more units"));
  CHECK_THAT(error({.nans = 7}), contains("more elements than it has"));
  // One of its elements is 0.
  CHECK(error({.units = 4, .nans = 3, .rows = 1}).empty());
  CHECK_THAT(error({.units = 4, .nans = 4, .rows = 1}), contains("more elements than it has"));
  CHECK_THAT(error({.nans = std::uint64_t{1} << 63}), contains("more elements than it has"));
  for (std::uint64_t huge : {std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
    CHECK_THAT(error({.id = huge}), contains("a number is too large"));
    CHECK_THAT(error({.step = huge}), contains("a number is too large"));
    CHECK_THAT(error({.duration = huge}), contains("a number is too large"));
  }
  CHECK_THAT(error({.line = std::uint64_t{1} << 31}), contains("a number is too large"));
}

TEST_CASE("texts of a recording are read without control characters and bytes that are not UTF-8") {
  TemporaryFile file("run.reel");
  std::ofstream(file.path(), std::ios::binary)
      << reel_test::recording_of({.text = "\x1b]0;owned\x07\n\xff\u202e", .program = "run\x1b[2J"});
  RecordedRun run = RecordedRun::read(file.path());
  REQUIRE(run.ops().size() == 1);
  const RecordedOp& op = run.ops()[0];
  const std::string shown = R"(\u{1b}]0;owned\u{7}\u{a}\xff\u{202e})";
  for (std::string_view text : {op.op, op.file, op.module, op.notes, op.error, op.outputs[0].name})
    CHECK(text == shown);
  CHECK(run.program() == R"(run\u{1b}[2J)");
  CHECK(debug::summarise_recording(file.path()).program == R"(run\u{1b}[2J)");
}

TEST_CASE("a recording whose header has sizes or a name that no recording has is refused") {
  TemporaryFile file("run.reel");
  { Recording recording(file.path()); }
  std::ifstream in(file.path(), std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(in), {});
  struct Case {
    std::size_t offset;
    std::uint64_t value;
    std::size_t bytes;
  };
  constexpr std::size_t segment_bytes = 8, program_bytes = 32;
  const Case cases[] = {{segment_bytes, 0, 8},
                        {segment_bytes, (std::uint64_t{1} << 16) - 1, 8},
                        {segment_bytes, (std::uint64_t{1} << 24) + 1, 8},
                        {segment_bytes, std::numeric_limits<std::uint64_t>::max(), 8},
                        {program_bytes, 4096 - 36 + 1, 4},
                        {program_bytes, std::numeric_limits<std::uint32_t>::max(), 4}};
  for (const Case& one : cases) {
    INFO(one.value << " at byte " << one.offset);
    std::string damaged = whole;
    std::memcpy(damaged.data() + one.offset, &one.value, one.bytes);
    std::ofstream(file.path(), std::ios::binary) << damaged;
    CHECK_THROWS_WITH(RecordedRun::read(file.path()), contains("is a damaged recording: its header"));
  }
}

}  // namespace reel
