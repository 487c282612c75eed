#include <cstring>
#include <map>

#include <fmt/format.h>
#include <reel/reel.h>

#include "catch.h"
#include "folder.h"

using namespace reel;
using namespace reel_test;

namespace {

struct Net : nn::Module {
  nn::Linear hidden;
  nn::Linear output;
  nn::Buffer seen{*this, "seen", zeros({}, {.dtype = i64})};

  explicit Net(std::int64_t size = 3, DType dtype = f32)
      : hidden(*this, "hidden", 2, size, {.dtype = dtype}), output(*this, "output", size, 2, {.dtype = dtype}) {}
  Tensor operator()(const Tensor& x) const { return output(tanh(hidden(x))); }
};

// A net whose weights fit transposed, too.
struct Square : nn::Module {
  nn::Linear first{*this, "first", 2, 2};
  nn::Linear second{*this, "second", 2, 2};
};

std::vector<std::vector<double>> values_of(const nn::Module& net) {
  std::vector<std::vector<double>> found;
  for (const Tensor& parameter : net.parameters()) found.push_back(to(parameter, f64).to_vector<double>());
  for (const io::NamedTensor& buffer : net.named_buffers()) found.push_back(to(buffer.tensor, f64).to_vector<double>());
  return found;
}

std::string refusal(Net& net, const std::string& path, const io::LoadOptions& options = {}) {
  auto before = values_of(net);
  std::string said = error_of<io::MisfitError>([&] { io::load_into(net, path, options); });
  CHECK(values_of(net) == before);
  return said;
}

}  // namespace

TEST_CASE("a module's parameters and buffers come back from a file, in place") {
  Folder folder;
  Net saved, loaded;
  fill_(saved.seen, 7);
  io::save(folder.file(), saved, {{"epoch", "3"}});
  Tensor handle = loaded.hidden.weight;
  io::PassedOver passed_over = io::load_into(loaded, folder.file());
  CHECK(values_of(loaded) == values_of(saved));
  CHECK(handle.is(loaded.hidden.weight));
  CHECK(handle.is_parameter());
  CHECK(passed_over.missing.empty());
  CHECK(passed_over.unexpected.empty());
  CHECK(io::load(folder.file()).metadata.at("epoch") == "3");
  std::vector<std::string> names;
  for (const io::NamedTensor& named : io::load(folder.file()).tensors) names.push_back(named.name);
  CHECK(names == std::vector<std::string>{"hidden.weight", "hidden.bias", "output.weight", "output.bias", "seen"});
}

TEST_CASE("an optimiser goes on with what was loaded") {
  Folder folder;
  Net saved, loaded;
  io::save(folder.file(), saved);
  auto step = [](Net& net, optim::Optimiser& optimiser) {
    Tape tape;
    tape.backward(sum(net(ones({1, 2}))));
    optimiser.step();
  };
  optim::SGD of_saved(saved.parameters()), of_loaded(loaded.parameters());
  io::load_into(loaded, folder.file());
  step(saved, of_saved);
  step(loaded, of_loaded);
  CHECK(values_of(loaded) == values_of(saved));
}

TEST_CASE("an open tape that needs the old values notices that others were loaded") {
  Folder folder;
  Net net;
  io::save(folder.file(), net);
  Tape tape;
  Tensor loss = sum(net(ones({1, 2})));
  io::load_into(net, folder.file());
  CHECK_THAT(error_of<TapeError>([&] { tape.backward(loss); }), contains("weights_test.cpp:"));
}

