#include <cstring>
#include <ctime>
#include <limits>

#include <reel/io/onnx.h>
#include <reel/reel.h>

#include "catch.h"
#include "folder.h"
#include "io/onnx/message.h"

using namespace reel;
using detail::OnnxAttribute;
using detail::OnnxGraph;
using detail::OnnxModel;
using detail::OnnxTensor;
using detail::OnnxType;
using namespace reel_test;

namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

std::size_t bytes_of(OnnxType type) { return type == OnnxType::i64 ? 8 : 4; }

// An array of zeros.
OnnxTensor zeros_of(const std::string& name, OnnxType type, const std::vector<std::int64_t>& dims) {
  std::int64_t count = 1;
  for (std::int64_t size : dims) count = size == 0 || count == 0 ? 0 : count * size;
  return {.name = name,
          .type = type,
          .dims = dims,
          .bytes = std::vector<std::byte>(static_cast<std::size_t>(count) * bytes_of(type))};
}

OnnxTensor integer_tensor(const std::string& name, std::int64_t number) {
  OnnxTensor tensor = zeros_of(name, OnnxType::i64, {});
  std::memcpy(tensor.bytes.data(), &number, sizeof number);
  return tensor;
}

OnnxAttribute integer_of(const std::string& name, std::int64_t integer) {
  OnnxAttribute attribute;
  attribute.name = name;
  attribute.integer = integer;
  return attribute;
}

OnnxAttribute integers_of(const std::string& name, const std::vector<std::int64_t>& integers) {
  OnnxAttribute attribute;
  attribute.name = name;
  attribute.kind = OnnxAttribute::Kind::integers;
  attribute.integers = integers;
  return attribute;
}

// A model of one node, whose operands are constants.
OnnxModel model_of(const std::string& type, const std::vector<OnnxTensor>& operands,
                   const std::vector<OnnxAttribute>& attributes) {
  OnnxModel model{.ir_version = 8, .opset = 17, .producer = "test", .producer_version = "", .graph = {}};
  detail::OnnxNode node{
      .type = type, .name = "n", .inputs = {}, .outputs = {"y"}, .attributes = attributes, .note = ""};
  for (const OnnxTensor& operand : operands) node.inputs.push_back(operand.name);
  model.graph.nodes = {node};
  model.graph.initialisers = operands;
  model.graph.outputs = {{.name = "y", .type = OnnxType::f32, .has_axes = false, .axes = {}}};
  return model;
}

// The error of loading and running a model; empty if it runs.
std::string said_by(const OnnxModel& model) {
  Folder folder;
  detail::WrittenModel written = detail::onnx_bytes(model);
  REQUIRE(written.problem.empty());
  put_bytes(folder.file("model.onnx"), written.bytes);
  return error_of<Error>([&] { io::onnx::load(folder.file("model.onnx"))(std::vector<Tensor>()); });
}

// A field of a protobuf message whose value is bytes, or a whole number.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string field(int number, int value) {
  return std::string{static_cast<char>(number << 3), static_cast<char>(value)};
}

}  // namespace

TEST_CASE("sizes and numbers of an ONNX file that overflow are refused") {
  constexpr std::int64_t quarter = std::int64_t{1} << 62;
  // 4 · 2⁶² is 0 in 64 bits, as is the number of W's rows.
  CHECK_THAT(said_by(model_of("LSTM",
                              {zeros_of("x", OnnxType::f32, {1, 1, 3}), zeros_of("W", OnnxType::f32, {1, 0, 3}),
                               zeros_of("R", OnnxType::f32, {1, 0, quarter})},
                              {integer_of("hidden_size", quarter)})),
             contains("its weights do not fit"));
  auto range = [](std::int64_t start, std::int64_t stop, std::int64_t step) {
    return said_by(
        model_of("Range", {integer_tensor("a", start), integer_tensor("b", stop), integer_tensor("c", step)}, {}));
  };
  CHECK(range(3, -3, -2).empty());
  CHECK_THAT(range(0, -largest - 1, -1), contains("its range is too large"));
  CHECK_THAT(range(1, -largest - 1, -1), contains("its range is too large"));
  CHECK_THAT(range(0, largest, 1), contains("elements"));
  CHECK(range(0, largest, largest - 1).empty());
}

