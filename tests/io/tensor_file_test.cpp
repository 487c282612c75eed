#include <filesystem>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <reel/reel.h>

#include "catch.h"
#include "folder.h"

using namespace reel;
using namespace reel_test;

namespace {

using Floats = std::vector<float>;

Tensor numbers(int count) { return to(arange(count), f32); }

// Two files and an index of them.
class Sharded {
 public:
  Sharded() {
    io::save(folder.file("one.safetensors"), {{"a", numbers(3)}, {"hidden", numbers(1)}},
             {{"format", "pt"}, {"part", "1"}});
    std::filesystem::create_directory(folder.file("sub"));
    io::save(folder.file("sub/two.safetensors"), {{"b", numbers(4)}, {"0", numbers(2)}}, {{"part", "2"}});
  }
  std::string index(const std::string& map, const std::string& more = R"("metadata":{"total_size":[1,{"x":null}]},)") {
    std::string path = folder.file("model.safetensors.index.json");
    put_bytes(path, "{" + more + "\"weight_map\":" + map + "}\n");
    return path;
  }
  std::string good_index() {
    return index(R"({"a":"one.safetensors","b":"sub/two.safetensors","0":"sub/two.safetensors"})");
  }
  Folder folder;
};

// The error of opening an index, which that of loading it must equal but for the name of the function.
std::string index_error(const std::string& path) {
  std::string opening = error_of<io::FileError>([&] { io::open(path); });
  std::string loading = error_of<io::FileError>([&] { io::load(path); });
  CHECK(opening.substr(0, opening.rfind(';')).substr(8) == loading.substr(0, loading.rfind(';')).substr(8));
  return opening;
}

}  // namespace

TEST_CASE("an open file gives its names, shapes and metadata, and each tensor as load does") {
  Folder folder;
  std::vector<io::NamedTensor> saved;
  for (DType dtype : {u8, f32, boolean, f64, i32, bf16, i64, f16, i8, i16})
    saved.push_back({name_of(dtype), to(reshape(numbers(6), {2, 3}), dtype)});
  saved.push_back({"empty", zeros({3, 0})});
  saved.push_back({"scalar", full({}, 2.5f)});
  io::save(folder.file(), saved, {{"k", "v"}});
  io::TensorFile file = io::open(folder.file());
  CHECK(file.metadata() == io::Metadata{{"k", "v"}});
  REQUIRE(file.names().size() == saved.size());
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const std::string& name = saved[i].name;
    CHECK(file.names()[i] == name);
    CHECK(file.contains(name));
    CHECK(file.shape(name) == saved[i].tensor.shape());
    CHECK(file.dtype(name) == saved[i].tensor.dtype());
    Tensor x = file[name];
    CHECK(x.dtype() == saved[i].tensor.dtype());
    CHECK(x.shape() == saved[i].tensor.shape());
    CHECK(to(x, f64).to_vector<double>() == to(saved[i].tensor, f64).to_vector<double>());
    CHECK(file[name].is(x));
  }
  CHECK_FALSE(file.contains("none"));
  io::Contents contents = file.contents();
  CHECK(contents.metadata == file.metadata());
  CHECK(contents.at("f32").is(file["f32"]));
}

TEST_CASE("tensors of an open file are over its pages, and copied only where they are not aligned") {
  Folder folder;
  std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string aligned = header + std::string((8 - header.size() % 8) % 8, ' '), one("\0\0\x80\x3f", 4);
  put_bytes(folder.file(), safetensors(aligned, one));
  auto address_in_page = [](const Tensor& x) { return reinterpret_cast<std::uintptr_t>(x.data<float>()) % 4096; };
  Tensor mapped = io::open(folder.file())["a"];
  CHECK(address_in_page(mapped) == 8 + aligned.size());
  CHECK(mapped.item() == 1);
  put_bytes(folder.file("odd"), safetensors(aligned + " ", one));
  Tensor copied = io::open(folder.file("odd"))["a"];
  CHECK(copied.item() == 1);
  CHECK(reinterpret_cast<std::uintptr_t>(copied.data<float>()) % 4 == 0);
}