TEST_CASE("a file that does not fit a module is told line by line, and changes nothing") {
  Folder folder;
  Net net;
  Tensor transposed = transpose(net.output.weight);
  io::save(folder.file(), {{"hidden.weight", ones({2, 4})},
                           {"hidden.bias", ones({3}, {.dtype = f16})},
                           {"output.weight", transposed},
                           {"seen", zeros({}, {.dtype = i64})},
                           {"hidden.scale", ones({3})}});
  std::string said = refusal(net, folder.file());
  CHECK_THAT(said, contains("io::load_into: '" + folder.file() +
                            "' does not fit the module in 5 places, and nothing was changed; at ") &&
                       contains("weights_test.cpp:"));
  CHECK_THAT(said, contains("\n  differs     hidden.weight  (2, 3) f32 in the module, (2, 4) f32 given\n"));
  CHECK_THAT(
      said,
      contains(
          "\n  differs     hidden.bias  (3) f32 in the module, (3) f16 given: .convert = true would convert it\n") ||
          contains("\n  differs     hidden.bias  (3,) f32 in the module, (3,) f16 given: .convert = true would convert "
                   "it\n"));
  CHECK_THAT(said, contains("differs     output.weight  (3, 2) f32 in the module, (2, 3) f32 given: the other way "
                            "round, as PyTorch has it"));
  CHECK_THAT(said, contains("\n  missing     output.bias  (2"));
  CHECK_THAT(said, contains("\n  unexpected  hidden.scale  (3"));
}

TEST_CASE("a long list of what does not fit is cut") {
  Folder folder;
  Net net;
  std::vector<io::NamedTensor> tensors;
  for (int i = 0; i < 500; ++i) tensors.push_back({fmt::format("x{}", i), ones({1})});
  io::save(folder.file(), tensors);
  std::string said = refusal(net, folder.file());
  CHECK_THAT(said, contains("in 505 places") && contains("… and 465 more"));
}

TEST_CASE("a load that is not strict passes over what is missing or unexpected, not what differs") {
  Folder folder;
  Net net;
  io::save(folder.file(), {{"hidden.bias", full({3}, 5)}, {"other", ones({1})}});
  io::PassedOver passed_over = io::load_into(net, folder.file(), {.strict = false});
  CHECK(net.hidden.bias.to_vector<float>() == std::vector<float>(3, 5));
  CHECK(passed_over.missing == std::vector<std::string>{"hidden.weight", "output.weight", "output.bias", "seen"});
  CHECK(passed_over.unexpected == std::vector<std::string>{"other"});
  io::save(folder.file(), {{"hidden.bias", full({4}, 5)}});
  CHECK_THAT(refusal(net, folder.file(), {.strict = false}), contains("in 1 place,") && contains("differs"));
}

TEST_CASE("values of another dtype are converted if that is asked for") {
  Folder folder;
  Net wide(3, f64), net;
  io::save(folder.file(), wide);
  CHECK_THAT(refusal(net, folder.file()), contains("f32 in the module") && contains("f64 given"));
  io::load_into(net, folder.file(), {.convert = true});
  CHECK(net.hidden.weight.dtype() == f32);
  CHECK(net.hidden.weight.to_vector<float>() == to(wide.hidden.weight, f32).to_vector<float>());
}

TEST_CASE("weights that were saved from Python are renamed and transposed as the caller says") {
  Folder folder;
  Net net, other;
  io::save(folder.file(), {{"fc1.weight", transpose(net.hidden.weight)},
                           {"fc1.bias", net.hidden.bias},
                           {"fc2.weight", transpose(net.output.weight)},
                           {"fc2.bias", net.output.bias},
                           {"running", ones({3})}});
  io::LoadOptions options{
      .rename = [](const std::string& name) -> std::string {
        if (name == "running") return "";
        return fmt::format("{}{}", name.starts_with("fc1") ? "hidden" : "output", name.substr(3));
      },
      .transform = [](const std::string& name,
                      const Tensor& x) { return name.ends_with("weight") && x.rank() == 2 ? transpose(x) : x; }};
  CHECK_THAT(refusal(other, folder.file(), options), contains("in 1 place,") && contains("missing     seen"));
  options.strict = false;
  CHECK(io::load_into(other, folder.file(), options).missing == std::vector<std::string>{"seen"});
  CHECK(values_of(other) == values_of(net));
  options.rename = [](const std::string&) { return "hidden.weight"; };
  CHECK_THAT(error_of<Error>([&] { io::load_into(other, folder.file(), options); }),
             contains("'fc1.weight' and 'fc1.bias' are both to be the module's 'hidden.weight'"));
}

