#include <reel/io/onnx.h>

#include <reel/batching.h>
#include <reel/reel.h>
#include <reel/testing.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "catch.h"
#include "folder.h"
#include "io/onnx/message.h"

using namespace reel;
using namespace reel_test;

TEST_CASE("scan and loop compute what plain loops do, and tapes record them") {
  Tensor x = randn({5, 3}), w = randn({3});
  w.requires_grad();
  Tape tape({.persistent = true});
  auto [state, outputs] = io::onnx::scan(
      [&](std::span<const Tensor> state, std::span<const Tensor> in) -> io::onnx::ScanStep {
        Tensor next = tanh(state[0] * w + in[0]);
        return {{next}, {next}};
      },
      {zeros({3})}, {x});
  Tensor h = zeros({3});
  for (std::int64_t t = 0; t < 5; ++t) h = tanh(h * w + x(t));
  CHECK(testing::all_close(state[0], h));
  CHECK(outputs[0].shape() == Shape{5, 3});
  Tensor g = tape.gradient(sum(state[0]), w), expected = tape.gradient(sum(h), w);
  CHECK(testing::all_close(g, expected));
  std::vector<Tensor> powers = io::onnx::loop(
      tensor(std::int64_t{4}), [](const Tensor&, std::span<const Tensor> s) { return std::vector<Tensor>{s[0] * 2}; },
      {ones({2})});
  CHECK(powers[0].to_vector<float>() == std::vector<float>{16, 16});
}

TEST_CASE("the example of an exported model writes a file that computes the same") {
  reel_test::InFolder folder;
  nn::Linear model(3, 2);
  Tensor x = randn({2, 4, 3});
#include "examples/io_onnx_1.h"
  Tensor other = randn({5, 1, 3});
  CHECK(testing::all_close(io::onnx::load("model.onnx")(other), model(other)));
}

namespace {

// A file with products, slices, a recurrent layer and a loop.
void save_example(const std::string& file) {
  nn::LSTM lstm(3, 4);
  auto f = [&](const Tensor& x) {
    Tensor y = lstm(x).output;
    auto [state, shown] = io::onnx::scan(
        [](std::span<const Tensor> state, std::span<const Tensor> in) -> io::onnx::ScanStep {
          Tensor next = state[0] + softmax(in[0]);
          return {{next}, {next}};
        },
        {zeros({x.size(1), 4})}, {y});
    return matmul(shown[0], ones({4, 2}));
  };
  io::onnx::save(file, f, {{.name = "x", .example = randn({3, 2, 3}), .axes = {"time", "batch"}}});
}

}  // namespace

TEST_CASE("recurrent models with a weight_dtype are written with rounded weights, and compute the same") {
  Folder folder;
  manual_seed(17);
  std::string file = folder.file("model.onnx");
  for (DType dtype : {bf16, f16}) {
    CAPTURE(name_of(dtype));
    nn::LSTM lstm(3, 40, {.bidirectional = true, .weight_dtype = dtype});
    nn::GRU gru(80, 30, {.weight_dtype = dtype});
    nn::RNN rnn(30, 20, {.weight_dtype = dtype});
    nn::LSTMCell first(20, 10, {.weight_dtype = dtype}), second(10, 10, {.layer_norm = true, .weight_dtype = dtype});
    nn::GRUCell third(10, 10, {.weight_dtype = dtype});
    // Reads one weight that is a parameter, and one that is computed from the input.
    auto f = [&](const Tensor& x) {
      Tensor y = rnn(gru(lstm(x).output).output).output;
      LSTMState a = first(y(0), first.initial_state(2)), b = second(a.h, second.initial_state(2));
      Tensor h = third(b.h, third.initial_state(2));
      Tensor made = matmul(transpose(x(0)), x(0));
      return rnn_cell(x(1), slice(h, 1, 0, 3), {made, slice(slice(third.W_h, 0, 0, 3), 1, 0, 3), {}, dtype});
    };
    io::onnx::save(file, f, {{.name = "x", .example = randn({3, 2, 3}), .axes = {"time"}}});
    Tensor other = randn({5, 2, 3});
    CHECK(testing::all_close(io::onnx::load(file)(other), f(other), {.relative = 1e-5, .absolute = 1e-6}));
  }
}

