#include <fcntl.h>
#include <sys/file.h>

#include <bit>
#include <filesystem>
#include <iostream>

#include <reel/reel.h>

#include <io/file.h>
#include <io/keras_layout.h>

#include "catch.h"
#include "folder.h"
#include "golden_folder.h"

using namespace reel;
using namespace reel_test;

namespace {

// Files in the layouts of Keras, and what its layers make of inputs: see tests/io/by_python/keras/write_files.py.
std::string file_of_keras(const std::string& name) { return reel_test::by_python + "keras/" + name; }

// True, after a line that says so, in a build without the HDF5 library.
bool lacks_hdf5() {
  std::string said = error_of<io::FileError>([&] { io::load_hdf5(file_of_keras("types.h5")); });
  if (said.find("libreel_hdf5.so") == said.npos) return false;
  std::cout << "REEL-SKIP: this build has no HDF5\n";
  return true;
}

// Source: Bob Jenkins, lookup3.c, `hashlittle`.
std::uint32_t lookup3(const std::string& bytes) {
  auto size = static_cast<std::uint32_t>(bytes.size());
  std::uint32_t a = 0xdeadbeef + size, b = a, c = a;
  std::string padded = bytes + std::string(12, '\0');
  auto word = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(padded[at + i]);
    return value;
  };
  auto mix = [](std::uint32_t& x, std::uint32_t& y, std::uint32_t& z, int by) {
    x = (x - z) ^ std::rotl(z, by);
    z += y;
  };
  auto close = [](std::uint32_t& x, std::uint32_t y, int by) { x = (x ^ y) - std::rotl(y, by); };
  std::size_t at = 0;
  for (; size - at > 12; at += 12) {
    a += word(at), b += word(at + 4), c += word(at + 8);
    mix(a, b, c, 4), mix(b, c, a, 6), mix(c, a, b, 8), mix(a, b, c, 16), mix(b, c, a, 19), mix(c, a, b, 4);
  }
  a += word(at), b += word(at + 4), c += word(at + 8);
  close(c, b, 14), close(a, c, 11), close(b, a, 25), close(c, b, 16), close(a, c, 4), close(b, a, 14), close(c, b, 24);
  return c;
}

std::string number(std::uint64_t value, std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(value >> 8 * i));
  return bytes;
}

std::string with_checksum(const std::string& bytes) { return bytes + number(lookup3(bytes), 4); }

constexpr std::uint64_t no_address = ~std::uint64_t{0};

std::string message(int type, const std::string& data) {
  return number(type, 1) + number(data.size(), 2) + number(0, 1) + data;
}

std::string object(const std::string& messages) {
  return with_checksum("OHDR" + number(2, 1) + number(0, 1) + number(messages.size(), 1) + messages);
}

std::string group_of(const std::string& links) {
  return object(message(2, number(0, 2) + number(no_address, 8) + number(no_address, 8)) + links);
}

std::string link_to(char name, std::uint64_t address) {
  return message(6, number(1, 1) + number(0, 1) + number(1, 1) + name + number(address, 8));
}

constexpr std::size_t first_object = 48;

std::string hdf5_of(const std::string& objects) {
  return with_checksum("\x89HDF\r\n\x1a\n" + number(2, 1) + number(8, 1) + number(8, 1) + number(0, 1) + number(0, 8) +
                       number(no_address, 8) + number(first_object + objects.size(), 8) + number(first_object, 8)) +
         objects;
}

// A file with a dataset (0) of f32, in chunks that these filters have passed.
std::string filtered(const std::vector<int>& filters) {
  std::string space = number(2, 1) + number(1, 1) + number(0, 1) + number(1, 1) + number(0, 8);
  std::string type = number(0x001f2011, 4) + number(4, 4) + number(0, 2) + number(32, 2) + number(23, 1) +
                     number(8, 1) + number(0, 1) + number(23, 1) + number(127, 4);
  std::string chunks =
      number(3, 1) + number(2, 1) + number(2, 1) + number(no_address, 8) + number(10, 4) + number(4, 4);
  std::string pipeline = number(2, 1) + number(filters.size(), 1);
  for (int filter : filters)
    pipeline += number(static_cast<std::uint64_t>(filter), 2) + (filter < 256 ? "" : number(0, 2)) + number(0, 2) +
                number(1, 2) + number(6, 4);
  std::size_t group_bytes = group_of(link_to('a', 0)).size();
  return hdf5_of(group_of(link_to('a', first_object + group_bytes)) +
                 object(message(1, space) + message(3, type) + message(5, number(0x0b03, 2)) + message(8, chunks) +
                        message(11, pipeline)));
}