TEST_CASE("weights under PyTorch's names and in its shapes are loaded if the caller says that they are") {
  Folder folder;
  struct Ours : nn::Module {
    nn::Embedding words{*this, "words", 5, 2};
    nn::LSTM encoder{*this, "encoder", 2, 2};
    nn::Linear output{*this, "output", 2, 2};
  } ours;
  auto numbers = [](std::int64_t rows, std::int64_t columns) {
    return reshape(to(arange(rows * columns), f32), {rows, columns});
  };
  io::save(folder.file(), {{"model.words.weight", numbers(5, 2)},
                           {"model.encoder.weight_ih_l0", numbers(8, 2)},
                           {"model.encoder.weight_hh_l0", numbers(8, 2) + 1},
                           {"model.encoder.bias_ih_l0", full({8}, 2)},
                           {"model.encoder.bias_hh_l0", full({8}, 3)},
                           {"model.output.weight", numbers(2, 2)},
                           {"model.output.bias", full({2}, 4)}});
  auto inner = [](const std::string& name) { return name.substr(6); };
  CHECK_THAT(error_of<io::MisfitError>([&] { io::load_into(ours, folder.file(), {.rename = inner}); }),
             contains("unexpected  encoder.weight_ih_l0"));
  io::load_into(ours, folder.file(), {.from_pytorch = true, .rename = inner});
  CHECK(ours.words.table.to_vector<float>() == numbers(5, 2).to_vector<float>());
  CHECK(ours.encoder.nets[0].W_x.to_vector<float>() == transpose(numbers(8, 2)).to_vector<float>());
  CHECK(ours.encoder.nets[0].W_h.to_vector<float>() == transpose(numbers(8, 2) + 1).to_vector<float>());
  CHECK(ours.encoder.nets[0].bias.to_vector<float>() == std::vector<float>(8, 5));
  CHECK(ours.output.weight.to_vector<float>() == std::vector<float>{0, 2, 1, 3});
  io::save(folder.file(), {{"weight", numbers(3, 2)}, {"bias_ih_l0", zeros({3})}, {"bias_hh_l0", zeros({4})}});
  nn::GRU gru(1, 1);
  std::string said = error_of<io::MisfitError>([&] { io::load_into(gru, folder.file(), {.from_pytorch = true}); });
  CHECK_THAT(said, contains("unexpected  bias_hh_l0") && contains("missing"));
}

TEST_CASE("convolutions, batch norms and bags of embeddings are loaded from what PyTorch has") {
  struct Ours : nn::Module {
    nn::Conv2d conv{*this, "conv", 2, 3, 2};
    nn::BatchNorm2d norm{*this, "norm", 3};
    nn::EmbeddingBag bag{*this, "bag", 4, 2};
  } ours;
  std::vector<io::NamedTensor> theirs{{"conv.weight", full({3, 2, 2, 2}, 1)},
                                      {"conv.bias", full({3}, 2)},
                                      {"norm.weight", full({3}, 3)},
                                      {"norm.bias", full({3}, 4)},
                                      {"norm.running_mean", full({3}, 5)},
                                      {"norm.running_var", full({3}, 6)},
                                      {"norm.num_batches_tracked", full({}, 7, {.dtype = i64})},
                                      {"bag.weight", full({4, 2}, 8)}};
  io::load_into(ours, theirs, {.from_pytorch = true});
  CHECK(min(ours.conv.weight).item() == 1);
  CHECK(min(ours.norm.running_mean).item() == 5);
  CHECK(min(ours.norm.running_variance).item() == 6);
  CHECK(min(ours.bag.table).item() == 8);
}

TEST_CASE("a file of square weights that reel saved is loaded as reel's, and refused as PyTorch's") {
  Folder folder;
  Square saved, loaded;
  io::save(folder.file(), saved, {{"epoch", "3"}});
  CHECK(io::load(folder.file()).metadata == io::Metadata{{"epoch", "3"}, {"format", "reel"}});
  io::load_into(loaded, folder.file());
  CHECK(values_of(loaded) == values_of(saved));
  auto said = [&](auto& from) {
    Square other;
    auto before = values_of(other);
    std::string words = error_of<io::MisfitError>([&] { io::load_into(other, from, {.from_pytorch = true}); });
    CHECK(values_of(other) == before);
    return words;
  };
  std::string path = folder.file();
  CHECK_THAT(said(path), contains("io::load_into: '" + path + "' was saved by reel, and .from_pytorch = true would ") &&
                             contains("leave it out; nothing was changed; at ") && contains("weights_test.cpp:"));
  io::Contents contents = io::load(path);
  CHECK_THAT(said(contents), contains("io::load_into: the file was saved by reel"));
  Square third;
  io::load_into(third, contents, {.from_pytorch = false});
  CHECK(values_of(third) == values_of(saved));
}