namespace {

// The names that the nodes and outputs of a graph read; `made`: those of arrays and results, of which one of each node is.
void list_names(const detail::OnnxGraph& graph, std::set<std::string>& read,
                std::vector<std::vector<std::string>>& made) {
  for (const detail::OnnxValue& output : graph.outputs) read.insert(output.name);
  for (const detail::OnnxTensor& array : graph.initialisers) made.push_back({array.name});
  for (const detail::OnnxNode& node : graph.nodes) {
    read.insert(node.inputs.begin(), node.inputs.end());
    made.push_back(node.outputs);
    for (const detail::OnnxAttribute& attribute : node.attributes)
      if (attribute.graph) list_names(*attribute.graph, read, made);
  }
}

}  // namespace

TEST_CASE("a file has no array and no node that leads to no output") {
  Folder folder;
  std::string file = folder.file("model.onnx");
  nn::LSTM lstm(4, 3, {.layers = 2, .bidirectional = true});
  nn::MultiHeadAttention attention(4, 2);
  nn::Linear linear(4, 4);
  attention.eval();
  std::vector<std::function<void()>> saves{[&] { save_example(file); }};
  for (const std::function<Tensor(const Tensor&)>& f : std::vector<std::function<Tensor(const Tensor&)>>{
           [&](const Tensor& x) { return lstm(x).output; }, [&](const Tensor& x) { return attention(x); },
           [&](const Tensor& x) {
             return split(linear(x), 2, -1)[0] + sum(ones({2, 2}) * 3 + io::onnx::size_of(x, 0));
           }})
    saves.push_back([&, f] {
      io::onnx::save(file, f, {{.name = "x", .example = randn({5, 3, 4}), .axes = {"time", "batch"}}});
    });
  for (const auto& save : saves) {
    save();
    std::string bytes = bytes_of(file);
    detail::OnnxModel model;
    REQUIRE(detail::read_onnx(std::as_bytes(std::span(bytes)), model).empty());
    std::set<std::string> read;
    std::vector<std::vector<std::string>> made;
    list_names(model.graph, read, made);
    REQUIRE(made.size() > 5);
    for (const std::vector<std::string>& names : made) {
      CAPTURE(names);
      CHECK(std::ranges::any_of(names, [&](const std::string& name) { return read.contains(name); }));
    }
  }
}

TEST_CASE("comparisons are written in types that runtimes compare") {
  Folder folder;
  std::string file = folder.file("model.onnx");
  using Compare = std::function<Tensor(const Tensor&, const Tensor&)>;
  std::vector<std::pair<const char*, Compare>> comparisons{
      {"Equal", [](const Tensor& x, const Tensor& y) { return x == y; }},
      {"Equal", [](const Tensor& x, const Tensor& y) { return x != y; }},
      {"Less", [](const Tensor& x, const Tensor& y) { return x < y; }},
      {"GreaterOrEqual", [](const Tensor& x, const Tensor& y) { return x >= y; }}};
  for (const auto& [type, compare] : comparisons)
    for (DType dtype : {boolean, u8, i8, i16, i32, i64, f32}) {
      bool is_equality = std::string(type) == "Equal";
      bool is_cast = is_equality ? dtype == u8 || dtype == i8 || dtype == i16 : dtype == boolean;
      CAPTURE(type, name_of(dtype));
      Tensor x = to(tensor({0, 1, 1}), dtype), y = to(tensor({1, 0, 1}), dtype);
      io::onnx::save(file, compare, {{.name = "x", .example = x}, {.name = "y", .example = y}});
      CHECK(io::onnx::load(file)(std::vector<Tensor>{x, y})[0].to_vector<bool>() == compare(x, y).to_vector<bool>());
      std::string bytes = bytes_of(file);
      detail::OnnxModel model;
      REQUIRE(detail::read_onnx(std::as_bytes(std::span(bytes)), model).empty());
      auto count = [&](const char* wanted) {
        return std::ranges::count(model.graph.nodes, wanted, &detail::OnnxNode::type);
      };
      CHECK(count(type) == 1);
      CHECK(count("Cast") == (is_cast ? 2 : 0));
    }
}