// A file of groups, each of which has `links` links to the next one; `to_itself`: or to the first one, in place of the
// last. Source: The HDF Group, "HDF5 File Format Specification" 3.0, II.A, IV.A.1.b, IV.A.2.
std::string nested_groups(std::size_t depth, std::size_t links, bool to_itself = false) {
  auto group = [&](std::uint64_t next) {
    std::string all;
    for (std::size_t i = 0; i < links; ++i) all += link_to(static_cast<char>('a' + i), next);
    return group_of(all);
  };
  std::string groups;
  std::size_t each = group(0).size();
  for (std::size_t level = 1; level <= depth; ++level)
    groups += group(first_object + (level == depth && to_itself ? 0 : level * each));
  return hdf5_of(groups + group_of(""));
}

struct Layers : nn::Module {
  nn::Linear dense;
  nn::Embedding embedding{*this, "embedding", 5, 3};
  nn::Conv2d conv2d{*this, "conv2d", 2, 4, {2, 3}};
  nn::LSTM lstm{*this, "lstm", 3, 2};
  nn::GRU gru{*this, "gru", 3, 2};
  nn::RNN simple_rnn{*this, "simple_rnn", 3, 2};
  nn::LSTM bidirectional{*this, "bidirectional", 3, 2, {.bidirectional = true}};
  nn::BatchNorm1d batch_normalization{*this, "batch_normalization", 3, {.epsilon = 1e-3}};
  nn::LayerNorm layer_normalization{*this, "layer_normalization", {4}, {.epsilon = 1e-3}};
  nn::MultiHeadAttention multi_head_attention{*this, "multi_head_attention", 6, 2};

  explicit Layers(std::string_view name = "dense") : dense(*this, name, 4, 2) { eval(); }

  std::vector<io::NamedTensor> outputs(const io::Contents& inputs) const {
    const Tensor &x = inputs.at("x"), &steps = inputs.at("steps");
    Tensor pictures = permute(inputs.at("pictures"), {0, 3, 1, 2});
    const Tensor& tokens = inputs.at("tokens");
    return {{"dense", dense(x)},
            {"embedding", embedding(tensor<std::int64_t>({4, 0}))},
            {"conv2d", permute(conv2d(pictures), {0, 2, 3, 1})},
            {"lstm", lstm(steps).output},
            {"gru", gru(steps).output},
            {"simple_rnn", simple_rnn(steps).output},
            {"bidirectional", bidirectional(steps).output},
            {"batch_normalization", batch_normalization(inputs.at("rows"))},
            {"layer_normalization", layer_normalization(x)},
            {"multi_head_attention", multi_head_attention(tokens, tokens, tokens)}};
  }
};

}  // namespace

TEST_CASE("layers that load a file of Keras compute what Keras's layers do") {
  if (lacks_hdf5()) return;
  io::Contents expected = io::load_hdf5(file_of_keras("expected.h5"));
  for (const char* name : {"keras2.model.h5", "keras3.legacy.h5", "keras3.weights.h5"}) {
    INFO(name);
    Layers layers;
    io::PassedOver passed_over = io::load_into(layers, file_of_keras(name), {.from_keras = true});
    CHECK(passed_over.unexpected.empty());
    for (const io::NamedTensor& output : layers.outputs(expected)) {
      INFO(output.name);
      CHECK(output.tensor.shape() == expected.at(output.name).shape());
      CHECK(max(abs(output.tensor - expected.at(output.name))).item() < 1e-5);
    }
  }
}

TEST_CASE("weights of Keras are named by layer, whichever version has saved them") {
  auto name = [](const char* path) {
    auto found = io::named_as_layers(std::vector<NamedTensor>{{path, zeros({1})}});
    return found.empty() ? "" : found[0].name;
  };
  CHECK(name("dense/dense/kernel:0") == "dense.kernel");
  CHECK(name("model_weights/dense_1/dense_1/bias:0") == "dense_1.bias");
  CHECK(name("dense/sequential/dense/kernel") == "dense.kernel");
  CHECK(name("lstm/lstm/lstm_cell_3/recurrent_kernel:0") == "lstm.recurrent_kernel");
  CHECK(name("encoder/dense/kernel:0") == "encoder.dense.kernel");
  CHECK(name("layers/dense/vars/0") == "dense.0");
  CHECK(name("layers/gru/cell/vars/2") == "gru.2");
  CHECK(name("layers/functional/layers/dense/vars/1") == "functional.dense.1");
  CHECK(name("head/vars/0") == "head.0");
  CHECK(name("optimizer/vars/3") == "");
  CHECK(name("optimizer_weights/Adam/m/dense/kernel:0") == "");
  CHECK(name("layers/dropout/seed_generator/vars/0") == "");
  CHECK(name("kernel") == "kernel");
  CHECK(name("model_weights") == "model_weights");
  CHECK(name("") == "");
}