TEST_CASE("tensors outlive the open file and the replacement of the file on the disk") {
  Folder folder;
  io::save(folder.file(), {{"a", numbers(3)}});
  std::optional<io::TensorFile> file = io::open(folder.file());
  io::TensorFile copy = *file;
  Tensor a = (*file)["a"], view = a(slice(1, 3));
  file.reset();
  io::save(folder.file(), {{"a", zeros({3})}});
  CHECK(copy["a"].is(a));
  a = Tensor();
  CHECK(view.to_vector<float>() == Floats{1, 2});
  std::filesystem::remove(folder.file());
  CHECK(copy["a"].to_vector<float>() == Floats{0, 1, 2});
}

TEST_CASE("writing to a tensor of an open file changes the tensor and not the file") {
  Folder folder;
  io::save(folder.file(), {{"a", numbers(3)}});
  io::TensorFile file = io::open(folder.file());
  std::string before = bytes_of(folder.file());
  Tensor a = file["a"];
  add_(a, 1);
  CHECK(a.to_vector<float>() == Floats{1, 2, 3});
  CHECK(file["a"].to_vector<float>() == Floats{1, 2, 3});
  CHECK(bytes_of(folder.file()) == before);
  CHECK(io::open(folder.file())["a"].to_vector<float>() == Floats{0, 1, 2});
}

TEST_CASE("gradients flow through tensors of an open file") {
  Folder folder;
  io::save(folder.file(), {{"w", numbers(3)}});
  Tensor w = io::open(folder.file())["w"].requires_grad();
  Tape tape;
  tape.backward(sum(w * w));
  CHECK(w.grad().to_vector<float>() == Floats{0, 2, 4});
}

TEST_CASE("bools of other values are 1 in tensors of an open file") {
  Folder folder;
  put_bytes(folder.file(),
            safetensors(R"({"a":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})", std::string("\0\2\1", 3)));
  Tensor a = io::open(folder.file())["a"];
  CHECK(to(a, i32).to_vector<int>() == std::vector<int>{0, 1, 1});
}

TEST_CASE("several threads may ask an open file for tensors") {
  Folder folder;
  std::vector<io::NamedTensor> saved;
  for (int i = 0; i < 50; ++i) saved.push_back({std::to_string(i), full({4}, static_cast<float>(i))});
  io::save(folder.file(), saved);
  io::TensorFile file = io::open(folder.file());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i)
        if (sum(file[std::to_string(i)]).item() != 4.0 * i) ++wrong;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("names that a file lacks are refused with the caller's line") {
  Folder folder;
  io::save(folder.file(), {{"a", numbers(3)}});
  io::TensorFile file = io::open(folder.file());
  for (const std::string& said : {error_of<Error>([&] { file["b"]; }), error_of<Error>([&] { file.shape("b"); }),
                                  error_of<Error>([&] { file.dtype("b"); })})
    CHECK_THAT(said, contains("there is no tensor named 'b' among 1 in '" + folder.file()) &&
                         contains("tensor_file_test.cpp:"));
}

TEST_CASE("broken files are refused by open as by load") {
  Folder folder;
  for (const std::string& bytes : {std::string(), std::string("1234567"), safetensors("[]", ""),
                                   safetensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "123")}) {
    put_bytes(folder.file(), bytes);
    std::string opening = error_of<io::FileError>([&] { io::open(folder.file()); });
    CHECK_THAT(opening, contains("io::open: '" + folder.file() + "' ") && contains("tensor_file_test.cpp:"));
    CHECK_FALSE(error_of<io::FileError>([&] { io::load(folder.file()); }).empty());
  }
  CHECK_THAT(error_of<io::FileError>([&] { io::open(folder.file("none")); }), contains("No such file"));
  CHECK_THAT(error_of<io::FileError>([&] { io::open("/dev/zero"); }), contains("no ordinary file"));
}

TEST_CASE("an index gives the tensors of all its files, opened or loaded") {
  Sharded sharded;
  std::string path = sharded.good_index();
  io::TensorFile file = io::open(path);
  CHECK(file.names() == std::vector<std::string>{"0", "a", "b"});
  CHECK_FALSE(file.contains("hidden"));
  CHECK(file["b"].to_vector<float>() == Floats{0, 1, 2, 3});
  CHECK(file.metadata() == io::Metadata{{"format", "pt"}, {"part", "1"}});
  io::Contents contents = io::load(path);
  REQUIRE(contents.tensors.size() == 3);
  CHECK(contents.tensors[0].name == "0");
  CHECK(contents.at("a").to_vector<float>() == Floats{0, 1, 2});
  CHECK(contents.metadata == file.metadata());
  // Names elsewhere in the file are none of the map's.
  CHECK(io::load(sharded.index(R"({"a":"one.safetensors"}, "a":{"a":1})")).tensors.size() == 1);
}