TEST_CASE("windows of an ONNX file that would enlarge an operand beyond measure are refused before it is computed") {
  auto conv = [](const char* type, const std::vector<OnnxAttribute>& attributes) {
    return said_by(model_of(
        type, {zeros_of("x", OnnxType::f32, {1, 1, 2, 2}), zeros_of("w", OnnxType::f32, {1, 1, 1, 1})}, attributes));
  };
  for (std::int64_t size : {std::int64_t{1} << 15, std::int64_t{1} << 40, largest}) {
    INFO(size);
    for (const char* type : {"Conv", "MaxPool"})
      CHECK_FALSE(
          conv(type, {integers_of("pads", {size, size, size, size}), integers_of("kernel_shape", {1, 1})}).empty());
    for (const std::vector<std::int64_t>& pads :
         {std::vector{size, size, size, size}, {size, size, 0, 0}, {0, 0, size, size}})
      CHECK_THAT(conv("Conv", {integers_of("pads", pads)}), contains("its result would be too large"));
    for (const char* enlarges : {"strides", "output_padding"})
      CHECK_THAT(conv("ConvTranspose", {integers_of(enlarges, {size, size})}),
                 contains("its result would be too large"));
  }
}

TEST_CASE("initialisers of an ONNX file have the bytes that their sizes need, in the file itself") {
  OnnxModel model = model_of("Identity", {zeros_of("x", OnnxType::f32, {0, 3})}, {});
  CHECK(said_by(model).empty());
  auto with_dims = [&](const std::vector<std::int64_t>& dims) {
    model.graph.initialisers[0].dims = dims;
    return said_by(model);
  };
  CHECK_THAT(with_dims({largest, largest}), contains("of a shape that no tensor has"));
  CHECK_THAT(with_dims({-1}), contains("of a shape that no tensor has"));
  CHECK_THAT(with_dims({std::int64_t{1} << 40}), contains("has 0 bytes for the 1099511627776 elements"));
  CHECK_FALSE(with_dims({0, largest, largest}).empty());
  std::string elsewhere = field(1, 2) + field(2, 1) + field(8, std::string("x")) +
                          field(13, field(1, std::string("location")) + field(2, std::string("/etc/passwd"))) +
                          field(14, 1);
  Folder folder;
  put_bytes(folder.file("m"), field(1, 8) + field(8, field(2, 17)) + field(7, field(5, elsewhere)));
  CHECK_THAT(error_of<Error>([&] { io::onnx::load(folder.file("m")); }),
             contains("has the elements of 'x' in another file"));
}

TEST_CASE("an ONNX file with many names and many loops is checked in a time that grows as the file") {
  constexpr int count = 20'000;
  OnnxModel model = model_of("Identity", {integer_tensor("n", 1)}, {});
  for (int i = 0; i < count; ++i) model.graph.initialisers.push_back(integer_tensor("n" + std::to_string(i), i));
  OnnxAttribute attribute;
  attribute.name = "body";
  attribute.kind = OnnxAttribute::Kind::graph;
  attribute.graph = std::make_shared<OnnxGraph>();
  attribute.graph->outputs = {{.name = "n", .type = OnnxType::i64, .has_axes = false, .axes = {}}};
  for (int i = 0; i < count; ++i)
    model.graph.nodes.push_back(
        {.type = "Loop", .name = "", .inputs = {"n"}, .outputs = {}, .attributes = {attribute}, .note = ""});
  model.graph.outputs = {{.name = "missing", .type = OnnxType::f32, .has_axes = false, .axes = {}}};
  std::clock_t begin = std::clock();
  CHECK_THAT(said_by(model), contains("does not compute its output 'missing'"));
  CHECK(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC < 5);
}