TEST_CASE("a file of square weights without a mark is loaded only as what the caller says that it is") {
  Folder folder;
  Square saved;
  std::string path = folder.file();
  for (const io::Metadata& metadata : {io::Metadata{}, io::Metadata{{"format", "pt"}}}) {
    io::save(path, saved.named_parameters(), metadata);
    Square net;
    auto before = values_of(net);
    std::string said = error_of<io::MisfitError>([&] { io::load_into(net, path); });
    CHECK_THAT(said, contains("io::load_into: '" + path + "' does not say whether its weights are (in, out)") &&
                         contains("say .from_pytorch = true for PyTorch's or .from_pytorch = false for reel's") &&
                         contains("\n  either way  first.weight  (2, 2) f32\n  either way  second.weight  (2, 2) f32"));
    CHECK_THAT(error_of<io::MisfitError>([&] { io::load_into(net, io::load(path)); }),
               contains("does not say whether"));
    CHECK_THAT(error_of<io::MisfitError>([&] { io::load_into(net, path, {.strict = false}); }),
               contains("does not say whether"));
    CHECK(values_of(net) == before);
    io::load_into(net, path, {.from_pytorch = false});
    CHECK(values_of(net) == values_of(saved));
    io::load_into(net, path, {.from_pytorch = true});
    CHECK(net.first.weight.to_vector<float>() == transpose(saved.first.weight).to_vector<float>());
    CHECK(net.second.bias.to_vector<float>() == saved.second.bias.to_vector<float>());
  }
}

TEST_CASE("a file without a mark is loaded as reel's where shapes show that it is not PyTorch's") {
  Folder folder;
  struct Mixed : nn::Module {
    nn::Linear square{*this, "square", 2, 2};
    nn::Linear wide{*this, "wide", 2, 3};
  } saved, loaded;
  io::save(folder.file(), saved.named_parameters());
  io::load_into(loaded, folder.file());
  CHECK(loaded.square.weight.to_vector<float>() == saved.square.weight.to_vector<float>());
  // In PyTorch's layout the other weight decides.
  std::vector<io::NamedTensor> theirs = saved.named_parameters();
  for (io::NamedTensor& named : theirs)
    if (named.tensor.rank() == 2) named.tensor = transpose(named.tensor);
  io::save(folder.file(), theirs);
  CHECK_THAT(error_of<io::MisfitError>([&] { io::load_into(loaded, folder.file()); }),
             contains("in 1 place,") && contains("differs     wide.weight") && contains(".from_pytorch = true"));
  io::load_into(loaded, folder.file(), {.from_pytorch = true});
  CHECK(loaded.square.weight.to_vector<float>() == saved.square.weight.to_vector<float>());
  // With one element or without matrices both layouts are equal.
  nn::Linear single(1, 1);
  io::save(folder.file(), {{"weight", full({1, 1}, 5)}, {"bias", full({1}, 6)}});
  io::load_into(single, folder.file());
  CHECK(single.weight.item() == 5);
  nn::LayerNorm norm({2, 2});
  io::save(folder.file(), norm.named_parameters());
  io::load_into(norm, folder.file());
}

