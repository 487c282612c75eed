#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "onnx_nodes.h"

// Files as bytes of protobuf messages, with fields that reel never writes.

using namespace reel_test;

namespace {

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value > 127; value >>= 7) bytes.push_back(static_cast<char>(value | 128));
  return bytes + static_cast<char>(value);
}
std::string field(unsigned number, std::int64_t value) {
  return varint(number << 3) + varint(static_cast<std::uint64_t>(value));
}
std::string field(unsigned number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string field(unsigned number, const char* text) { return field(number, std::string(text)); }
// The bytes of numbers; the memory of a little-endian machine has them in protobuf's order.
template <class T>
std::string bytes_of_all(std::initializer_list<T> values) {
  std::string bytes;
  for (T value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}
std::string varints(std::initializer_list<std::int64_t> values) {
  std::string bytes;
  for (std::int64_t value : values) bytes += varint(static_cast<std::uint64_t>(value));
  return bytes;
}

// Fields of onnx.proto.
std::string operators(std::int64_t version, const char* domain = "") {
  return field(8, field(1, domain) + field(2, version));
}
std::string array(std::int64_t type, std::initializer_list<std::int64_t> dims, const std::string& elements) {
  std::string sizes;
  for (std::int64_t size : dims) sizes += field(1, size);
  return field(5, sizes + field(2, type) + field(8, "c") + elements);
}
std::string node(const char* type, const char* in, const char* out, const std::string& more = "") {
  return field(1, field(1, in) + field(2, out) + field(3, "n") + field(4, type) + more);
}
std::string output(const char* name) { return field(12, field(1, name)); }
std::string model(const std::string& graph, const std::string& more = operators(17)) {
  return field(1, 8) + more + field(7, graph);
}

std::vector<Tensor> results_of(const std::string& bytes) {
  Folder folder;
  put_bytes(folder.file("m"), bytes);
  return io::onnx::load(folder.file("m"))(std::vector<Tensor>());
}

std::string refusal(const std::string& bytes) {
  return error_of<Error>([&] { results_of(bytes); });
}

}  // namespace

TEST_CASE("an ONNX file may have elements as bytes, or as numbers of their type or of a wider one") {
  struct Case {
    int line;
    std::string array;
    Tensor elements;
  };
  // clang-format off
  const std::vector<Case> cases{
      {__LINE__, array(1, {2}, field(9, bytes_of_all({1.5f, -2.f}))), f({1.5, -2})},
      {__LINE__, array(1, {2, 1}, field(4, bytes_of_all({1.5f, -2.f}))), f({{1.5}, {-2}})},
      {__LINE__, array(11, {1}, field(10, bytes_of_all({0.1}))), tensor({0.1})},
      {__LINE__, array(7, {2}, field(7, varints({-1, 1LL << 40}))), n({-1, 1LL << 40})},
      {__LINE__, array(6, {2}, field(5, varints({-7, 7}))), tensor({-7, 7})},
      {__LINE__, array(5, {2}, field(5, varints({-7, 300}))), tensor({-7, 300}, {.dtype = i16})},
      {__LINE__, array(3, {2}, field(5, varints({-7, 7}))), tensor({-7, 7}, {.dtype = i8})},
      {__LINE__, array(2, {2}, field(5, varints({200, 7}))), tensor({200, 7}, {.dtype = u8})},
      {__LINE__, array(9, {2}, field(5, varints({1, 0}))), tensor({true, false})},
      {__LINE__, array(10, {1}, field(5, varints({0x3c00}))), tensor({1}, {.dtype = f16})},
      {__LINE__, array(16, {1}, field(5, varints({0x3f80}))), tensor({1}, {.dtype = bf16})},
      {__LINE__, array(16, {1}, field(9, std::string("\x80\x3f"))), tensor({1}, {.dtype = bf16})},
      {__LINE__, array(7, {}, field(7, varints({3}))), n(3)},
      {__LINE__, array(1, {0, 3}, ""), zeros({0, 3})},
      {__LINE__, array(1, {0}, field(9, "")), zeros({0})},
  };
  // clang-format on
  for (const Case& one : cases) {
    CAPTURE(one.line);
    std::vector<Tensor> found = results_of(model(one.array + output("c")));
    REQUIRE(found.size() == 1);
    CHECK(testing::all_close(found[0], one.elements, {.relative = 0, .absolute = 0}));
  }
}

TEST_CASE("bools of an ONNX file are 0 or 1, whatever its bytes are") {
  for (const std::string& elements : {field(9, std::string("\x07\0\x80\xff", 4)), field(5, varints({7, 0, 256, -1}))}) {
    Tensor found = results_of(model(array(9, {4}, elements) + output("c")))[0];
    for (int i = 0; i < 4; ++i) CHECK(static_cast<const unsigned char*>(found.body().data)[i] == (i == 1 ? 0 : 1));
  }
}

TEST_CASE("attributes of each kind come back from the bytes of a model") {
  using Kind = detail::OnnxAttribute::Kind;
  auto graph = std::make_shared<detail::OnnxGraph>();
  graph->outputs.push_back({.name = "g", .type = detail::OnnxType::f32, .has_axes = false, .axes = {}});
  std::vector<detail::OnnxAttribute> attributes;
  auto add = [&](const char* name, Kind kind, auto set) {
    set(attributes.emplace_back());
    attributes.back().name = name;
    attributes.back().kind = kind;
  };
  add("integer", Kind::integer, [](auto& to) { to.integer = -7; });
  add("number", Kind::number, [](auto& to) { to.number = 0.5f; });
  add("text", Kind::text, [](auto& to) { to.text = "words"; });
  add("integers", Kind::integers, [](auto& to) { to.integers = {3, -4}; });
  add("numbers", Kind::numbers, [](auto& to) { to.numbers = {0.25f, -2}; });
  add("texts", Kind::texts, [](auto& to) { to.texts = {"a", "", "b"}; });
  add("tensor", Kind::tensor, [&](auto& to) {
    to.tensor = std::make_shared<detail::OnnxTensor>(io::onnx::onnx_tensor("t", f({1, 2})));
  });
  add("graph", Kind::graph, [&](auto& to) { to.graph = graph; });
  detail::OnnxModel model{.ir_version = 8, .opset = 17, .producer = "test", .producer_version = "", .graph = {}}, read;
  model.graph.nodes = {{.type = "T", .name = "n", .inputs = {}, .outputs = {}, .attributes = attributes, .note = ""}};
  detail::WrittenModel written = detail::onnx_bytes(model);
  REQUIRE(written.problem.empty());
  REQUIRE(detail::read_onnx(std::as_bytes(std::span(written.bytes)), read).empty());
  REQUIRE(read.graph.nodes.size() == 1);
  REQUIRE(read.graph.nodes[0].attributes.size() == attributes.size());
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    const detail::OnnxAttribute &one = attributes[i], &other = read.graph.nodes[0].attributes[i];
    CAPTURE(one.name);
    CHECK(other.name == one.name);
    CHECK(other.kind == one.kind);
    CHECK(other.integer == one.integer);
    CHECK(other.number == one.number);
    CHECK(other.text == one.text);
    CHECK(other.integers == one.integers);
    CHECK(other.numbers == one.numbers);
    CHECK(other.texts == one.texts);
    REQUIRE((other.tensor != nullptr) == (one.tensor != nullptr));
    if (one.tensor) CHECK(other.tensor->bytes == one.tensor->bytes);
    REQUIRE((other.graph != nullptr) == (one.graph != nullptr));
    if (one.graph) CHECK(other.graph->outputs[0].name == "g");
  }
}

