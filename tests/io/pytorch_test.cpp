#include <reel/io/pytorch.h>
#include <reel/reel.h>

#include <iostream>
#include <random>

#include <io/pickle.h>
#include <io/zip_archive.h>

#include "catch.h"
#include "folder.h"
#include "golden_folder.h"

using namespace reel;
using namespace reel_test;

namespace {

// Files that PyTorch 1.13 has written: see tests/io/by_python/torch_save/write_files.py.
std::string file_of_torch(const std::string& name) { return reel_test::by_python + "torch_save/" + name; }

std::string text_of(const std::string& text) {
  return "X" + std::string(1, static_cast<char>(text.size())) + std::string(3, '\0') + text;
}

std::string refusal(const std::string& pickle) {
  try {
    io::PickleMachine machine(pickle);
    io::tensors_in(machine.run(), pickle.size());
    return {};
  } catch (const std::runtime_error& flaw) {
    return flaw.what();
  }
}

// The pickle of {"x": tensor}, with the type, key and size of its storage, and its offset, sizes and strides.
struct Pickled {
  std::string type = "FloatStorage", key = "0";
  int numel = 6, offset = 0;
  std::vector<int> sizes{2, 3}, strides{3, 1};
  std::string rebuilt = "ctorch._utils\n_rebuild_tensor_v2\n";

  static std::string number(int value) {
    std::string bytes = "J";
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(static_cast<unsigned>(value) >> (8 * i)));
    return bytes;
  }
  static std::string tuple(const std::vector<int>& values) {
    std::string bytes = "(";
    for (int value : values) bytes += number(value);
    return bytes + "t";
  }
  std::string tensor() const {
    return rebuilt + "((" + text_of("storage") + "ctorch\n" + type + "\n" + text_of(key) + text_of("cpu") +
           number(numel) + "tQ" + number(offset) + tuple(sizes) + tuple(strides) +
           "\x89"
           "ccollections\nOrderedDict\n)RtR";
  }
  std::string pickle() const { return "\x80\x02}" + text_of("x") + tensor() + "s."; }
};

// A file as torch.save writes it.
void put_archive(const std::string& path, const std::string& pickle, const std::string& elements,
                 const std::string& order = "little") {
  std::vector<detail::NewZipMember> members{
      {"archive/data.pkl", pickle, {}}, {"archive/byteorder", order, {}}, {"archive/data/0", elements, {}}};
  detail::write_zip("test", path, members, false, Location::here());
}

}  // namespace

TEST_CASE("tensors that PyTorch has saved are read with their views, and texts and numbers beside them") {
  io::Contents contents = io::load_pytorch(file_of_torch("views.pt"));
  Tensor base = reshape(arange(12.0f), {3, 4});
  auto values = [&](const char* name) { return contents.at(name).to_vector<float>(); };
  CHECK(values("model.base") == base.to_vector<float>());
  CHECK(contents.at("model.transposed").shape() == Shape{4, 3});
  CHECK(values("model.transposed") == transpose(base).to_vector<float>());
  CHECK(values("model.row") == std::vector<float>{4, 5, 6, 7});
  CHECK(values("model.col") == std::vector<float>{2, 6, 10});
  CHECK(values("model.expanded") == std::vector<float>{1, 1, 1, 1});
  CHECK(contents.at("model.scalar").item<std::int64_t>() == 7);
  CHECK(contents.at("model.empty").shape() == Shape{0, 3});
  CHECK(values("list.1.0") == (base + 1).to_vector<float>());
  CHECK(contents.tensors.size() == 9);
  // One storage, as in PyTorch.
  CHECK(contents.at("model.col").strided_data<float>() == contents.at("model.base").data<float>() + 2);
  CHECK(contents.metadata ==
        io::Metadata{{"done", "True"}, {"epoch", "3"}, {"format", "torch.save"}, {"loss", "0.5"}, {"name", "x"}});
}

TEST_CASE("floating numbers, bools and integers of PyTorch are read") {
  io::Contents contents = io::load_pytorch(file_of_torch("dtypes.pt"));
  CHECK(contents.tensors.size() == 8);
  auto check = [&](const char* name, DType dtype, const std::vector<double>& values) {
    CHECK(contents.at(name).dtype() == dtype);
    CHECK(to(contents.at(name), f64).to_vector<double>() == values);
  };
  std::vector<double> whole{0, 1, 2, 1};
  check("float32", f32, whole);
  check("float64", f64, whole);
  check("float16", f16, whole);
  check("bfloat16", bf16, whole);
  check("int32", i32, whole);
  check("int64", i64, whole);
  check("uint8", u8, whole);
  check("bool", boolean, {0, 1, 1, 1});
}