TEST_CASE("files of before reel marked them are loaded, square ones if the caller says that they are reel's") {
  Folder folder;
  auto old_file = [&](const char* shape, std::size_t elements) {
    std::string values(4 * elements, '\0');
    for (std::size_t i = 0; i < elements; ++i) {
      auto value = static_cast<float>(i);
      std::memcpy(values.data() + 4 * i, &value, 4);
    }
    reel_test::put_bytes(
        folder.file(),
        reel_test::safetensors(
            fmt::format(R"({{"weight":{{"dtype":"F32","shape":[{}],"data_offsets":[0,{}]}}}})", shape, 4 * elements),
            values));
  };
  nn::Linear wide(2, 3, {.bias = false}), square(2, 2, {.bias = false});
  old_file("2,3", 6);
  io::load_into(wide, folder.file());
  CHECK(wide.weight.to_vector<float>() == std::vector<float>{0, 1, 2, 3, 4, 5});
  old_file("2,2", 4);
  CHECK_THAT(error_of<io::MisfitError>([&] { io::load_into(square, folder.file()); }), contains("does not say"));
  io::load_into(square, folder.file(), {.from_pytorch = false});
  CHECK(square.weight.to_vector<float>() == std::vector<float>{0, 1, 2, 3});
}

TEST_CASE("a module is not saved under another program's mark, and a list of tensors under any") {
  Folder folder;
  Square net;
  std::string said = error_of<Error>([&] { io::save(folder.file(), net, {{"format", "pt"}}); });
  CHECK_THAT(said, contains("io::save: the metadata say that the format is 'pt'") && contains("weights_test.cpp:"));
  CHECK_THAT(error_of<Error>([&] { io::check_save(folder.file(), net, {{"format", "pt"}}); }), contains("'pt'"));
  CHECK_THAT(error_of<Error>([&] { io::check_save(folder.file(), net, {{"tags", "\xff"}}); }), contains("not UTF-8"));
  CHECK(folder.names().empty());
  io::check_save(folder.file(), net, {{"format", "reel"}});
  io::save(folder.file(), net.named_parameters(), {{"format", "reel"}});
  Square loaded;
  io::load_into(loaded, folder.file());
  CHECK(values_of(loaded) == values_of(net));
}

TEST_CASE("a module takes a list of tensors that were put together by hand") {
  Net net;
  std::vector<io::NamedTensor> list;
  for (const io::NamedTensor& named : net.named_parameters())
    list.push_back({named.name, full(named.tensor.shape(), 2)});
  CHECK_THAT(error_of<io::MisfitError>([&] { io::load_into(net, list); }),
             contains("the given tensors do not fit the module"));
  list.push_back({"seen", full({}, 1, {.dtype = i64})});
  io::load_into(net, list);
  for (const std::vector<double>& values : values_of(net))
    for (double value : values) CHECK(value >= 1);
  list.back().tensor = {};
  CHECK_THAT(error_of<Error>([&] { io::load_into(net, list); }), contains("'seen' is an undefined tensor"));
}

TEST_CASE("a tensor of the module that repeats elements does not fit, and nothing is changed") {
  Folder folder;
  struct Repeating : nn::Module {
    nn::Parameter first{*this, "first", {2}, nn::constant(1)};
    nn::Buffer repeated{*this, "repeated", expand(ones({1}), {2})};
    nn::Parameter last{*this, "last", {2}, nn::constant(1)};
  } module;
  io::save(folder.file(), {{"first", full({2}, 7)}, {"repeated", full({2}, 8)}, {"last", full({2}, 9)}});
  CHECK_THAT(error_of<io::MisfitError>([&] { io::load_into(module, folder.file()); }),
             contains("in 1 place,") &&
                 contains("differs     repeated  (2,) f32 repeats elements in the module: make it contiguous"));
  CHECK(module.first.to_vector<float>() == std::vector<float>{1, 1});
  CHECK(module.last.to_vector<float>() == std::vector<float>{1, 1});
}

TEST_CASE("a module takes what its own tensors were before, whichever of them they are given to") {
  struct Two : nn::Module {
    nn::Parameter a{*this, "a", tensor({{1.f, 2.f}, {3.f, 4.f}})};
    nn::Parameter b{*this, "b", tensor({{5.f, 6.f}, {7.f, 8.f}})};
  } two;
  io::load_into(two, {{"a", two.b}, {"b", two.a}});
  CHECK(two.a.to_vector<float>() == std::vector<float>{5, 6, 7, 8});
  CHECK(two.b.to_vector<float>() == std::vector<float>{1, 2, 3, 4});
  io::load_into(two, {{"a", transpose(two.a)}, {"b", two.b}});
  CHECK(two.a.to_vector<float>() == std::vector<float>{5, 7, 6, 8});
}

