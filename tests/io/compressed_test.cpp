#include <cstdlib>

#include <fmt/format.h>
#include <reel/reel.h>

#include <core/modules/module.h>
#include <io/compressed.h>
#include <io/image_codec.h>
#include <io/zip_archive.h>

#include "catch.h"
#include "folder.h"
#include "golden_folder.h"

using namespace reel;
using namespace reel::detail;
using namespace reel_test;

namespace {

constexpr std::uint64_t any_size = 1 << 20;

std::string gunzipped(const std::string& bytes, std::uint64_t most_bytes = any_size) {
  return gunzip(bytes, most_bytes, "a.gz", Location::here());
}

std::string gunzip_error(const std::string& bytes, std::uint64_t most_bytes = any_size) {
  return error_of<io::FileError>([&] { gunzipped(bytes, most_bytes); });
}

Pixels decoded(const std::string& bytes) { return decode_image(bytes, "a.png", Location::here()); }

Pixels decoded_file(const std::string& name) { return decoded(bytes_of(by_python + name)); }

std::string decode_error(const std::string& bytes) {
  return error_of<io::FileError>([&] { decoded(bytes); });
}

// The value that write_files.py gives to a pixel.
std::uint8_t value_of(std::int64_t y, std::int64_t x, std::int64_t channel) {
  return static_cast<std::uint8_t>(y * 40 + x * 20 + channel * 70);
}

Pixels known_pixels(std::int64_t channels) {
  Pixels pixels{3, 4, channels, {}};
  for (int y = 0; y < 3; ++y)
    for (int x = 0; x < 4; ++x)
      for (int c = 0; c < channels; ++c) pixels.values.push_back(value_of(y, x, c));
  return pixels;
}

void check_same(const Pixels& a, const Pixels& b) {
  CHECK(a.height == b.height);
  CHECK(a.width == b.width);
  CHECK(a.channels == b.channels);
  CHECK(a.values == b.values);
}

// Decodes every beginning of a file, and the file with every byte changed, three ways; returns how many are refused.
template <class Decode>
int refusals_of_broken(const std::string& whole, Decode decode) {
  int refused = 0;
  auto attempt = [&](const std::string& bytes) {
    try {
      decode(bytes);
    } catch (const io::FileError&) {
      ++refused;
    }
  };
  for (std::size_t length = 0; length < whole.size(); ++length) attempt(whole.substr(0, length));
  for (std::size_t place = 0; place < whole.size(); ++place)
    for (int change : {1, 0x80, 0xff}) {
      std::string bytes = whole;
      bytes[place] = static_cast<char>(bytes[place] ^ change);
      attempt(bytes);
    }
  return refused;
}

// Modules that are not there, or not of that version.
struct Absent {
  static constexpr ModuleName module = {"reel_absent", "tests", "nothing", 1};
};
struct Newer {
  static constexpr ModuleName module = {"reel_files", "tests", "nothing", FilesTable::module.version + 1};
};

}  // namespace

TEST_CASE("what is compressed by gzip comes back, and equal texts give equal files") {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i * 7919 % 1000);
  for (const std::string& one : {std::string(), std::string("a"), text}) {
    std::string packed = gzip(one, Location::here());
    CHECK(is_gzip(packed));
    CHECK(gunzipped(packed) == one);
    CHECK(packed == gzip(one, Location::here()));
  }
  CHECK_FALSE(is_gzip("\x1f"));
}

TEST_CASE("gzip files of several members are read whole, with zeros behind them") {
  std::string packed = bytes_of(by_python + "text.gz"), text = gunzipped(packed);
  CHECK(text.size() == 4 + 4000);
  CHECK_THAT(text, contains("one\ntwo\ntwo\n"));
  CHECK(gunzipped(packed + std::string(600, '\0')) == text);
  CHECK_THAT(gunzip_error(packed + "x"), contains("'a.gz' goes on at byte 69, after the end"));
}

TEST_CASE("gzip files that are cut off, faulty or too long are refused") {
  std::string packed = bytes_of(by_python + "text.gz");
  CHECK(gunzip_error(packed, 4004).empty());
  CHECK_THAT(gunzip_error(packed, 4003), contains("'a.gz' is more than 4003 bytes when it is decompressed"));
  CHECK_THAT(gunzip_error(packed.substr(0, 60)), contains("is cut off") && contains("compressed_test.cpp:"));
  CHECK_THAT(gunzip_error("no gzip file"), contains("faulty compressed data"));
  int refused = refusals_of_broken(packed, [](const std::string& bytes) { gunzipped(bytes); });
  // The header's time and system, of both members, are not checked; between the members the file may end.
  CHECK(refused >= 4 * 69 - 1 - 2 * 3 * 7);
}