TEST_CASE("tensors alone, parameters, later protocols and states of optimisers are read") {
  CHECK(io::load_pytorch(file_of_torch("single.pt")).at("tensor").shape() == Shape{3, 4});
  CHECK(io::load_pytorch(file_of_torch("parameter.pt")).at("p").to_vector<float>() == std::vector<float>{1, 1, 1});
  CHECK(io::load_pytorch(file_of_torch("protocol4.pt")).at("x").shape() == Shape{3, 4});
  io::Contents both = io::load_pytorch(file_of_torch("optim.pt"));
  CHECK(both.at("optim.state.0.exp_avg").shape() == Shape{3, 2});
  CHECK(both.at("optim.state.3.step").item() == 1);
  CHECK_FALSE(both.metadata.contains("optim.param_groups.0.lr"));
}

TEST_CASE("a module loads a file of torch.save as PyTorch's layers, whether or not its weights fit both ways") {
  struct Net : nn::Module {
    nn::Linear hidden{*this, "hidden", 2, 3};
    nn::Linear output{*this, "output", 3, 2};
  } net;
  io::LoadOptions options{
      .rename = [](const std::string& name) { return name.starts_with("model.") ? name.substr(6) : std::string(); }};
  io::load_into(net, file_of_torch("optim.pt"), options);
  Tensor weight = io::load_pytorch(file_of_torch("optim.pt")).at("model.hidden.weight");
  CHECK(net.hidden.weight.to_vector<float>() == transpose(weight).to_vector<float>());
  struct Square : nn::Module {
    nn::Linear linear{*this, "linear", 2, 2};
  } square;
  Folder folder;
  Pickled pickled{.numel = 4, .sizes = {2, 2}, .strides = {2, 1}};
  std::vector<float> numbers{1, 2, 3, 4};
  put_archive(folder.file("square.pt"), pickled.pickle(),
              {reinterpret_cast<const char*>(numbers.data()), 4 * sizeof(float)});
  options = {.strict = false, .rename = [](const std::string&) { return "linear.weight"; }};
  io::load_into(square, folder.file("square.pt"), options);
  CHECK(square.linear.weight.to_vector<float>() == std::vector<float>{1, 3, 2, 4});
  options.from_pytorch = false;
  io::load_into(square, folder.file("square.pt"), options);
  CHECK(square.linear.weight.to_vector<float>() == numbers);
}

TEST_CASE("elements in the other byte order are converted") {
  Folder folder;
  std::string elements;
  for (int i = 0; i < 6; ++i) elements += std::string{0x3f, static_cast<char>(0x80), 0, static_cast<char>(i)};
  put_archive(folder.file(), Pickled().pickle(), elements, "big");
  CHECK(io::load_pytorch(folder.file()).at("x").to_vector<float>()[2] == 1 + 2 * 0x1p-23f);
  put_archive(folder.file(), Pickled().pickle(), elements, "middle");
  CHECK_THAT(error_of<io::FileError>([&] { io::load_pytorch(folder.file()); }), contains("the byte order 'middle'"));
}

TEST_CASE("other formats of PyTorch and other archives are refused with a remedy") {
  auto said = [](const std::string& path) { return error_of<io::FileError>([&] { io::load_pytorch(path); }); };
  CHECK_THAT(said(file_of_torch("old.pt")), contains("before version 1.6") && contains("pytorch_test.cpp:"));
  nn::Linear linear(2, 2);
  CHECK_THAT(error_of<io::FileError>([&] { io::load_into(linear, file_of_torch("old.pt")); }),
             contains("before version 1.6"));
  Folder folder;
  reel_test::put_bytes(folder.file(), "");
  CHECK_THAT(said(folder.file()), contains("is no file of torch.save"));
  io::save(folder.file(), {{"x", ones({2})}});
  CHECK_THAT(said(folder.file()), contains("is no file of torch.save"));
  detail::write_zip("test", folder.file(), std::vector<detail::NewZipMember>{{"x.npy", "x", {}}}, false,
                    Location::here());
  CHECK_THAT(said(folder.file()), contains("without a data.pkl"));
  put_archive(folder.file(), Pickled{.key = "1"}.pickle(), std::string(24, 'x'));
  CHECK_THAT(said(folder.file()), contains("has no member 'archive/data/1'"));
  put_archive(folder.file(), Pickled().pickle(), std::string(23, 'x'));
  CHECK_THAT(said(folder.file()), contains("has 23 bytes in 'archive/data/0', where 6 elements of f32 should be"));
}

