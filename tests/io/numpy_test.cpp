#include <iostream>
#include <random>

#include <fmt/format.h>
#include <reel/reel.h>

#include "catch.h"
#include "folder.h"
#include "golden_folder.h"

using namespace reel;
using namespace reel_test;

namespace {

const std::string magic = "\x93NUMPY";
const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";

std::string npy(const std::string& header, const std::string& elements, const std::string& version = "\1") {
  std::string bytes = magic + version + '\0';
  for (std::size_t i = 0; i < (version == "\1" ? 2 : 4); ++i) bytes += static_cast<char>(header.size() >> (8 * i));
  return bytes + header + elements;
}

// The error of reading a file of these bytes; empty if it can be read.
std::string refusal(const std::string& bytes) {
  Folder folder;
  put_bytes(folder.file("a.npy"), bytes);
  std::string said = error_of<io::FileError>([&] { io::load_npy(folder.file("a.npy")); });
  if (!said.empty()) {
    CHECK_THAT(said, contains("io::load_npy: '" + folder.file("a.npy") + "' ") && contains("numpy_test.cpp:"));
  }
  return said;
}

std::string python_refusal(const std::string& name) {
  return error_of<io::FileError>([&] { io::load_npy(by_python + name); });
}

void check_values(const Tensor& x, const Shape& shape) {
  CHECK(x.shape() == shape);
  CHECK(to(x, f64).to_vector<double>() == to(arange(x.numel()) * 3, f64).to_vector<double>());
}

void check_same(const Tensor& a, const Tensor& b) {
  REQUIRE(a.dtype() == b.dtype());
  REQUIRE(a.shape() == b.shape());
  CHECK(to(a, f64).to_vector<double>() == to(b, f64).to_vector<double>());
}

}  // namespace

TEST_CASE("arrays that NumPy has written are read, of every dtype, order and version") {
  for (auto [name, dtype] : {std::pair{"f2", f16}, std::pair{"f4", f32}, std::pair{"f8", f64}, std::pair{"i4", i32},
                             std::pair{"i8", i64}, std::pair{"u1", u8}, std::pair{"i1", i8}, std::pair{"i2", i16},
                             std::pair{"big_f4", f32}, std::pair{"big_i8", i64}}) {
    CAPTURE(name);
    Tensor x = io::load_npy(by_python + name + ".npy");
    CHECK(x.dtype() == dtype);
    check_values(x, {2, 3});
  }
  CHECK(io::load_npy(by_python + "b1.npy").to_vector<bool>() == std::vector<bool>{true, false, true});
  Tensor scalar = io::load_npy(by_python + "scalar.npy"), empty = io::load_npy(by_python + "empty.npy");
  CHECK(scalar.rank() == 0);
  CHECK(scalar.item() == 2.5);
  CHECK(empty.shape() == Shape{3, 0, 2});
  CHECK(empty.dtype() == i32);
  check_values(io::load_npy(by_python + "version_2.npy"), {6});
  check_values(io::load_npy(by_python + "version_3.npy"), {6});
  check_values(io::load_npy(by_python + "fortran.npy"), {2, 3, 4});
}

TEST_CASE("integers that reel lacks are converted where the caller allows it, else refused") {
  for (auto [name, dtype] : {std::pair{"u2", i32}, std::pair{"u4", i64}}) {
    CAPTURE(name);
    CHECK_THAT(python_refusal(name + std::string(".npy")), contains("which reel does not have: .widen = true"));
    Tensor x = io::load_npy(by_python + name + ".npy", {.widen = true});
    CHECK(x.dtype() == dtype);
    check_values(x, {2, 3});
  }
  Folder folder;
  auto widened = [&](const std::string& type, const std::string& elements) {
    put_bytes(folder.file(), npy("{'descr': '" + type + "', 'fortran_order': False, 'shape': (1,)}", elements));
    return to(io::load_npy(folder.file(), {.widen = true}), i64).to_vector<std::int64_t>()[0];
  };
  CHECK(widened(">u2", "\xff\xfe") == 65534);
  CHECK(widened("<u4", "\xff\xff\xff\xff") == 4294967295);
}