TEST_CASE("members of a zip archive come back, stored or deflated, under any name") {
  Folder folder;
  std::string numbers(5000, 'x');
  std::vector<NewZipMember> members{{"a/b.npy", "head ", std::as_bytes(std::span(numbers))},
                                    {"ü", "", {}},
                                    {"c", "", std::as_bytes(std::span("text", 4))}};
  for (bool compresses : {false, true}) {
    write_zip("test", folder.file("a.zip"), members, compresses, Location::here());
    std::string path = folder.file("a.zip"), bytes = bytes_of(path);
    CHECK((bytes.size() > 5000) != compresses);
    ZipArchive archive("test", path, Location::here());
    REQUIRE(archive.members().size() == 3);
    CHECK(archive.members()[0].name == "a/b.npy");
    CHECK(archive.members()[0].size == 5005);
    CHECK(archive.members()[1].name == "ü");
    CHECK(archive.contents(0) == "head " + numbers);
    CHECK(archive.contents(1).empty());
    CHECK(archive.contents(2) == "text");
    write_zip("test", path, members, compresses, Location::here());
    CHECK(bytes_of(path) == bytes);
  }
  CHECK(folder.names() == std::set<std::string>{"a.zip"});
  CHECK_THAT(error_of<io::FileError>([&] { write_zip("test", folder.file("none/a.zip"), members, false, {}); }),
             contains("cannot write") && contains("No such file"));
}

TEST_CASE("zip archives that are cut off or changed are refused or read, and nothing else") {
  Folder folder;
  std::string text = "some text, some more text";
  std::vector<NewZipMember> members{{"a", text, {}}, {"b", "other", {}}};
  for (bool compresses : {false, true}) {
    write_zip("test", folder.file("a.zip"), members, compresses, Location::here());
    std::string path = folder.file("b.zip");
    refusals_of_broken(bytes_of(folder.file("a.zip")), [&](const std::string& bytes) {
      put_bytes(path, bytes);
      ZipArchive archive("test", path, Location::here());
      for (std::size_t i = 0; i < archive.members().size(); ++i) archive.contents(i);
    });
    for (const char* bytes : {"", "PK", "this is no zip archive, but longer than the shortest of them"}) {
      put_bytes(path, bytes);
      CHECK_FALSE(error_of<io::FileError>([&] { ZipArchive("test", path, Location::here()); }).empty());
    }
  }
}

TEST_CASE("a damaged member of a zip archive is refused with what is wrong with it") {
  Folder folder;
  std::string path = folder.file("a.zip"), text = "some text, some more text";
  write_zip("test", path, std::vector<NewZipMember>{{"a", text, {}}}, false, Location::here());
  std::string bytes = bytes_of(path);
  bytes[bytes.find(text)] ^= 1;
  put_bytes(path, bytes);
  ZipArchive archive("test", path, Location::here());
  CHECK_THAT(error_of<io::FileError>([&] { archive.contents(0); }),
             contains("has a member that cannot be read: CRC error"));
}

TEST_CASE("members of one name, and contents that cannot have been stored, are refused") {
  Folder folder;
  std::string path = folder.file("a.zip"), text(4000, 'x');
  write_zip("test", path, std::vector<NewZipMember>{{"a", "1", {}}, {"b", "2", {}}}, false, Location::here());
  std::string bytes = bytes_of(path);
  for (char& byte : bytes)
    if (byte == 'b') byte = 'a';
  put_bytes(path, bytes);
  put_bytes(folder.file("short.zip"), std::string(21, 'x'));
  CHECK_THAT(error_of<io::FileError>([&] { ZipArchive("test", folder.file("short.zip"), Location::here()); }),
             contains("has 21 bytes, fewer than any zip archive"));
  CHECK_THAT(error_of<io::FileError>([&] { ZipArchive("test", path, Location::here()); }),
             contains("two members named 'a'"));
  write_zip("test", path, std::vector<NewZipMember>{{"a", text, {}}}, true, Location::here());
  bytes = bytes_of(path);
  // The size of the contents in the archive's list: 24 bytes after its mark.
  std::size_t list = bytes.find("PK\1\2");
  REQUIRE(list != bytes.npos);
  bytes.replace(list + 24, 4, std::string("\xff\xff\xff\x7f"));
  put_bytes(path, bytes);
  CHECK_THAT(error_of<io::FileError>([&] { ZipArchive("test", path, Location::here()); }),
             contains("said to hold 2147483647") || contains("is no complete zip archive"));
}

TEST_CASE("images of one to four channels come back from PNG") {
  for (int channels : {1, 2, 3, 4}) {
    Pixels pixels = known_pixels(channels);
    check_same(decoded(encode_png(pixels, Location::here())), pixels);
  }
  Pixels wrong = known_pixels(3);
  wrong.values.pop_back();
  CHECK_THAT(error_of<Error>([&] { encode_png(wrong, Location::here()); }), contains("has not 35 values"));
  CHECK_THAT(error_of<Error>([&] { encode_png({0, 4, 1, {}}, Location::here()); }), contains("cannot be a PNG file"));
  CHECK_THAT(error_of<Error>([&] { encode_png({1, 1, 5, {1, 2, 3, 4, 5}}, Location::here()); }), contains("1 to 4"));
}