TEST_CASE("a name in a file cannot speak to the terminal") {
  Net net;
  std::string said = error_of<io::MisfitError>([&] {
    io::load_into(net, {{"x\x1b[2J\n  missing", zeros({1})}}, {.strict = true});
  });
  CHECK_THAT(said, contains("unexpected  x\\u{1b}[2J\\u{a}  missing  (1,)"));
  CHECK(said.find('\x1b') == said.npos);
}

TEST_CASE("two biases of halves are added in f32") {
  auto bias = [](DType of_net, bool convert) {
    nn::LSTM net(1, 1, {.dtype = of_net});
    io::load_into(net,
                  {{"weight_ih_l0", ones({4, 1}, {.dtype = f16})},
                   {"weight_hh_l0", ones({4, 1}, {.dtype = f16})},
                   {"bias_ih_l0", full({4}, 40000, {.dtype = f16})},
                   {"bias_hh_l0", full({4}, of_net == f16 ? 1 : 40000, {.dtype = f16})}},
                  {.convert = convert, .from_pytorch = true});
    return to(net.nets[0].bias, f64).to_vector<double>()[0];
  };
  CHECK(bias(f32, true) == 80000);
  CHECK(bias(f16, false) == 40000);
  CHECK_THAT(error_of<io::MisfitError>([&] { bias(f32, false); }),
             contains("nets.0.bias  (4,) f32 in the module, (4,) f16"));
}

TEST_CASE("a tensor that is there under PyTorch's name and the module's own is refused") {
  auto said = [](nn::Module& module, const std::vector<io::NamedTensor>& tensors) {
    return error_of<Error>([&] { io::load_into(module, tensors, {.strict = false, .from_pytorch = true}); });
  };
  nn::Embedding embedding(2, 3);
  CHECK_THAT(said(embedding, {{"table", zeros({2, 3})}, {"weight", ones({2, 3})}}),
             contains("io::load_into: two of the given tensors are the module's 'table', under its own name and "
                      "under PyTorch's"));
  nn::LSTM lstm(2, 3);
  CHECK_THAT(said(lstm, {{"nets.0.W_x", zeros({2, 12})}, {"weight_ih_l0", ones({12, 2})}}), contains("'nets.0.W_x'"));
  CHECK_THAT(said(lstm, {{"bias_ih_l0", zeros({12})}, {"bias_hh_l0", ones({12})}, {"nets.0.bias", ones({12})}}),
             contains("'nets.0.bias'"));
  nn::MultiHeadAttention attention(4, 2);
  CHECK_THAT(said(attention, {{"query.bias", zeros({4})}, {"in_proj_bias", ones({12})}}), contains("'query.bias'"));
}

namespace {

// A part of each kind that PyTorch names or lays out otherwise.
struct EveryKind : nn::Module {
  nn::Embedding words{*this, "words", 7, 6};
  nn::EmbeddingBag bag{*this, "bag", 7, 6};
  nn::Linear plain{*this, "plain", 6, 4}, without_bias{*this, "without_bias", 4, 6, {.bias = false}};
  nn::Conv2d image{*this, "image", 2, 3, 3};
  nn::BatchNorm1d norm{*this, "norm", 6};
  nn::LayerNorm layer_norm{*this, "layer_norm", {6}};
  nn::LSTM lstm{*this, "lstm", 6, 5, {.layers = 2, .bidirectional = true}};
  nn::LSTM projected{*this, "projected", 6, 5, {.projection = 3}};
  nn::GRU gru{*this, "gru", 6, 5, {.layers = 2}};
  nn::RNN rnn{*this, "rnn", 6, 5};
  nn::LSTMCell cell{*this, "cell", 6, 5};
  nn::GRUCell gru_cell{*this, "gru_cell", 6, 5};
  nn::MultiHeadAttention attention{*this, "attention", 6, 2};
  nn::MultiHeadAttention other_widths{*this, "other_widths", 6, 2, {.key_size = 4}};
  nn::TransformerEncoderLayer encoder{*this, "encoder", 6, 2};
  nn::TransformerDecoderLayer decoder{*this, "decoder", 6, 2};
  nn::Sequential head{*this, "head", nn::Linear(6, 3), relu, nn::Linear(3, 2)};
};

}  // namespace