TEST_CASE("a GRU of Keras without reset_after does not fit, nor do weights of two libraries") {
  nn::GRU gru(3, 2);
  std::vector<NamedTensor> given{
      {"gru/kernel", ones({3, 6})}, {"gru/recurrent_kernel", ones({2, 6})}, {"gru/bias", ones({6})}};
  io::LoadOptions options{.from_keras = true, .rename = [](const std::string& name) { return name.substr(4); }};
  CHECK_THAT(error_of<io::MisfitError>([&] { io::load_into(gru, given, options); }),
             contains("differs     nets.0.bias"));
  options.from_pytorch = true;
  CHECK_THAT(error_of<Error>([&] { io::load_into(gru, given, options); }),
             contains("of Keras or of PyTorch, not of both"));
}

TEST_CASE("a layer of Keras that lacks a weight, or has one of another rank, does not fit") {
  nn::Conv1d convolution(2, 3, 1);
  nn::Linear linear(2, 3);
  nn::GRU gru(2, 3);
  nn::LSTM lstm(2, 3);
  using Weights = std::vector<NamedTensor>;
  struct Case {
    int line;
    nn::Module& module;
    Weights given;
    const char* said;
  };
  // clang-format off
  const Case cases[] = {
      {__LINE__, convolution, {{"bias", ones({3})}}, "missing     weight"},
      {__LINE__, convolution, {{"kernel", ones({2, 3})}, {"bias", ones({3})}}, "differs     weight"},
      {__LINE__, convolution, {{"kernel", ones({})}, {"bias", ones({3})}}, "differs     weight"},
      {__LINE__, linear, {{"bias", ones({3})}}, "missing     weight"},
      {__LINE__, linear, {{"kernel", ones({2, 3})}}, "missing     bias"},
      {__LINE__, linear, {{"kernel", ones({2, 1, 2})}, {"bias", ones({3})}}, "differs     weight"},
      {__LINE__, linear, {{"kernel", ones({2, 1, 3})}, {"bias", ones({1, 2})}}, "differs     bias"},
      {__LINE__, lstm, {{"recurrent_kernel", ones({3, 12})}, {"bias", ones({12})}}, "missing     nets.0.W_x"},
      {__LINE__, gru, {{"recurrent_kernel", ones({3, 9})}, {"bias", ones({2, 9})}}, "missing     nets.0.W_x"},
      {__LINE__, gru, {{"kernel", ones({2, 9})}, {"recurrent_kernel", ones({3, 9})}}, "missing     nets.0.bias"},
      {__LINE__, gru, {{"kernel", ones({9})}, {"recurrent_kernel", ones({3, 9})}, {"bias", ones({2, 9})}}, "differs     nets.0.W_x"},
      {__LINE__, gru, {{"kernel", ones({2, 8})}, {"recurrent_kernel", ones({3, 9})}, {"bias", ones({2, 9})}}, "differs     nets.0.W_x"},
      {__LINE__, gru, {{"kernel", ones({2, 9})}, {"recurrent_kernel", ones({3, 9})}, {"bias", ones({3, 9})}}, "differs     nets.0.bias"},
      {__LINE__, gru, {{"kernel", ones({2, 9})}, {"recurrent_kernel", ones({3, 9})}, {"bias", ones({2, 8})}}, "differs     nets.0.bias"},
  };
  // clang-format on
  for (const auto& [line, module, given, said] : cases) {
    CAPTURE(line);
    CHECK_THAT(error_of<io::MisfitError>(
                   [&, &module = module, &given = given] { io::load_into(module, given, {.from_keras = true}); }),
               contains("in 1 place,") && contains(said));
  }
}