TEST_CASE("members that PyTorch would not have compressed are refused before they are decompressed") {
  Folder folder;
  const std::string zeros(1'000'000, '\0');
  for (const char* large : {"archive/data.pkl", "archive/byteorder", "archive/data/0"}) {
    std::vector<detail::NewZipMember> members{
        {"archive/data.pkl", Pickled().pickle(), {}}, {"archive/byteorder", "little", {}}, {"archive/data/0", "", {}}};
    for (detail::NewZipMember& member : members)
      if (member.name == large) member.head = zeros;
    detail::write_zip("test", folder.file(), members, true, Location::here());
    REQUIRE(std::filesystem::file_size(folder.file()) < 3000);
    CHECK_THAT(error_of<io::FileError>([&] { io::load_pytorch(folder.file()); }), contains("has a compressed member"));
  }
}

TEST_CASE("elements that have changed since they were saved are refused") {
  Folder folder;
  put_archive(folder.file(), Pickled().pickle(), std::string(25, 'x'));
  CHECK(io::load_pytorch(folder.file()).at("x").numel() == 6);
  std::string bytes = reel_test::bytes_of(folder.file());
  bytes[bytes.find(std::string(25, 'x'))] = 'y';
  reel_test::put_bytes(folder.file(), bytes);
  CHECK_THAT(error_of<io::FileError>([&] { io::load_pytorch(folder.file()); }),
             contains("'archive/data/0': the archive has a member that cannot be read: "));
}

TEST_CASE("what a pickle names beside tensors is refused by name, and never called") {
  CHECK(refusal(Pickled().pickle()).empty());
  CHECK_THAT(refusal("\x80\2cos\nsystem\n" + text_of("true") + "\x85R."),
             contains("names 'os.system' at byte 2") && contains("save the state_dict()"));
  CHECK_THAT(refusal("\x80\2ctorch._utils\n_rebuild_tensor_v3\n."), contains("'torch._utils._rebuild_tensor_v3'"));
  CHECK_THAT(refusal("\x80\x04\x8c\x02os\x8c\x06system\x93."), contains("'os.system'"));
  CHECK_THAT(refusal(Pickled{.type = "QInt8Storage"}.pickle()), contains("a storage of the type 'QInt8Storage'"));
  CHECK_THAT(refusal("ctorch\nfloat32\n)R."), contains("calls 'float32'"));
  CHECK_THAT(refusal("N)R."), contains("calls what is no function"));
  // An OrderedDict of pairs, which may be tuples or lists, and of what are none.
  const std::string ordered = "ccollections\nOrderedDict\n(](";
  CHECK(refusal(ordered + "(" + text_of("a") + "NtetR.").empty());
  CHECK(refusal(ordered + "](" + text_of("a") + "NeetR.").empty());
  for (const char* other : {"N", "K\1", "}", "(Nt", "(NNNt", "](Ne"})
    CHECK_THAT(refusal(ordered + other + "etR."), contains("an OrderedDict of something other than pairs"));
  CHECK_THAT(refusal("ccollections\nOrderedDict\n(NtR."), contains("an OrderedDict of something other than a list"));
  CHECK_THAT(refusal("\x80\2]}b."), contains("gives attributes to something other than a dict"));
  CHECK_THAT(refusal("S'x'\n."), contains("has the instruction 0x53 at byte 0"));
  CHECK_THAT(refusal("\x80\x09N."), contains("protocol 9"));
}

TEST_CASE("a tensor that its storage does not hold is refused") {
  for (const Pickled& pickled :
       {Pickled{.numel = 5}, Pickled{.offset = 1}, Pickled{.offset = -1}, Pickled{.sizes = {2, -3}},
        Pickled{.strides = {3, -1}}, Pickled{.sizes = {2, 1 << 30}}, Pickled{.strides = {1 << 30, 1 << 30}},
        Pickled{.sizes = std::vector<int>(8, 1 << 30), .strides = std::vector<int>(8, 0)}})
    CHECK_THAT(refusal(pickled.pickle()), contains("which its storage of"));
  CHECK_THAT(refusal(Pickled{.numel = -1}.pickle()), contains("a storage of -1 elements"));
  CHECK_THAT(refusal(Pickled{.sizes = {6}}.pickle()), contains("a tensor of 1 sizes and 2 strides"));
  CHECK_THAT(refusal(Pickled{.sizes = std::vector<int>(9, 1)}.pickle()), contains("more than the 8"));
  CHECK(refusal(Pickled{.sizes = {0, 100}, .strides = {100, 1}}.pickle()).empty());
}