TEST_CASE("a module that is saved for PyTorch has PyTorch's names and shapes, and loads as PyTorch's") {
  Folder folder;
  EveryKind saved, loaded;
  io::save(folder.file(), saved, {.for_pytorch = true, .metadata = {{"epoch", "3"}}});
  io::Contents contents = io::load(folder.file());
  CHECK(contents.metadata == io::Metadata{{"epoch", "3"}, {"format", "pt"}});
  std::map<std::string, Shape> shapes;
  for (const NamedTensor& named : contents.tensors) shapes[named.name] = named.tensor.shape();
  CHECK(shapes.at("words.weight") == Shape{7, 6});
  CHECK(shapes.at("plain.weight") == Shape{4, 6});
  CHECK(shapes.at("image.weight") == Shape{3, 2, 3, 3});
  CHECK(shapes.at("norm.running_var") == Shape{6});
  CHECK(shapes.at("norm.num_batches_tracked") == Shape{});
  CHECK(shapes.at("lstm.weight_ih_l1_reverse") == Shape{20, 10});
  CHECK(shapes.at("lstm.bias_hh_l0") == Shape{20});
  CHECK(shapes.at("projected.weight_hr_l0") == Shape{3, 5});
  CHECK(shapes.at("gru.bias_hh_l1") == Shape{15});
  CHECK(shapes.at("cell.weight_hh") == Shape{20, 5});
  CHECK(shapes.at("attention.in_proj_weight") == Shape{18, 6});
  CHECK(shapes.at("attention.out_proj.weight") == Shape{6, 6});
  CHECK(shapes.at("other_widths.k_proj_weight") == Shape{6, 4});
  CHECK(shapes.at("encoder.self_attn.in_proj_bias") == Shape{18});
  CHECK(shapes.contains("encoder.linear1.weight"));
  CHECK(shapes.contains("decoder.multihead_attn.in_proj_weight"));
  CHECK(shapes.contains("decoder.norm3.weight"));
  CHECK(shapes.at("head.2.weight") == Shape{2, 3});

  io::load_into(loaded, folder.file(), {.from_pytorch = true});
  std::vector<NamedTensor> expected = saved.named_parameters(), found = loaded.named_parameters();
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(found[i].name);
    CHECK(found[i].tensor.to_vector<float>() == expected[i].tensor.to_vector<float>());
  }
}

namespace {

// Weights under two names: in layers, cells and halves of attentions, of which PyTorch has each name.
struct Tied : nn::Module {
  nn::Linear first{*this, "first", 3, 3}, second{*this, "second", 3, 3};
  nn::LSTM lstm{*this, "lstm", 3, 3, {.layers = 2}};
  nn::MultiHeadAttention attention{*this, "attention", 4, 2}, other{*this, "other", 4, 2};
  nn::BatchNorm1d norm{*this, "norm", 3}, same{*this, "same", 3};
  Tied() {
    second.weight = first.weight;
    lstm.nets[1].W_x = lstm.nets[0].W_x;
    lstm.nets[1].bias = lstm.nets[0].bias;
    other.query.weight = attention.query.weight;
    same.running_mean = norm.running_mean;
  }
};

}  // namespace