TEST_CASE("PNG files of other programs are read: palettes, 16 bits, 1 bit, interlaced") {
  check_same(decoded_file("grey.png"), known_pixels(1));
  check_same(decoded_file("grey_alpha.png"), known_pixels(2));
  check_same(decoded_file("rgb.png"), known_pixels(3));
  check_same(decoded_file("rgba.png"), known_pixels(4));
  check_same(decoded_file("palette.png"), known_pixels(3));
  check_same(decoded_file("interlaced.png"), known_pixels(3));
  check_same(decoded_file("grey_16_bits.png"), known_pixels(1));
  Pixels black_white = known_pixels(1);
  for (std::uint8_t& value : black_white.values) value = value > 100 ? 255 : 0;
  check_same(decoded_file("black_white.png"), black_white);
}

TEST_CASE("JPEG files are read, and those of four colours refused") {
  for (const char* name : {"rgb.jpg", "progressive.jpg", "grey.jpg"}) {
    CAPTURE(name);
    Pixels pixels = decoded_file(name);
    REQUIRE(pixels.height == 16);
    REQUIRE(pixels.width == 24);
    REQUIRE(pixels.channels == (std::string(name) == "grey.jpg" ? 1 : 3));
    int largest = 0;
    for (int y = 0; y < 16; ++y)
      for (int x = 0; x < 24; ++x)
        for (int c = 0; c < pixels.channels; ++c) {
          int expected = c == 0 ? y * 8 : c == 1 ? x * 8 : 128;
          int found = pixels.values[static_cast<std::size_t>((y * 24 + x) * pixels.channels + c)];
          largest = std::max(largest, std::abs(found - expected));
        }
    CHECK(largest <= 6);
  }
  CHECK_THAT(decode_error(bytes_of(by_python + "cmyk.jpg")), contains("4 components") && contains("convert it to RGB"));
}

TEST_CASE("images that are cut off, changed or no images are refused or read, and nothing else") {
  CHECK_THAT(decode_error(""), contains("'a.png' is neither a PNG nor a JPEG file"));
  for (const char* name : {"rgb.png", "palette.png", "interlaced.png", "rgb.jpg", "progressive.jpg"}) {
    CAPTURE(name);
    std::string whole = bytes_of(by_python + name);
    CHECK_THAT(decode_error(whole.substr(0, whole.size() / 2)), contains("'a.png' is a faulty"));
    CHECK(refusals_of_broken(whole, decoded) > static_cast<int>(whole.size()) - 30);
  }
}

TEST_CASE("an image that its file cannot hold is refused before memory is taken for it") {
  std::string bytes = bytes_of(by_python + "rgb.jpg");
  std::size_t frame = bytes.find("\xff\xc0");
  REQUIRE(frame != bytes.npos);
  bytes.replace(frame + 5, 4, "\x30\x00\x30\x00", 4);  // height and width
  CHECK_THAT(decode_error(bytes), contains("806 bytes, which cannot hold the 12288 × 12288 pixels"));
  bytes.replace(frame + 5, 4, "\xff\xff\xff\xff", 4);
  CHECK_THAT(decode_error(bytes), contains("more than the 268435456 that are read") || contains("faulty JPEG"));
  bytes = bytes_of(by_python + "progressive.jpg");
  frame = bytes.find("\xff\xc2");
  REQUIRE(frame != bytes.npos);
  bytes.replace(frame + 5, 4, "\x30\x00\x30\x00", 4);
  CHECK_THAT(decode_error(bytes), contains("650 bytes, which cannot hold the 12288 × 12288 pixels"));
}

TEST_CASE("without the module the error names the folder and says what to do") {
  Folder folder;
  const char* set = std::getenv("REEL_MODULES");
  std::string before = set ? set : "";
  setenv("REEL_MODULES", folder.file("").c_str(), 1);
  std::string absent =
      error_of<io::FileError>([] { open_module<Absent, io::FileError>("io::test", Location::here()); });
  put_bytes(folder.file("libreel_absent.so"), "no library");
  std::string faulty =
      error_of<io::FileError>([] { open_module<Absent, io::FileError>("io::test", Location::here()); });
  if (set)
    setenv("REEL_MODULES", before.c_str(), 1);
  else
    unsetenv("REEL_MODULES");
  CHECK_THAT(absent, contains("io::test: tests need libreel_absent.so, which is not in " + folder.file("")));
  CHECK_THAT(absent, contains("REEL_MODULES") && contains("compressed_test.cpp:"));
  CHECK_THAT(faulty, contains("which cannot be loaded") && contains("it needs Debian's nothing"));
}

TEST_CASE("a module of another version is refused") {
  CHECK_THAT(error_of<io::FileError>([] { open_module<Newer, io::FileError>("io::test", Location::here()); }),
             contains("belongs to another version of reel: install both together"));
}