TEST_CASE("an index that is faulty or leads elsewhere is refused") {
  Sharded sharded;
  auto said = [&](const std::string& map) { return index_error(sharded.index(map)); };
  CHECK_THAT(said(R"({"a":"none.safetensors"})"), contains("none.safetensors': No such file"));
  CHECK_THAT(said(R"({"c":"one.safetensors"})"), contains("'one.safetensors' has the tensor 'c', which it lacks"));
  for (const char* outside : {"../one.safetensors", "/etc/passwd", "sub/../../x", "", "a\\u0000b"})
    CHECK_THAT(said(fmt::format("{{\"a\":\"{}\"}}", outside)), contains("which is not in its folder"));
  CHECK_THAT(said(R"({"a":"model.safetensors.index.json"})"), contains("it is no safetensors file"));
  CHECK_THAT(said(R"({"a":1})"), contains("a number in place of the file of the tensor 'a'"));
  CHECK_THAT(said(R"({"a":["one.safetensors"]})"), contains("an array in place of the file"));
  CHECK_THAT(said(R"({"a":"one.safetensors","a":"one.safetensors"})"), contains("names the tensor 'a' twice"));
  CHECK_THAT(said("[]"), contains("an array as its weight_map"));
  CHECK_THAT(said("{}, \"weight_map\":{}"), contains("two entries named weight_map"));
  CHECK_THAT(said("{"), contains("no valid JSON in UTF-8 at byte"));
  CHECK_THAT(said("{\"a\":\"one.safetensors\"}} x"), contains("no valid JSON"));
  put_bytes(sharded.folder.file("i.json"), R"({"metadata":{"weight_map":{"a":"b"}}})");
  CHECK_THAT(index_error(sharded.folder.file("i.json")), contains("has no weight_map"));
  put_bytes(sharded.folder.file("i.json"), "{\"weight_map\":" + std::string(100'000, '['));
  CHECK_FALSE(index_error(sharded.folder.file("i.json")).empty());
  std::string whole = bytes_of(sharded.good_index());
  for (std::size_t length = 8; length + 1 < whole.size(); ++length) {
    put_bytes(sharded.folder.file("i.json"), whole.substr(0, length));
    CHECK_FALSE(index_error(sharded.folder.file("i.json")).empty());
  }
}

TEST_CASE("a file that an index names by several names is refused, whatever the names") {
  Sharded sharded;
  std::filesystem::create_symlink("one.safetensors", sharded.folder.file("link.safetensors"));
  std::filesystem::create_hard_link(sharded.folder.file("one.safetensors"), sharded.folder.file("same.safetensors"));
  for (const char* other : {"link.safetensors", "same.safetensors", "./one.safetensors", "sub//..//one.safetensors"}) {
    std::string said = index_error(
        sharded.index(fmt::format(R"({{"a":"one.safetensors","hidden":"{}","b":"sub/two.safetensors"}})", other)));
    CHECK_THAT(said, contains("names one file both '") || contains("which is not in its folder"));
  }
  std::filesystem::rename(sharded.folder.file("one.safetensors"), sharded.folder.file("blob"));
  std::filesystem::create_symlink("blob", sharded.folder.file("one.safetensors"));
  CHECK(io::load(sharded.good_index()).tensors.size() == 3);
}

TEST_CASE("a module is loaded from an open file and from an index") {
  Folder folder;
  struct Model : nn::Module {
    nn::Linear output{*this, "output", 2, 3};
  } model, other;
  io::save(folder.file(), model);
  io::load_into(other, io::open(folder.file()).contents());
  CHECK(other.output.weight.to_vector<float>() == model.output.weight.to_vector<float>());
  put_bytes(folder.file("i.json"),
            R"({"weight_map":{"output.weight":"weights.safetensors","output.bias":"weights.safetensors"}})");
  fill_(other.output.weight, 0);
  io::load_into(other, folder.file("i.json"));
  CHECK(other.output.weight.to_vector<float>() == model.output.weight.to_vector<float>());
}