TEST_CASE("an ONNX file with what reel does not read is refused by what it is") {
  std::string one = field(9, bytes_of_all({1.f})), c = array(1, {1}, one), same = node("Identity", "c", "y"),
              good = c + same + output("y"), many_axes;
  for (int i = 0; i < 9; ++i) many_axes += field(1, 1);
  auto attribute_of = [&](std::int64_t kind, const std::string& value) {
    return model(c + node("Identity", "c", "y", field(5, field(1, "a") + field(20, kind) + value)) + output("y"));
  };
  // A body within a body.
  auto nested = [&](int depth) {
    std::string graph = output("c");
    for (int i = 0; i < depth; ++i)
      graph = node("Identity", "c", "u", field(5, field(1, "a") + field(20, 5) + field(6, graph))) + output("c");
    return model(c + graph);
  };
  CHECK(refusal(model(good)).empty());
  CHECK(refusal(model(good, operators(13))).empty());
  CHECK(refusal(model(good, operators(17, "ai.onnx"))).empty());
  CHECK(refusal(model(c + node("Identity", "c", "y", field(7, "ai.onnx")) + output("y"))).empty());
  CHECK(refusal(attribute_of(6, field(7, bytes_of_all({1.f})))).empty());
  CHECK(refusal(attribute_of(8, field(9, "text"))).empty());
  CHECK(refusal(nested(16)).empty());
  struct Case {
    int line;
    std::string bytes;
    const char* sentence;
  };
  // clang-format off
  const std::vector<Case> cases{
      {__LINE__, "", "has no graph"},
      {__LINE__, "no protobuf message", "is no ONNX file, or is cut off"},
      {__LINE__, model(good).substr(0, model(good).size() - 1), "is no ONNX file, or is cut off"},
      {__LINE__, operators(17), "has no graph"},
      {__LINE__, model(good, ""), "has operator set 0; reel runs 13 to 17"},
      {__LINE__, model(good, operators(12)), "has operator set 12; reel runs 13 to 17"},
      {__LINE__, model(good, operators(18)), "has operator set 18; reel runs 13 to 17"},
      {__LINE__, model(good, operators(17) + operators(1, "com.x")), "uses the operators of 'com.x', which reel has not"},
      {__LINE__, model(good, operators(17) + field(25, field(1, "f"))), "has functions of its own, which reel does not read"},
      {__LINE__, model(good + field(15, "")), "has sparse initialisers, which reel does not read"},
      {__LINE__, model(c + node("Identity", "c", "y", field(7, "com.x")) + output("y")), "has a node of the operators of 'com.x', which reel has not"},
      {__LINE__, model(c + node("Magic", "c", "y") + output("y")), "has the operator 'Magic', which reel does not run"},
      {__LINE__, model(c + node("Identity", "d", "y") + output("y")), "uses 'd' in node 'n' before it is computed"},
      {__LINE__, model(c + node("Identity", "y", "y") + output("y")), "uses 'y' in node 'n' before it is computed"},
      {__LINE__, model(c + same + same + output("y")), "defines the name 'y' twice, or has an empty one"},
      {__LINE__, model(c + c + output("c")), "defines the name 'c' twice, or has an empty one"},
      {__LINE__, model(c + node("Identity", "c", "c") + output("c")), "defines the name 'c' twice, or has an empty one"},
      {__LINE__, model(c + field(11, "") + output("c")), "defines the name '' twice, or has an empty one"},
      {__LINE__, model(c + same), "has a graph without outputs"},
      {__LINE__, model(c + same + output("z")), "does not compute its output 'z'"},
      {__LINE__, model(c + field(12, field(1, "c") + field(2, field(4, "")))), "has a value 'c' that is no tensor"},
      {__LINE__, attribute_of(0, ""), "has an attribute 'a' of a kind that reel does not read"},
      {__LINE__, attribute_of(9, ""), "has an attribute 'a' of a kind that reel does not read"},
      {__LINE__, attribute_of(5, field(6, array(1, {1}, one) + output("c"))), "has initialisers in the body of a loop, which reel does not read"},
      {__LINE__, nested(17), "has more than 16 graphs in each other"},
      {__LINE__, model(array(8, {1}, field(6, "text")) + output("c")), "has a tensor 'c' of type 8, which reel has not"},
      {__LINE__, model(array(1, {-1}, one) + output("c")), "has a tensor 'c' of a shape that no tensor has"},
      {__LINE__, model(array(1, {1LL << 40, 1LL << 40}, one) + output("c")), "has a tensor 'c' of a shape that no tensor has"},
      {__LINE__, model(array(1, {2}, one) + output("c")), "has 4 bytes for the 2 elements of 'c'"},
      {__LINE__, model(array(1, {}, field(9, "12345")) + output("c")), "has 5 bytes for the 1 elements of 'c'"},
      {__LINE__, model(array(1, {1LL << 62}, field(9, "")) + output("c")), "has 0 bytes for the 4611686018427387904 elements of 'c'"},
      {__LINE__, model(array(1, {2}, field(4, bytes_of_all({1.f}))) + output("c")), "has 1 numbers for the 2 elements of 'c'"},
      {__LINE__, model(array(1, {1}, "") + output("c")), "has 0 numbers for the 1 elements of 'c'"},
      {__LINE__, model(array(1, {1}, one + field(14, 1)) + output("c")), "has the elements of 'c' in another file"},
      {__LINE__, model(array(1, {1}, one + field(13, "")) + output("c")), "has the elements of 'c' in another file"},
      {__LINE__, model(field(5, many_axes + field(2, 1) + field(8, "c") + one) + output("c")), "has an array of 9 axes: a tensor has at most 8"},
  };
  // clang-format on
  for (const Case& one_case : cases) {
    CAPTURE(one_case.line);
    CHECK_THAT(refusal(one_case.bytes),
               contains(std::string("' ") + one_case.sentence) && contains("onnx_messages_test.cpp:"));
  }
  std::string long_name(200, 'x');
  CHECK_THAT(refusal(model(c + node("Identity", "c", "y", field(7, long_name)) + output("y"))),
             contains("'" + long_name.substr(0, 77) + "...'"));
}