TEST_CASE("arrays that tensors cannot hold are refused by what they are") {
  CHECK_THAT(python_refusal("object.npy"), contains("'|O': Python objects, which would have to be unpickled"));
  CHECK_THAT(python_refusal("complex.npy"), contains("complex numbers"));
  CHECK_THAT(python_refusal("text.npy"), contains("'<U2': text"));
  CHECK_THAT(python_refusal("fields.npy"), contains("records of several fields"));
  CHECK_THAT(python_refusal("u8.npy"), contains("'<u8', which reel does not have: convert them in Python"));
}

TEST_CASE("tensors of every dtype come back from an npy file, views as they read") {
  Folder folder;
  Tensor values = reshape(tensor({0.0, 1.5, 3.0, 7.0, 2.0, 64.0}), {2, 3});
  for (DType dtype : {u8, f32, boolean, f64, i32, bf16, i64, f16, i8, i16})
    for (const Tensor& x : {to(values, dtype), Tensor(to(values, dtype)(0, slice(0, 3, 2))),
                            to(transpose(values), dtype), Tensor(to(values, dtype)(1, 1))}) {
      io::save_npy(folder.file("a.npy"), x);
      check_same(io::load_npy(folder.file("a.npy")), x);
    }
  io::save_npy(folder.file("a.npy"), transpose(values));
  check_same(io::load_npy(folder.file("a.npy")), transpose(values));
  CHECK(folder.names() == std::set<std::string>{"a.npy"});
  CHECK_THAT(error_of<Error>([&] { io::save_npy(folder.file(), Tensor()); }), contains("the tensor is undefined"));
}

TEST_CASE("an npy file has the bytes that NumPy writes") {
  Folder folder;
  for (auto [name, dtype] : {std::pair{"f2", f16}, std::pair{"f4", f32}, std::pair{"f8", f64}, std::pair{"i4", i32},
                             std::pair{"i8", i64}, std::pair{"u1", u8}, std::pair{"i1", i8}, std::pair{"i2", i16}}) {
    CAPTURE(name);
    io::save_npy(folder.file(), to(reshape(arange(6) * 3, {2, 3}), dtype));
    CHECK(bytes_of(folder.file()) == bytes_of(by_python + name + ".npy"));
  }
  io::save_npy(folder.file(), full({}, 2.5, {.dtype = f64}));
  CHECK(bytes_of(folder.file()) == bytes_of(by_python + "scalar.npy"));
  io::save_npy(folder.file(), zeros({3, 0, 2}, {.dtype = i32}));
  CHECK(bytes_of(folder.file()) == bytes_of(by_python + "empty.npy"));
  io::save_npy(folder.file(), ones({1, 2, 3, 4, 5, 6, 7, 1}, {.dtype = bf16}));
  CHECK(bytes_of(folder.file()).size() == 128 + 5040 * 2);
}