TEST_CASE("nodes are those that runtimes have, and sizes that follow from others are not computed") {
  Folder folder;
  std::string file = folder.file("model.onnx");
  Tensor bools = tensor({{true, false, true, false}, {true, true, false, false}}), numbers = rand({2, 3, 4});
  struct Written {
    int line;
    Tensor example;
    std::function<Tensor(const Tensor&)> f;
    std::vector<std::string> types;
  };
  std::vector<Written> functions{
      {__LINE__,
       bools,
       [](const Tensor& x) { return maximum(x, transpose(transpose(x))); },
       {"Transpose", "Transpose", "Or", "Identity"}},
      {__LINE__,
       bools,
       [](const Tensor& x) { return minimum(x, transpose(transpose(x))); },
       {"Transpose", "Transpose", "And", "Identity"}},
      {__LINE__,
       numbers,
       [](const Tensor& x) {
         return reshape(x, {x.size(0), 12});
       },
       {"Reshape", "Identity"}},
      {__LINE__,
       numbers,
       [](const Tensor& x) {
         return reshape(x, {x.size(0) * 3, 4});
       },
       {"Reshape", "Identity"}},
      {__LINE__,
       numbers,
       [](const Tensor& x) {
         return reshape(x, {4, x.size(0), 3});
       },
       {"Reshape", "Identity"}},
  };
  for (const auto& [line, example, f, types] : functions) {
    CAPTURE(line);
    io::onnx::save(file, f, {{.name = "x", .example = example, .axes = {"batch"}}});
    std::string bytes = bytes_of(file);
    detail::OnnxModel model;
    REQUIRE(detail::read_onnx(std::as_bytes(std::span(bytes)), model).empty());
    std::vector<std::string> written;
    for (const detail::OnnxNode& node : model.graph.nodes) written.push_back(node.type);
    CHECK(written == types);
    Tensor other = concat({example, example, example});
    CHECK(all(io::onnx::load(file)(other) == f(other)).item<bool>());
  }
}