TEST_CASE("datasets of every type of numbers are read, and others passed over") {
  if (lacks_hdf5()) return;
  io::Contents contents = io::load_hdf5(file_of_keras("types.h5"));
  auto check = [&](const std::string& name, DType dtype) {
    INFO(name);
    Tensor x = contents.at("numbers/" + name);
    CHECK(x.dtype() == dtype);
    CHECK(to(x, f64).to_vector<double>() == std::vector<double>{1, 0, 1});
    CHECK(x.shape() == Shape{1, 3});
  };
  check("float16", f16);
  check("float32", f32);
  check("float64", f64);
  check("bool", boolean);
  check("uint8", u8);
  check("int8", i8);
  for (const char* name : {"uint16", "int32"}) check(name, i32);
  for (const char* name : {"uint32", "int64"}) check(name, i64);
  CHECK(contents.at("big").to_vector<float>() == std::vector<float>{1, 2, 3});
  CHECK(contents.at("compressed").numel() == 1000);
  CHECK(contents.at("scalar").item() == 2.5);
  CHECK(contents.at("empty").shape() == Shape{0, 3});
  CHECK(contents.find("words") == nullptr);
}

TEST_CASE("an HDF5 file that another program has locked is read") {
  if (lacks_hdf5()) return;
  std::string path = file_of_keras("types.h5");
  io::Descriptor locked(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(locked.is_open());
  REQUIRE(flock(locked.get(), LOCK_EX | LOCK_NB) == 0);
  CHECK(io::load_hdf5(path).at("scalar").item() == 2.5);
}

TEST_CASE("HDF5 files that are cut off, no such files, or larger than their bytes are refused") {
  if (lacks_hdf5()) return;
  auto said = [](const std::string& path) { return error_of<io::FileError>([&] { io::load_hdf5(path); }); };
  CHECK_THAT(said(file_of_keras("refused.h5")), contains("dataset 'huge' of 1099511627776 elements in 0 bytes"));
  Folder folder;
  std::string whole = reel_test::bytes_of(file_of_keras("expected.h5"));
  for (std::size_t part = 0; part < 10; ++part) {
    reel_test::put_bytes(folder.file(), whole.substr(0, part * whole.size() / 10));
    CHECK_THAT(said(folder.file()), contains("is no readable HDF5 file: ") && contains("hdf5_test.cpp:"));
  }
  CHECK_THAT(said(folder.file("none")), contains("No such file"));
}

TEST_CASE("the example of a file of Keras gives a layer its weights under another name") {
  if (lacks_hdf5()) return;
  Folder folder;
  std::filesystem::copy_file(file_of_keras("keras3.weights.h5"), folder.file("model.weights.h5"));
  std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(std::filesystem::path(folder.file()).parent_path());
  Layers model("output");
#include "examples/io_weights_3.h"
  std::filesystem::current_path(before);
  io::Contents weights = io::load_hdf5(file_of_keras("keras3.weights.h5"));
  CHECK(model.dense.weight.to_vector<float>() == weights.at("layers/dense/vars/0").to_vector<float>());
}

TEST_CASE("HDF5 groups that are deep in each other, or in several others without end, are refused soon") {
  if (lacks_hdf5()) return;
  Folder folder;
  auto said = [&](const std::string& bytes) {
    reel_test::put_bytes(folder.file(), bytes);
    return error_of<io::FileError>([&] { io::load_hdf5(folder.file()); });
  };
  CHECK(said(nested_groups(50, 1)).empty());
  CHECK(said(nested_groups(3, 2)).empty());
  CHECK_THAT(said(nested_groups(3000, 1)), contains("has groups more than 64 deep in each other"));
  CHECK_THAT(said(nested_groups(40, 2)), contains("has more objects than its bytes can hold"));
  CHECK_THAT(said(nested_groups(2, 1, true)), contains("has more objects than its bytes can hold"));
}

TEST_CASE("HDF5 datasets that are compressed otherwise than once by gzip are refused, whatever they hold") {
  if (lacks_hdf5()) return;
  Folder folder;
  auto said = [&](const std::vector<int>& filters) {
    reel_test::put_bytes(folder.file(), filtered(filters));
    return error_of<io::FileError>([&] { static_cast<void>(io::load_hdf5(folder.file()).at("a")); });
  };
  constexpr int deflate = 1, shuffle = 2, checksum = 3, bits = 5, scale = 6;
  CHECK(said({deflate}).empty());
  CHECK(said({shuffle, deflate, checksum}).empty());
  for (const std::vector<int>& filters : {std::vector{deflate, deflate}, {bits}, {shuffle, scale}, {deflate, 32000}})
    CHECK_THAT(said(filters), contains("a dataset 'a' that is compressed otherwise than once by gzip"));
}