TEST_CASE("the header of an npy file is a dictionary of three entries in any order, and nothing else") {
  const std::string eight(8, '\1');
  CHECK(refusal(npy(good, eight)).empty());
  CHECK(refusal(npy("{\"shape\":(2L,),'fortran_order':True ,\n'descr':'f4'}", eight)).empty());
  CHECK(refusal(npy(good, eight, "\2")).empty());
  auto shaped = [&](const std::string& shape) {
    return refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}", eight));
  };
  CHECK(shaped("(1, 2)").empty());
  CHECK(shaped("(1, 2,)").empty());
  CHECK_THAT(shaped("(3,)"), contains("has 8 bytes of elements, but (3,) of f4 take 12: it is cut off"));
  CHECK_THAT(shaped("()"), contains("longer than it should be"));
  for (const char* shape :
       {"(2)", "(1 2)", "[2]", "2", "(-2,)", "(2,,)", "(,)", "(2.0,)", "(2,", "(0x2,)", "(2,) + (1,)"})
    CHECK_THAT(shaped(shape), contains("at byte"));
  CHECK_THAT(shaped("(1,1,1,1,1,1,1,1,1)"), contains("more than 8 axes"));
  CHECK_THAT(shaped("(9223372036854775808,)"), contains("larger than any file"));
  CHECK_THAT(shaped("(4294967296, 4294967296)"), contains("larger than any file"));
  CHECK_THAT(shaped("(4611686018427387904,)"), contains("larger than any file"));
  CHECK_THAT(shaped("(0, 4611686018427387904, 4)"), contains("larger than any file"));
  CHECK_THAT(refusal(npy("{}", eight)), contains("a header without descr"));
  CHECK_THAT(refusal(npy("{'descr': '<f4', 'fortran_order': False}", eight)), contains("a header without shape"));
  CHECK_THAT(refusal(npy("{'descr': '<f4', 'shape': (2,)}", eight)), contains("a header without fortran_order"));
  CHECK_THAT(refusal(npy("{'descr': '<f4', 'descr': '<f4'}", eight)),
             contains("'descr', which is unknown or there twice"));
  CHECK_THAT(refusal(npy("{'descr': '<f4', 'order': 'C'}", eight)), contains("'order', which is unknown"));
  CHECK_THAT(refusal(npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", eight)), contains("True or False"));
  CHECK_THAT(refusal(npy(good + "x", eight)), contains("without the end at byte"));
  CHECK_THAT(refusal(npy("__import__('os')", eight)), contains("is no dictionary of NumPy's"));
  CHECK_THAT(refusal(npy("{'descr': '<f\\x34'}", eight)), contains("the end of a string"));
  CHECK_THAT(refusal(npy("{'descr': ''}", eight)), contains("the type '', which reel does not have"));
}

TEST_CASE("an npy file that is cut off, too long or no such file is refused") {
  const std::string whole = npy(good, std::string(8, '\1'));
  for (std::size_t length = 0; length < whole.size(); ++length) CHECK_FALSE(refusal(whole.substr(0, length)).empty());
  CHECK_THAT(refusal(whole + "x"), contains("longer than it should be"));
  CHECK_THAT(refusal("not an array"), contains("does not begin as NumPy's files do"));
  CHECK_THAT(refusal(magic + "\4" + std::string(20, '\0')), contains("version 4.0"));
  CHECK_THAT(refusal(npy("", "", "\2").substr(0, 8) + "\xff\xff\xff\xff"),
             contains("4294967295 bytes, more than the 65536"));
  CHECK_THAT(error_of<io::FileError>([] { io::load_npy("/none/a.npy"); }), contains("cannot open '/none/a.npy'"));
}

TEST_CASE("an npy file that is cut off is refused by the part that it lacks") {
  constexpr std::size_t signature = 8;
  for (const char* version : {"\1", "\2"}) {
    const std::size_t counted = signature + (*version == 1 ? 2 : 4), headed = counted + good.size();
    const std::string whole = npy(good, std::string(8, '\1'), version);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      CAPTURE(length);
      std::string lacks = length < signature ? fmt::format("has {} bytes, fewer than any array", length)
                          : length < counted ? "is cut off within its header"
                          : length < headed  ? fmt::format("says that its header has {} bytes, but only {} follow",
                                                           good.size(), length - counted)
                                             : fmt::format("{} bytes", length - headed);
      CHECK_THAT(refusal(whole.substr(0, length)), contains(lacks));
    }
  }
}

TEST_CASE("archives of arrays that NumPy has written are read, stored and deflated") {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    CAPTURE(name);
    io::Contents contents = io::load_npz(by_python + name);
    REQUIRE(contents.tensors.size() == 3);
    check_values(contents.at("weight"), {2, 3});
    CHECK(contents.at("a/b.c").to_vector<std::int64_t>() == std::vector<std::int64_t>{7, 8});
    check_same(contents.at("zeros"), zeros({1000}));
  }
}

