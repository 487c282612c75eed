#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <random>

#include <fmt/format.h>
#include <reel/reel.h>

#include <io/file.h>

#include "catch.h"
#include "folder.h"

using namespace reel;
using namespace reel_test;

namespace {

// The error of reading a file of these bytes; empty if it can be read.
std::string refusal(const std::string& bytes) {
  Folder folder;
  put_bytes(folder.file(), bytes);
  std::string said = error_of<io::FileError>([&] { io::load(folder.file()); });
  if (!said.empty()) {
    CHECK_THAT(said, contains("io::load: '" + folder.file() + "' ") && contains("broken_files_test.cpp:"));
  }
  return said;
}

std::string refusal(const std::string& header, const std::string& elements) {
  return refusal(safetensors(header, elements));
}

std::string entry(const std::string& fields) { return fmt::format("{{\"a\":{{{}}}}}", fields); }

const std::string four(4, '\1');
const std::string good = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";

}  // namespace

TEST_CASE("the file that the broken ones are made of is read") {
  CHECK(refusal(good, four).empty());
  CHECK(refusal(good + "   ", four).empty());
  CHECK(refusal("{ \"a\" : {\"data_offsets\":[0,4] , \"shape\":[ ],\n\"dtype\":\"F32\"} }", four).empty());
  CHECK(refusal("{}", "").empty());
}

TEST_CASE("a file too short for its header is refused") {
  CHECK_THAT(refusal(""), contains("has 0 bytes, fewer than the 8"));
  CHECK_THAT(refusal("1234567"), contains("has 7 bytes"));
  CHECK_THAT(refusal(std::string(8, '\0')), contains("does not begin with {"));
  CHECK_THAT(refusal(std::string("\3\0\0\0\0\0\0\0{}", 10)), contains("header has 3 bytes, but only 2 follow"));
  CHECK_THAT(refusal(std::string(7, '\xff') + "\x7f{}"), contains("more than the 100000000"));
  CHECK_THAT(refusal(std::string("\1\xe1\xf5\5\0\0\0\0{}", 10)), contains("header has 100000001 bytes, more than"));
  CHECK_THAT(refusal(std::string("\0\xe1\xf5\5\0\0\0\0{}", 10)), contains("header has 100000000 bytes, but only 2"));
}

TEST_CASE("a header that is no JSON object in UTF-8 is refused") {
  CHECK_THAT(refusal(" {}", ""), contains("does not begin with {"));
  CHECK_THAT(refusal("[]", ""), contains("does not begin with {"));
  CHECK_THAT(refusal("\xef\xbb\xbf{}", ""), contains("does not begin with {"));
  for (const char* header :
       {"{", "{}}", "{},", "{} x", "{\"a\"}", "{'a':1}", "{\"\xff\":{}}", "{\"\\ud800\":{}}", "{/**/}", "{}\xc3\xa4"})
    CHECK_THAT(refusal(header, ""), contains("no valid JSON in UTF-8"));
  CHECK_THAT(refusal(std::string("{}\0 ", 4), ""), contains("no valid JSON in UTF-8 at byte 3"));
  CHECK_THAT(refusal(std::string("{}\0{\"a\"", 7), ""), contains("no valid JSON"));
}