TEST_CASE("a small pickle takes little memory and time, however its containers contain each other") {
  std::string laughs = "]q\1";
  for (char i = 1; i < 40; ++i) laughs += std::string("0](h") + i + "h" + i + "eq" + static_cast<char>(i + 1);
  CHECK_THAT(refusal(laughs + "."), contains("contain each other"));
  CHECK_THAT(refusal("]q\1h\1a."), contains("contain each other"));
  CHECK_THAT(refusal(std::string(1000, ']') + std::string(999, 'a') + "."), contains("nested more than 64 deep"));
  CHECK_THAT(refusal(std::string(1 << 20, ']')), contains("more values than its 1048576 bytes could name"));
  CHECK_THAT(refusal("Nr\xff\xff\xff\xff."), contains("numbers a value 4294967295"));
  std::string long_names = "}q\1X" + std::string("\0\0\1\0", 4) + std::string(65536, 'x') + "q\2";
  for (int i = 0; i < 20; ++i) long_names += "}h\2";
  CHECK_THAT(refusal(long_names + "N" + std::string(20, 's') + "s."), contains("longer than itself"));
}

TEST_CASE("long lists of numbers and states of many parameters are read") {
  std::string numbers = "}" + text_of("labels") + "](";
  for (int i = 0; i < 100'000; ++i) numbers += "K\1";
  CHECK(refusal(numbers + "es.").empty());
  // A file like an optimiser's state: 0-dimensional tensors, whose names and functions are taken from the memo.
  const std::string put("r\6\0\0\0", 5);
  std::string state = "ctorch._utils\n_rebuild_tensor_v2\nq\0010ctorch\nFloatStorage\nq\0020" + text_of("storage") +
                      "q\0030" + text_of("cpu") + "q\0040ccollections\nOrderedDict\nq\0050(";
  for (int i = 0; i < 8'000; ++i)
    state += "h\1((h\3h\2" + text_of(std::to_string(i)) + put + "h\4K\1t" + put + "QK" + std::string(1, '\0') +
             "))\x89h\5)R" + put + "t" + put + "R" + put;
  CHECK(refusal(state + "t.").empty());
}

TEST_CASE("two tensors of one name are refused") {
  std::string both = "}(" + text_of("x") + "Nq\1" + "}" + text_of("y") + Pickled().tensor() + "s" + text_of("x.y") +
                     Pickled().tensor() + "u.";
  both.erase(both.find("Nq"), 3);
  CHECK_THAT(refusal(both), contains("two tensors of the name 'x.y'"));
}

// A pickle is either refused or read.
TEST_CASE("pickles and files that are cut off or changed at random are refused or read, and nothing else") {
  std::string whole = Pickled().pickle();
  for (std::size_t length = 0; length < whole.size(); ++length)
    CHECK_THAT(refusal(whole.substr(0, length)), contains("has a pickle that "));
  std::uint32_t seed = 30;
  std::cout << "mutations with seed " << seed << '\n';
  std::mt19937 random(seed);
  const std::string instructions = "(.01JKMNQRTUXabc}ehj]lqrst)uGd\x80\x85\x86\x87\x88\x89\x8a\x8c\x93\x94\x95";
  std::size_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = whole;
    for (std::uint32_t changes = 1 + random() % 4; changes > 0; --changes) {
      std::size_t at = random() % bytes.size();
      if (random() % 2)
        bytes[at] = instructions[random() % instructions.size()];
      else
        bytes.insert(at, 1, instructions[random() % instructions.size()]);
    }
    refused += !refusal(bytes).empty();
  }
  CHECK(refused > 10'000);
  Folder folder;
  std::string file = reel_test::bytes_of(file_of_torch("single.pt"));
  for (std::size_t at = 0; at < file.size(); at += 3) {
    std::string bytes = file;
    bytes[at] = static_cast<char>(random());
    reel_test::put_bytes(folder.file(), bytes);
    try {
      io::load_pytorch(folder.file());
    } catch (const io::FileError&) {
    }
  }
}

TEST_CASE("load takes a file of torch.save by its first bytes") {
  io::Contents found = io::load(file_of_torch("optim.pt")), expected = io::load_pytorch(file_of_torch("optim.pt"));
  CHECK(found.metadata == expected.metadata);
  REQUIRE(found.tensors.size() == expected.tensors.size());
  for (std::size_t i = 0; i < found.tensors.size(); ++i) CHECK(found.tensors[i].name == expected.tensors[i].name);
}