TEST_CASE("inputs of an ONNX file that are initialised need no tensor, and others are named and checked") {
  std::string value =
      field(1, "x") + field(2, field(1, field(1, 1) + field(2, field(1, field(2, "rows")) + field(1, field(1, 3)))));
  Folder folder;
  put_bytes(folder.file("m"), model(array(1, {1}, field(9, bytes_of_all({2.f}))) + field(11, field(1, "c")) +
                                    field(11, value) + node("Mul", "c", "y", field(1, "x")) + output("y")));
  io::onnx::Model loaded = io::onnx::load(folder.file("m"));
  CHECK(loaded.inputs() == std::vector<std::string>{"x"});
  CHECK(testing::all_close(loaded(ones({2, 3})), 2 * ones({2, 3})));
  for (const auto& [given, sentence] :
       std::vector<std::pair<Tensor, const char*>>{{ones({2, 4}), "the input 'x' is (2, 4) f32, not (rows, 3)"},
                                                   {ones({3}), "not (rows, 3)"},
                                                   {ones({2, 3, 1}), "not (rows, 3)"},
                                                   {n({{1, 2, 3}}), "which has not the dtype of the file"},
                                                   {Tensor(), "the input 'x' is undefined"}})
    CHECK_THAT(error_of<Error>([&, &given = given] { loaded(given); }),
               contains(sentence) && contains("onnx_messages_test.cpp:"));
}