TEST_CASE("a header with something else where a tensor should be described is refused") {
  for (const char* value : {"1", "-1", "1.5", "null", "true", "\"F32\"", "[]", "[[[[]]]]"})
    CHECK_FALSE(refusal("{\"a\":" + std::string(value) + "}", "").empty());
  CHECK_THAT(refusal("{\"a\":{}}", ""), contains("tensor 'a' without its dtype"));
  CHECK_THAT(refusal(entry(R"("dtype":"F32")"), four), contains("without its shape"));
  CHECK_THAT(refusal(entry(R"("dtype":"F32","shape":[1])"), four), contains("without its data_offsets"));
  CHECK_THAT(refusal(entry(R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1)"), four), contains("a field 'x'"));
  CHECK_THAT(refusal(entry(R"("dtype":1,"shape":[1],"data_offsets":[0,4])"), four), contains("a number"));
  CHECK_THAT(refusal(entry(R"("dtype":"F32","shape":"1","data_offsets":[0,4])"), four), contains("a string"));
  CHECK_THAT(refusal(entry(R"("dtype":"F32","shape":[[1]],"data_offsets":[0,4])"), four),
             contains("an array in its shape"));
  CHECK_THAT(refusal(entry(R"("dtype":"F32","shape":[1],"data_offsets":[0,{}])"), four),
             contains("an object in its data_offsets"));
  CHECK_FALSE(refusal("{\"a\":" + std::string(100'000, '['), "").empty());
  CHECK_FALSE(refusal("{\"a\":" + std::string(100'000, '{'), "").empty());
}

TEST_CASE("names that come twice are refused") {
  std::string one = R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  CHECK_THAT(refusal(fmt::format("{{{0},{0}}}", one), ""), contains("two entries named 'a'"));
  CHECK_THAT(refusal(R"({"__metadata__":{},"__metadata__":{}})", ""), contains("two entries named '__metadata__'"));
  CHECK_THAT(refusal(R"({"__metadata__":{"k":"v","k":"v"}})", ""), contains("two words of the name 'k'"));
  CHECK_THAT(refusal(entry(R"("dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4])"), four),
             contains("two fields dtype"));
  CHECK_THAT(refusal(fmt::format(R"({{{},"\u0061":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}}})", one), ""),
             contains("two entries named 'a'"));
}

TEST_CASE("metadata other than strings by name are refused") {
  for (const char* value :
       {"1", "null", "[]", "\"x\"", "{\"k\":1}", "{\"k\":null}", "{\"k\":{}}", "{\"k\":[]}", "{\"k\":true}"})
    CHECK_THAT(refusal("{\"__metadata__\":" + std::string(value) + "}", ""), contains("__metadata__"));
}

TEST_CASE("dtypes that reel has not, and those that nobody has, are refused by name") {
  for (const char* dtype : {"U16", "U32", "U64", "F8_E4M3", "F8_E5M2"})
    CHECK_THAT(refusal(entry("\"dtype\":\"" + std::string(dtype) + R"(","shape":[0],"data_offsets":[0,0])"), ""),
               contains("tensor 'a' of the dtype " + std::string(dtype) + ", which reel has not"));
  for (const char* dtype : {"f32", "F33", "", "float"})
    CHECK_THAT(refusal(entry("\"dtype\":\"" + std::string(dtype) + R"(","shape":[0],"data_offsets":[0,0])"), ""),
               contains("which the format does not know"));
}

TEST_CASE("shapes and offsets are whole numbers that fit each other and the file") {
  auto shaped = [](const std::string& shape, const std::string& offsets, const std::string& elements) {
    return refusal(entry("\"dtype\":\"F32\",\"shape\":[" + shape + "],\"data_offsets\":[" + offsets + "]"), elements);
  };
  CHECK(shaped("1", "0,4", four).empty());
  CHECK_THAT(shaped("-1", "0,4", four), contains("a negative number in its shape"));
  CHECK_THAT(shaped("1.0", "0,4", four), contains("no whole one"));
  CHECK_THAT(shaped("1e0", "0,4", four), contains("no whole one"));
  CHECK_THAT(shaped("99999999999999999999", "0,4", four), contains("too large"));
  CHECK_THAT(shaped("9223372036854775808", "0,4", four), contains("larger than any file"));
  CHECK_THAT(shaped("9223372036854775807", "0,4", four), contains("larger than any file"));
  CHECK_THAT(shaped("4294967296,4294967296", "0,4", four), contains("larger than any file"));
  CHECK_THAT(shaped("4611686018427387905", "0,4", four), contains("larger than any file"));
  CHECK_THAT(shaped("4294967296,4294967296,0", "0,0", ""), contains("larger than any file"));
  CHECK_THAT(shaped("1,1,1,1,1,1,1,1,1", "0,4", four), contains("more than 8 axes"));
  CHECK_THAT(shaped("2", "0,4", four), contains("(2,) f32, which are 8 bytes, at the bytes 0 to 4") ||
                                           contains("(2) f32, which are 8 bytes, at the bytes 0 to 4"));
  CHECK_THAT(shaped("1", "4,0", four), contains("at the bytes 4 to 0"));
  CHECK_THAT(shaped("1", "0", four), contains("1 data_offsets in place of two"));
  CHECK_THAT(shaped("1", "0,2,4", four), contains("3 data_offsets in place of two"));
  CHECK_THAT(shaped("1", "-4,0", four), contains("a negative number in its data_offsets"));
  CHECK_THAT(shaped("1", "18446744073709551612,18446744073709551616", four), contains("too large"));
  CHECK_THAT(shaped("1", "18446744073709551611,18446744073709551615", four), contains("leaves a hole"));
}

TEST_CASE("holes, overlaps, and ends that are not the file's are refused") {
  auto two = [](const std::string& a, const std::string& b, std::size_t bytes) {
    return refusal(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[)" + a +
                       R"(]},"b":{"dtype":"U8","shape":[2],"data_offsets":[)" + b + "]}}",
                   std::string(bytes, '\1'));
  };
  CHECK(two("0,2", "2,4", 4).empty());
  CHECK(two("2,4", "0,2", 4).empty());
  CHECK_THAT(two("0,2", "3,5", 5), contains("tensor 'b' at byte 3, which leaves a hole behind"));
  CHECK_THAT(two("0,2", "1,3", 3), contains("tensor 'b' at byte 1, which overlaps"));
  CHECK_THAT(two("0,2", "0,2", 2), contains("overlaps"));
  CHECK_THAT(two("1,3", "3,5", 5), contains("leaves a hole"));
  CHECK_THAT(two("0,2", "2,4", 3), contains("3 bytes of elements where its header describes 4: it is cut off"));
  CHECK_THAT(two("0,2", "2,4", 5), contains("longer than it should be"));
}

TEST_CASE("what a refusal repeats of a file is short and printable") {
  std::string said = refusal("{\"" + std::string(50'000, 'x') + "\\u001b[2J\":1}", "");
  CHECK(said.size() < 500);
  CHECK_THAT(refusal("{\"\\u001b[2J\":1}", ""), contains("'\\u{1b}[2J'"));
}

TEST_CASE("what is no ordinary file is not read") {
  Folder folder;
  CHECK_THAT(error_of<io::FileError>([&] { io::load(folder.file("none")); }),
             contains("cannot open") && contains("No such file"));
  CHECK_THAT(error_of<io::FileError>([&] { io::load(folder.file("")); }), contains("no ordinary file"));
  CHECK_THAT(error_of<io::FileError>([&] { io::load("/dev/zero"); }), contains("no ordinary file"));
}

// A file is either refused, or unchanged when it is written and read again.
TEST_CASE("files that are cut off or changed at random are refused or read, and nothing else") {
  Folder folder;
  io::save(folder.file("whole"),
           {{"weight", reshape(to(arange(6), f32), {2, 3})},
            {"count", tensor<std::int64_t>({7})},
            {"flags", tensor<bool>({true, false, true})},
            {"half", ones({2, 1, 2}, {.dtype = bf16})}},
           {{"format", "pt"}});
  std::string whole = reel_test::bytes_of(folder.file("whole"));
  int read = 0, refused = 0;
  auto attempt = [&](const std::string& bytes) {
    put_bytes(folder.file("broken"), bytes);
    try {
      io::Contents contents = io::load(folder.file("broken"));
      io::save(folder.file("again"), contents.tensors, contents.metadata);
      REQUIRE(io::load(folder.file("again")).tensors.size() == contents.tensors.size());
      ++read;
    } catch (const io::FileError&) {
      ++refused;
    }
  };
  for (std::size_t length = 0; length < whole.size(); ++length) attempt(whole.substr(0, length));
  CHECK(read == 0);

  std::uint32_t seed = 20;
  std::cout << "mutations with seed " << seed << '\n';
  std::mt19937 random(seed);
  const std::string alphabet = "{}[]\",:0123456789-.eEFIUB_ \\nul\xff\xc3";
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = whole;
    for (std::uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      std::size_t place = random() % (random() % 2 ? bytes.size() : 180), length = 1 + random() % 4;
      switch (random() % 5) {
        case 0: bytes[place] = static_cast<char>(random()); break;
        case 1: bytes[place] = alphabet[random() % alphabet.size()]; break;
        case 2: bytes.erase(place, length); break;
        case 3: bytes.insert(place, bytes.substr(random() % bytes.size(), length)); break;
        default: bytes[place % 8] = static_cast<char>(random()); break;
      }
    }
    attempt(bytes);
  }
  std::cout << read << " read, " << refused << " refused\n";
  CHECK(refused > 2000);
  CHECK(read > 50);
}

TEST_CASE(
    "a file that becomes shorter after it was opened is refused where it is read, and as far as it goes it is read") {
  Folder folder;
  put_bytes(folder.file(), "0123456789");
  std::string path = folder.file();
  io::Reader reader("io::load", path, Location::here());
  std::filesystem::resize_file(path, 6);
  CHECK(reader.size() == 10);
  std::array<std::byte, 4> bytes{};
  reader.read(2, bytes);
  CHECK(std::memcmp(bytes.data(), "2345", 4) == 0);
  for (std::uint64_t from : {3, 6, 9}) {
    errno = EINTR;  // left by another call
    CHECK_THAT(error_of<io::FileError>([&] { reader.read(from, bytes); }),
               contains("io::load: '" + path + "' has become shorter while it was read") &&
                   contains("broken_files_test.cpp:"));
  }
}