TEST_CASE("a file that is cut off anywhere is refused with a sentence, or still computes") {
  Folder folder;
  std::string whole = folder.file("whole.onnx"), part = folder.file("part.onnx");
  save_example(whole);
  std::string bytes = bytes_of(whole);
  Tensor x = randn({2, 2, 3});
  CHECK(io::onnx::load(whole)(x).shape() == Shape{2, 2, 2});
  int refused = 0;
  for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 150) {
    put_bytes(part, bytes.substr(0, size));
    try {
      static_cast<void>(io::onnx::load(part)(x));
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("a file with changed bytes is refused with a sentence, or computes something") {
  Folder folder;
  std::string whole = folder.file("whole.onnx"), other = folder.file("other.onnx");
  save_example(whole);
  const std::string bytes = bytes_of(whole);
  std::mt19937_64 random(11);
  CAPTURE(std::uint64_t{11});
  Tensor x = randn({2, 2, 3});
  int refused = 0, rounds = std::getenv("REEL_ENDURANCE") ? 20000 : 300;
  for (int round = 0; round < rounds; ++round) {
    std::string changed = bytes;
    for (std::uint64_t i = 0; i < 1 + random() % 4; ++i)
      changed[random() % changed.size()] = static_cast<char>(random());
    put_bytes(other, changed);
    try {
      static_cast<void>(io::onnx::load(other)(x));
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > rounds / 10);
}

TEST_CASE("a model says what its inputs and outputs are, and refuses inputs that do not fit") {
  Folder folder;
  std::string file = folder.file("model.onnx");
  io::onnx::save(file,
                 [](const Tensor& x, const Tensor& y) {
                   return std::vector<Tensor>{x + y, x - y};
                 },
                 {{.name = "x", .example = ones({2, 3}), .axes = {"batch"}}, {.name = "y", .example = ones({3})}},
                 {.outputs = {"sum", "difference"}});
  io::onnx::Model model = io::onnx::load(file);
  CHECK(model.inputs() == std::vector<std::string>{"x", "y"});
  CHECK(model.outputs() == std::vector<std::string>{"sum", "difference"});
  std::vector<Tensor> given{ones({5, 3}), ones({3})};
  CHECK(model(given)[1].to_vector<float>() == std::vector<float>(15, 0));
  auto said = [&](std::vector<Tensor> x) { return error_of<Error>([&] { static_cast<void>(model(x)); }); };
  CHECK_THAT(said({ones({5, 3})}), contains("has 2 inputs"));
  CHECK_THAT(said({ones({5, 4}), ones({3})}), contains("not (batch, 3)"));
  CHECK_THAT(said({ones({5, 3}, {.dtype = f64}), ones({3})}), contains("dtype"));
  CHECK_THAT(error_of<Error>([&] { static_cast<void>(io::onnx::load(folder.file("none.onnx"))); }),
             contains("none.onnx"));
}

TEST_CASE("an axis without a size and a name may have any size") {
  Folder folder;
  std::string file = folder.file("model.onnx");
  io::onnx::save(file, [](const Tensor& x) { return 2 * x; },
                 {{.name = "x", .example = ones({2, 3}), .axes = {"rows"}}});
  std::ifstream from(file, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(from), {}};
  // Field 2 of an axis is its name, field 3 a note.
  const std::string name = "\x12\x04rows", note = "\x1a\x04rows";
  std::size_t found = 0;
  for (std::size_t at = 0; (at = bytes.find(name, at)) != bytes.npos; ++found) bytes.replace(at, name.size(), note);
  REQUIRE(found == 2);
  std::ofstream(file, std::ios::binary) << bytes;
  io::onnx::Model model = io::onnx::load(file);
  for (std::int64_t rows : {0, 1, 5}) CHECK(model(std::vector<Tensor>{ones({rows, 3})})[0].shape() == Shape{rows, 3});
  CHECK_THAT(error_of<Error>([&] { static_cast<void>(model(ones({5, 4}))); }), contains("not (any, 3)"));
}

TEST_CASE("a number beside halves is written in f32, and the result is rounded once") {
  Folder folder;
  std::string file = folder.file("model.onnx");
  Generator generator(29);
  using Function = Tensor (*)(const Tensor& x);
  constexpr Function functions[] = {
      [](const Tensor& x) { return x * 0.3; },
      [](const Tensor& x) { return 1e5 / x; },
      [](const Tensor& x) { return (1 - x) * -1e9; },
      [](const Tensor& x) { return x / 1e-8 + 0.1; },
      [](const Tensor& x) { return tanh(x * 0.3 - x) * 65536; },
      [](const Tensor& x) { return pow(x, 0.3); },
      [](const Tensor& x) { return atan2(x, 0.3); },
      [](const Tensor& x) { return logaddexp(x, 0.3); },
      [](const Tensor& x) { return floor_divide(x, 0.3); },
      [](const Tensor& x) { return lerp(x, square(x), 0.3); },
      [](const Tensor& x) { return leaky_relu(x - 1, {.slope = 0.3}); },
      [](const Tensor& x) { return elu(x - 1, {.alpha = 1e5}); },
      [](const Tensor& x) { return x * full({}, 0.3, {.dtype = f32}); },
  };
  for (DType dtype : {bf16, f16})
    for (std::size_t i = 0; i < std::size(functions); ++i) {
      CAPTURE(name_of(dtype), i);
      Tensor x = to(rand({50}, {.generator = &generator}) + 0.5, dtype);
      io::onnx::save(file, functions[i], {{.name = "x", .example = copy(x)}});
      std::ifstream written(file, std::ios::binary);
      CHECK_THAT(std::string(std::istreambuf_iterator<char>(written), {}), contains("Cast"));
      Tensor found = io::onnx::load(file)(x), expected = functions[i](x);
      REQUIRE(found.dtype() == dtype);
      REQUIRE(allclose(isinf(found), isinf(expected)));
      // ONNX's formulas are others in f32, whose difference can change a rounding to the half.
      Tensor apart = abs(to(found, f64) - to(expected, f64)), size = abs(to(expected, f64));
      CHECK(all(logical_or(isinf(expected), apart <= size * (dtype == bf16 ? 0x1p-7 : 0x1p-10))).item<bool>());
      CHECK(mean(to(found == expected, f64)).item() >= 0.96);
    }
}

TEST_CASE("masked softmaxes of a file compute what they do without one, at the ends of their dtype, too") {
  Folder folder;
  std::string file = folder.file("model.onnx");
  constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
  Tensor mask = tensor({{1, 1, 0}, {1, 0, 0}}) > 0;
  for (DType dtype : {f16, f32, f64})
    for (double least : {-1.0, -7e4, -1e38, -2e38, -1e200, minus_infinity})
      for (bool logarithm : {false, true}) {
        bool is_number = dtype == f16 ? least >= -65504 : dtype == f64 || least >= -3e38;
        if (!is_number && least != minus_infinity) continue;
        CAPTURE(name_of(dtype), least, logarithm);
        auto f = [&](std::span<const Tensor> x) {
          return std::vector<Tensor>{logarithm ? log_softmax(x[0], -1, {.mask = x[1]})
                                               : softmax(x[0], -1, {.mask = x[1]})};
        };
        // Scores far below those that a mask hides.
        Tensor x = tensor({{least, least, 0}, {least, 0, 1}}, {.dtype = dtype});
        io::onnx::save(file, f, {{.name = "x", .example = x}, {.name = "mask", .example = mask}});
        std::vector<Tensor> given{x, mask};
        testing::Closeness close =
            testing::all_close(io::onnx::load(file)(given).at(0), f(given)[0], {.relative = 1e-3, .absolute = 1e-3});
        INFO(close.difference());
        CHECK(static_cast<bool>(close));
      }
}

TEST_CASE("scan, loop and size_of refuse what does not fit, exported or not") {
  using Tensors = std::span<const Tensor>;
  auto scan = [](std::vector<Tensor> state, std::vector<Tensor> inputs, auto step) {
    return [=] {
      io::onnx::scan([&](Tensors s, Tensors in) -> io::onnx::ScanStep { return step(s, in); }, state, inputs);
    };
  };
  auto loop = [](const Tensor& count, std::vector<Tensor> next) {
    return [=] { io::onnx::loop(count, [&](const Tensor&, Tensors) { return next; }, {ones({2})}); };
  };
  auto size_of = [](const Tensor& x, int axis) { return [=] { io::onnx::size_of(x, axis); }; };
  using Step = io::onnx::ScanStep;
  auto sum_of = [](Tensors s, Tensors in) { return Step{{s[0] + in[0]}}; };
  Tensor x = ones({3, 2}), two = ones({2}), five = tensor(std::int64_t{5});
  int t = 0;
  auto more_each_step = [&t](Tensors s, Tensors in) { return Step{{s[0] + in[0]}, std::vector<Tensor>(++t, in[0])}; };
  auto fewer_each_step = [&t](Tensors s, Tensors in) { return Step{{s[0]}, std::vector<Tensor>(3 - t++, in[0])}; };
  struct Case {
    int line;
    const char* said;
    std::function<void()> f;
  };
  // clang-format off
  const std::vector<Case> cases{
      {__LINE__, "there are no inputs whose axis 0", scan({two}, {}, sum_of)},
      {__LINE__, "do not have one number of steps", scan({two}, {ones({})}, sum_of)},
      {__LINE__, "do not have one number of steps", scan({two}, {ones({0, 2})}, sum_of)},
      {__LINE__, "do not have one number of steps", scan({two}, {x, ones({2, 2})}, sum_of)},
      {__LINE__, "step 1 returns 2 outputs, and step 0 1", scan({two}, {x}, more_each_step)},
      {__LINE__, "step 1 returns 2 outputs, and step 0 3", scan({two}, {x}, fewer_each_step)},
      {__LINE__, "state", scan({two}, {x}, [](Tensors, Tensors) { return Step{}; })},
      {__LINE__, "state", scan({two}, {x}, [](Tensors s, Tensors) { return Step{{s[0], s[0]}}; })},
      {__LINE__, "state", scan({two}, {x}, [](Tensors, Tensors) { return Step{{ones({3})}}; })},
      {__LINE__, "state", scan({two}, {x}, [](Tensors, Tensors) { return Step{{ones({2}, {.dtype = f64})}}; })},
      {__LINE__, "state", scan({two}, {x}, [](Tensors, Tensors) { return Step{{Tensor()}}; })},
      {__LINE__, "not a tensor () of i64", loop(ones({}), {two})},
      {__LINE__, "not a tensor () of i64", loop(tensor({std::int64_t{5}}), {two})},
      {__LINE__, "state", loop(five, {})},
      {__LINE__, "state", loop(five, {ones({3})})},
      {__LINE__, "the tensor is undefined", size_of(Tensor(), 0)},
      {__LINE__, "has no axis 2", size_of(x, 2)},
      {__LINE__, "has no axis -3", size_of(x, -3)},
  };
  // clang-format on
  for (const auto& [line, sentence, f] : cases) {
    t = 0;
    std::string said = error_of<Error>(f);
    CAPTURE(line, said);
    CHECK_THAT(said, contains(sentence));
    CHECK_THAT(said, contains("onnx_test.cpp:"));
  }
  for (int axis : {0, 1, -1, -2}) CHECK(io::onnx::size_of(x, axis).item() == (axis % 2 == 0 ? 3 : 2));
  CHECK(io::onnx::loop(tensor(std::int64_t{0}), [](const Tensor&, Tensors) { return std::vector<Tensor>(); }, {two})[0]
            .to_vector<float>() == std::vector<float>{1, 1});
}

TEST_CASE("integers beyond 2^53 in a shape of named axes are written whole") {
  Folder folder;
  std::string file = folder.file("model.onnx");
  constexpr std::int64_t odd = (std::int64_t{1} << 53) + 1;
  auto f = [](const Tensor& x) { return to(x, i64) + full({x.size(0), 2}, odd, {.dtype = i64}); };
  io::onnx::save(file, f, {{.name = "x", .example = ones({3, 2}), .axes = {"batch"}}});
  CHECK(io::onnx::load(file)(zeros({1, 2})).to_vector<std::int64_t>() == std::vector<std::int64_t>{odd, odd});
}

TEST_CASE("normalised halves are written in f32 and rounded, and layers of f64 with all their digits") {
  Folder folder;
  manual_seed(31);
  std::string file = folder.file("model.onnx");
  Tensor w = rand({4}) + 0.5, b = rand({4}), mean = rand({4}), variance = rand({4}) + 0.5;
  nn::LSTM lstm(4, 3, {.dtype = f64});
  nn::GRU gru(3, 3, {.dtype = f64});
  nn::RNN rnn(3, 2, {.dtype = f64});
  nn::LSTMCell cell(2, 2, {.dtype = f64});
  using Function = std::function<Tensor(const Tensor&)>;
  const std::vector<Function> of_halves{
      [&](const Tensor& x) { return layer_norm(x, {4}, w, b); },
      [&](const Tensor& x) { return rms_norm(x, {4}, w); },
      [&](const Tensor& x) { return group_norm(x, 2, w, b); },
      [&](const Tensor& x) { return batch_norm(x, w, b, copy(mean), copy(variance), {.training = true}); },
      [&](const Tensor& x) { return batch_norm(x, w, b, mean, variance, {.training = false}); },
  };
  const Function of_doubles = [&](const Tensor& x) {
    Tensor y = rnn(gru(lstm(layer_norm(x, {4})).output).output).output;
    return cell(y(0), cell.initial_state(3)).h;
  };
  auto check = [&](const Function& f, const Tensor& example, const Tensor& other) {
    io::onnx::save(file, f, {{.name = "x", .example = example}});
    Tensor expected = f(other);
    testing::CloseOptions close;
    if (other.dtype() == f64) close = {.relative = 1e-12, .absolute = 1e-12};
    CHECK(testing::all_close(io::onnx::load(file)(other), expected, close));
  };
  for (DType dtype : {bf16, f16})
    for (std::size_t i = 0; i < of_halves.size(); ++i) {
      CAPTURE(name_of(dtype), i);
      check(of_halves[i], to(rand({3, 4}), dtype), to(rand({3, 4}), dtype));
    }
  check(of_doubles, rand({2, 3, 4}, {.dtype = f64}), rand({2, 3, 4}, {.dtype = f64}));
}

TEST_CASE(
    "ops of constants alone are computed when a file is written, and those of parameters have nodes where ONNX has") {
  Folder folder;
  std::string file = folder.file("model.onnx");
  struct Net : nn::Module {
    nn::Linear first{*this, "first", 2, 2}, second{*this, "second", 2, 2};
  } net;
  Tensor two = ones({2}) * 2;
  // The types of the nodes and the names of the arrays, or the refusal.
  auto written = [&](const std::function<Tensor(const Tensor&)>& f) {
    std::string said = error_of<Error>([&] {
      io::onnx::save(file, f, {{.name = "x", .example = ones({3, 2}), .axes = {"batch"}}});
    });
    if (!said.empty()) return said;
    Tensor other = rand({5, 2});
    CHECK(testing::all_close(io::onnx::load(file)(other), f(other)));
    std::string bytes = bytes_of(file), found;
    detail::OnnxModel model;
    REQUIRE(detail::read_onnx(std::as_bytes(std::span(bytes)), model).empty());
    for (const detail::OnnxNode& node : model.graph.nodes) found += node.type + " ";
    std::set<std::string> names;
    for (const detail::OnnxTensor& array : model.graph.initialisers) names.insert(array.name);
    for (const std::string& name : names) found += name + " ";
    return found;
  };
  CHECK(written([&](const Tensor& x) { return x + digamma(two); }) == "Add Identity constant ");
  CHECK(written([&](const Tensor& x) { return x * tanh(net.first.weight(0)); }).find("Tanh") != std::string::npos);
  CHECK(written([&](const Tensor& x) { return x + digamma(net.first.bias); }) == "Add Identity constant ");
  CHECK_THAT(written([&](const Tensor& x) { return x + digamma(full({2}, x.size(0))); }),
             contains("digamma cannot be exported"));
  CHECK_THAT(written([&](const Tensor& x) { return digamma(x) + two; }), contains("digamma cannot be exported"));
  // The name of a parameter is that in the outermost module, wherever it is used after a call.
  std::string names =
      written([&](const Tensor& x) { return matmul(net.first(x), net.second.weight) + net.second.bias; });
  for (const char* name : {" first.weight ", " first.bias ", " second.weight ", " second.bias "})
    CHECK_THAT(names, contains(name));
}