TEST_CASE("a tied weight is saved for PyTorch under each of its names, and loaded from all or some of them") {
  Folder folder;
  Tied saved;
  CHECK(saved.named_parameters(false).size() == saved.named_parameters().size() + 4);
  CHECK(saved.named_buffers(false).size() == saved.named_buffers().size() + 1);
  io::save(folder.file(), saved, {.for_pytorch = true});
  std::map<std::string, Tensor> theirs;
  for (const NamedTensor& named : io::load(folder.file()).tensors) theirs[named.name] = named.tensor;
  CHECK(theirs.at("second.weight").to_vector<float>() == transpose(saved.first.weight).to_vector<float>());
  CHECK(theirs.at("lstm.weight_ih_l1").to_vector<float>() == theirs.at("lstm.weight_ih_l0").to_vector<float>());
  for (const char* name : {"lstm.weight_hh_l1", "lstm.bias_ih_l1", "lstm.bias_hh_l1", "other.in_proj_weight",
                           "other.in_proj_bias", "same.running_mean", "same.running_var", "same.num_batches_tracked"})
    CHECK(theirs.contains(name));
  CHECK(theirs.size() == 30);

  auto load = [&](const std::function<bool(const std::string&)>& has, bool strict = true) {
    std::vector<NamedTensor> given;
    for (const auto& [name, tensor] : theirs)
      if (has(name)) given.push_back({name, tensor});
    Tied loaded;
    io::PassedOver passed = io::load_into(loaded, given, {.strict = strict, .from_pytorch = true});
    CHECK(values_of(loaded) == values_of(saved));
    CHECK(loaded.second.weight.is(loaded.first.weight));
    return passed;
  };
  load([](const std::string&) { return true; });
  load([](const std::string& name) { return name != "second.weight" && name != "same.running_mean"; });
  load([](const std::string& name) { return name != "first.weight" && name != "lstm.weight_ih_l0"; });
  CHECK(load([](const std::string& name) { return name != "first.weight"; }, false).missing.empty());

  std::vector<NamedTensor> all;
  for (const auto& [name, tensor] : theirs) all.push_back({name, tensor});
  io::save_npz(folder.file(), all);
  Tied from_npz;
  io::load_into(from_npz, io::load_npz(folder.file()), {.from_pytorch = true});
  CHECK(values_of(from_npz) == values_of(saved));
}

TEST_CASE("two values for a tied weight are refused, and no value is named once") {
  Tied module;
  auto said = [&](const std::vector<NamedTensor>& given, bool strict) {
    return error_of<io::MisfitError>([&] { io::load_into(module, given, {.strict = strict}); });
  };
  std::vector<NamedTensor> given = module.named_parameters();
  for (const NamedTensor& buffer : module.named_buffers()) given.push_back(buffer);
  io::load_into(module, given, {});
  given.push_back({"second.weight", module.first.weight + 1});
  for (bool strict : {true, false})
    CHECK_THAT(
        said(given, strict),
        contains("in 1 place,") && contains("differs     second.weight  other values than first.weight, which is"));
  given.pop_back();
  std::erase_if(given, [](const NamedTensor& named) { return named.name == "first.weight"; });
  CHECK_THAT(said(given, true), contains("in 1 place,") && contains("missing     first.weight"));
}

TEST_CASE("a file without a mark with only the second name of a square tied weight is refused as either way") {
  Folder folder;
  struct Pair : nn::Module {
    nn::Linear first{*this, "first", 2, 2, {.bias = false}}, second{*this, "second", 2, 2, {.bias = false}};
    Pair() { second.weight = first.weight; }
  } pair;
  io::save(folder.file(), {{"second.weight", ones({2, 2})}});
  CHECK_THAT(error_of<io::MisfitError>([&] { io::load_into(pair, folder.file()); }), contains("does not say whether"));
}

TEST_CASE("one of PyTorch's two biases, or two that do not fit each other, are refused by their names") {
  using Biases = std::vector<NamedTensor>;
  const Biases cases[] = {
      {{"bias_ih_l0", ones({4})}},
      {{"bias_hh_l0", ones({4})}},
      {{"bias_ih_l0", ones({4})}, {"bias_hh_l0", ones({3})}},
      {{"bias_ih_l0", ones({4, 1})}, {"bias_hh_l0", ones({4, 1})}},
      {{"bias_ih_l0", ones({})}, {"bias_hh_l0", ones({})}},
  };
  for (const Biases& biases : cases) {
    nn::LSTM net(1, 1);
    auto before = values_of(net);
    std::vector<NamedTensor> given{{"weight_ih_l0", ones({4, 1})}, {"weight_hh_l0", ones({4, 1})}};
    given.insert(given.end(), biases.begin(), biases.end());
    std::string said = error_of<io::MisfitError>([&] { io::load_into(net, given, {.from_pytorch = true}); });
    CHECK_THAT(said, contains("missing     nets.0.bias"));
    for (const NamedTensor& bias : biases) CHECK_THAT(said, contains("unexpected  " + bias.name));
    CHECK(values_of(net) == before);
  }
}
