#include <cstring>

#include <reel/reel.h>

#include "catch.h"
#include "folder.h"

using namespace reel;
using namespace reel_test;

namespace {

void check_same(const Tensor& a, const Tensor& b) {
  REQUIRE(a.dtype() == b.dtype());
  REQUIRE(a.shape() == b.shape());
  Tensor x = contiguous(a), y = contiguous(b);
  CHECK(std::memcmp(x.body().data, y.body().data, static_cast<std::size_t>(x.numel()) * size_of(x.dtype())) == 0);
}

}  // namespace

TEST_CASE("tensors of every dtype come back from a file with their names, shapes and bits") {
  Folder folder;
  Tensor values = reshape(tensor({0.0, -1.5, 1e-3, 700.0, 2.0, -0.0}), {2, 3});
  std::vector<io::NamedTensor> saved;
  for (DType dtype : {u8, f32, boolean, f64, i32, bf16, i64, f16, i8, i16})
    saved.push_back({std::string("of ") + name_of(dtype), to(dtype == u8 ? abs(values) / 10 : values, dtype)});
  saved.push_back({"", tensor({1.0})});
  saved.push_back({"a \"quoted\" name \\ of ünïcode \n", zeros({})});
  saved.push_back({"empty", zeros({3, 0, 2}, {.dtype = i64})});
  saved.push_back({"deep", ones({1, 2, 1, 1, 2, 1, 1, 1})});
  io::save(folder.file(), saved, {{"format", "pt"}, {"with", "\"words\""}});
  io::Contents loaded = io::load(folder.file());
  REQUIRE(loaded.tensors.size() == saved.size());
  for (std::size_t i = 0; i < saved.size(); ++i) {
    CHECK(loaded.tensors[i].name == saved[i].name);
    check_same(loaded.tensors[i].tensor, saved[i].tensor);
  }
  CHECK(loaded.metadata == io::Metadata{{"format", "pt"}, {"with", "\"words\""}});
  CHECK(folder.names() == std::set<std::string>{"weights.safetensors"});
}

TEST_CASE("a file's bytes are those that the format prescribes") {
  Folder folder;
  io::save(folder.file(), {{"a", tensor<std::int32_t>({1, 258})}}, {{"k", "v"}});
  std::string header = R"({"__metadata__":{"k":"v"},"a":{"dtype":"I32","shape":[2],"data_offsets":[0,8]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  CHECK(bytes_of(folder.file()) == reel_test::safetensors(header, std::string("\1\0\0\0\2\1\0\0", 8)));
}

TEST_CASE("each tensor in a file is aligned to its elements") {
  Folder folder;
  io::save(folder.file(),
           {{"a", zeros({3}, {.dtype = u8})}, {"b", ones({1}, {.dtype = f64})}, {"c", ones({3}, {.dtype = f16})}});
  std::string bytes = bytes_of(folder.file());
  CHECK_THAT(bytes, contains(R"("b":{"dtype":"F64","shape":[1],"data_offsets":[0,8]})"));
  CHECK_THAT(bytes, contains(R"("c":{"dtype":"F16","shape":[3],"data_offsets":[8,14]})"));
  CHECK_THAT(bytes, contains(R"("a":{"dtype":"U8","shape":[3],"data_offsets":[14,17]})"));
  CHECK(io::load(folder.file()).tensors[0].name == "a");
}

TEST_CASE("a file without tensors or metadata is a file") {
  Folder folder;
  io::save(folder.file(), std::vector<io::NamedTensor>{});
  io::Contents loaded = io::load(folder.file());
  CHECK(loaded.tensors.empty());
  CHECK(loaded.metadata.empty());
}

TEST_CASE("views are saved as they read, and tensors that share elements once for each name") {
  Folder folder;
  Tensor whole = reshape(to(arange(24), f32), {4, 6});
  Tensor transposed = transpose(whole), part = whole(slice(1, 3), slice(0, 6, 2)), repeated = expand(whole(0), {3, 6});
  io::save(folder.file(),
           {{"transposed", transposed}, {"part", part}, {"repeated", repeated}, {"whole", whole}, {"again", whole}});
  io::Contents loaded = io::load(folder.file());
  check_same(loaded.at("transposed"), transposed);
  check_same(loaded.at("part"), part);
  check_same(loaded.at("repeated"), repeated);
  check_same(loaded.at("whole"), whole);
  check_same(loaded.at("again"), whole);
  CHECK(loaded.at("again").is_contiguous());
}

TEST_CASE("saving leaves nothing on an open tape") {
  Folder folder;
  Tensor w = ones({2, 3}).requires_grad();
  Tape tape;
  Tensor y = transpose(w) * 2, view = transpose(y);
  std::size_t before = tape.size();
  io::save(folder.file(), {{"w", w}, {"y", view}});
  CHECK(tape.size() == before);
  CHECK(io::load(folder.file()).at("y").to_vector<float>() == std::vector<float>(6, 2));
}

TEST_CASE("what is no file of tensors is not saved, and named with the caller's line") {
  Folder folder;
  auto refused = [&](const std::vector<io::NamedTensor>& tensors, const io::Metadata& metadata = {}) {
    return error_of<Error>([&] { io::save(folder.file(), tensors, metadata); });
  };
  CHECK_THAT(refused({{"a", Tensor()}}),
             contains("io::save: 'a' is an undefined tensor; at ") && contains("safetensors_test.cpp:"));
  CHECK_THAT(refused({{"a", ones({1})}, {"a", ones({2})}}), contains("two tensors named 'a'"));
  CHECK_THAT(refused({{"__metadata__", ones({1})}}), contains("no tensor can have the name __metadata__"));
  CHECK_THAT(refused({{"\xff", ones({1})}}), contains("not UTF-8"));
  CHECK_THAT(refused({}, {{"a", "\xc3"}}), contains("not UTF-8"));
  CHECK(folder.names().empty());
}

TEST_CASE("a tensor is found by its name") {
  Folder folder;
  io::save(folder.file(), {{"a", ones({2})}});
  io::Contents loaded = io::load(folder.file());
  CHECK(loaded.find("a") == &loaded.tensors[0].tensor);
  CHECK(loaded.find("b") == nullptr);
  CHECK_THAT(error_of<Error>([&] { loaded.at("b"); }), contains("no tensor named 'b'"));
}

TEST_CASE("bools of other bytes than 0 and 1 are true") {
  Folder folder;
  put_bytes(folder.file(), reel_test::safetensors(R"({"a":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})",
                                                  std::string("\0\1\200", 3)));
  CHECK(to(io::load(folder.file()).at("a"), i64).to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1, 1});
}