TEST_CASE("named tensors come back from an npz file, and equal ones give equal files") {
  Folder folder;
  Tensor x = reshape(to(arange(24), f32), {4, 6});
  std::vector<io::NamedTensor> saved{
      {"layers/0.weight", transpose(x)}, {"ü", full({}, 1.5)}, {"", zeros({0}, {.dtype = i64})}, {"half", to(x, bf16)}};
  for (bool compress : {false, true}) {
    io::save_npz(folder.file("a.npz"), saved, {.compress = compress});
    io::save_npz(folder.file("b.npz"), saved, {.compress = compress});
    CHECK(bytes_of(folder.file("a.npz")) == bytes_of(folder.file("b.npz")));
    io::Contents loaded = io::load_npz(folder.file("a.npz"));
    REQUIRE(loaded.tensors.size() == saved.size());
    for (std::size_t i = 0; i < saved.size(); ++i) {
      CHECK(loaded.tensors[i].name == saved[i].name);
      check_same(loaded.tensors[i].tensor, saved[i].tensor);
    }
  }
  io::save_npz(folder.file("a.npz"), std::vector<io::NamedTensor>{});
  CHECK(io::load_npz(folder.file("a.npz")).tensors.empty());
}

TEST_CASE("names that an npz file cannot have are refused") {
  Folder folder;
  auto said = [&](const std::vector<io::NamedTensor>& tensors) {
    return error_of<Error>([&] { io::save_npz(folder.file("a.npz"), tensors); });
  };
  CHECK_THAT(said({{"a", ones({})}, {"a", ones({})}}), contains("two tensors named 'a'"));
  CHECK_THAT(said({{"\xff", ones({})}}), contains("is not UTF-8"));
  CHECK_THAT(said({{std::string("a\0b", 3), ones({})}}), contains("has a NUL"));
  CHECK_THAT(said({{std::string(65532, 'a'), ones({})}}), contains("has 65532 bytes"));
  CHECK_THAT(said({{"a", Tensor()}}), contains("undefined"));
  CHECK(folder.names().empty());
}

TEST_CASE("compressed arrays beyond the limit are refused, and those within it read") {
  Folder folder;
  io::save_npz(folder.file("a.npz"), {{"a", zeros({100'000})}, {"b", zeros({100'000})}}, {.compress = true});
  CHECK(bytes_of(folder.file("a.npz")).size() < 2000);
  std::uint64_t both = 2 * (400'000 + 128);
  CHECK(io::load_npz(folder.file("a.npz"), {.most_decompressed_bytes = both}).tensors.size() == 2);
  CHECK_THAT(
      error_of<io::FileError>([&] { io::load_npz(folder.file("a.npz"), {.most_decompressed_bytes = both - 1}); }),
      contains("more than 800255 bytes of arrays") && contains(".most_decompressed_bytes"));
}

TEST_CASE("an archive with something other than arrays is refused") {
  Folder folder;
  std::string bytes = bytes_of(by_python + "stored.npz");
  for (std::size_t place; (place = bytes.find("zeros.npy")) != bytes.npos;) bytes.replace(place, 9, "zeros.txt");
  put_bytes(folder.file("a.npz"), bytes);
  CHECK_THAT(error_of<io::FileError>([&] { io::load_npz(folder.file("a.npz")); }),
             contains("a member 'zeros.txt', which is no array"));
}

TEST_CASE("npz files that are cut off or changed at random are refused or read, and nothing else") {
  Folder folder;
  std::uint32_t seed = 31;
  std::cout << "mutations with seed " << seed << '\n';
  std::mt19937 random(seed);
  int read = 0, refused = 0;
  auto attempt = [&](const std::string& bytes) {
    put_bytes(folder.file("b.npz"), bytes);
    try {
      io::load_npz(folder.file("b.npz"), {.most_decompressed_bytes = 1 << 16});
      ++read;
    } catch (const io::FileError&) {
      ++refused;
    }
  };
  for (bool compress : {false, true}) {
    io::save_npz(folder.file("a.npz"), {{"a", arange(4)}, {"b", ones({2, 3})}}, {.compress = compress});
    std::string whole = bytes_of(folder.file("a.npz"));
    for (std::size_t length = 0; length < whole.size(); ++length) attempt(whole.substr(0, length));
    for (int round = 0; round < 1500; ++round) {
      std::string bytes = whole;
      for (std::uint32_t changes = 1 + random() % 3; changes > 0; --changes)
        bytes[random() % bytes.size()] = static_cast<char>(random());
      attempt(bytes);
    }
  }
  std::cout << read << " read, " << refused << " refused\n";
  CHECK(refused > 2000);
  CHECK(read > 20);
}
