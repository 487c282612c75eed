#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/onnx_pb.h>

#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <utility>

#include "message.h"
#include "model_tensor.h"

namespace reel::detail {
namespace {

namespace proto = ::onnx;

// The limit of graphs in graphs; protobuf's own limit is on messages.
constexpr int deepest_graph = 16;

// A predicate about the file.
struct Refusal {
  std::string text;
};

template <class... Values>
[[noreturn]] void refuse(fmt::format_string<Values...> format, Values&&... values) {
  throw Refusal{fmt::format(format, std::forward<Values>(values)...)};
}

// Names in messages are cut, so that the sentence around them remains.
std::string shown(const std::string& name) { return name.size() > 80 ? name.substr(0, 77) + "..." : name; }

void write_tensor(proto::TensorProto& to, const OnnxTensor& from) {
  to.set_name(from.name);
  to.set_data_type(static_cast<std::int32_t>(from.type));
  for (std::int64_t size : from.dims) to.add_dims(size);
  to.set_raw_data(from.bytes.data(), from.bytes.size());
}

void write_value(proto::ValueInfoProto& to, const OnnxValue& from) {
  to.set_name(from.name);
  auto& type = *to.mutable_type()->mutable_tensor_type();
  type.set_elem_type(static_cast<std::int32_t>(from.type));
  if (!from.has_axes) return;
  auto& shape = *type.mutable_shape();
  for (const OnnxAxis& axis : from.axes) {
    auto& dim = *shape.add_dim();
    if (axis.size >= 0)
      dim.set_dim_value(axis.size);
    else if (!axis.name.empty())
      dim.set_dim_param(axis.name);
  }
}

void write_graph(proto::GraphProto& to, const OnnxGraph& from);

void write_attribute(proto::AttributeProto& to, const OnnxAttribute& from) {
  using Kind = OnnxAttribute::Kind;
  to.set_name(from.name);
  switch (from.kind) {
    case Kind::integer:
      to.set_type(proto::AttributeProto::INT);
      to.set_i(from.integer);
      return;
    case Kind::number:
      to.set_type(proto::AttributeProto::FLOAT);
      to.set_f(from.number);
      return;
    case Kind::text:
      to.set_type(proto::AttributeProto::STRING);
      to.set_s(from.text);
      return;
    case Kind::integers:
      to.set_type(proto::AttributeProto::INTS);
      for (std::int64_t value : from.integers) to.add_ints(value);
      return;
    case Kind::numbers:
      to.set_type(proto::AttributeProto::FLOATS);
      for (float value : from.numbers) to.add_floats(value);
      return;
    case Kind::texts:
      to.set_type(proto::AttributeProto::STRINGS);
      for (const std::string& text : from.texts) to.add_strings(text);
      return;
    case Kind::tensor:
      to.set_type(proto::AttributeProto::TENSOR);
      write_tensor(*to.mutable_t(), *from.tensor);
      return;
    case Kind::graph:
      to.set_type(proto::AttributeProto::GRAPH);
      write_graph(*to.mutable_g(), *from.graph);
      return;
  }
}

void write_graph(proto::GraphProto& to, const OnnxGraph& from) {
  to.set_name(from.name);
  for (const OnnxNode& node : from.nodes) {
    auto& made = *to.add_node();
    made.set_op_type(node.type);
    made.set_name(node.name);
    made.set_doc_string(node.note);
    for (const std::string& input : node.inputs) made.add_input(input);
    for (const std::string& output : node.outputs) made.add_output(output);
    for (const OnnxAttribute& attribute : node.attributes) write_attribute(*made.add_attribute(), attribute);
  }
  for (const OnnxTensor& tensor : from.initialisers) write_tensor(*to.add_initializer(), tensor);
  for (const OnnxValue& value : from.inputs) write_value(*to.add_input(), value);
  for (const OnnxValue& value : from.outputs) write_value(*to.add_output(), value);
}

// 0 for types that reel has not.
std::size_t bytes_of(OnnxType type) {
  DType dtype;
  return io::onnx::dtype_of(type, dtype) ? size_of(dtype) : 0;
}

// The elements from a field whose numbers may be wider.
template <class Element, class Field>
void take(const Field& field, std::uint64_t count, OnnxTensor& to) {
  if (static_cast<std::uint64_t>(field.size()) != count)
    refuse("has {} numbers for the {} elements of '{}'", field.size(), count, shown(to.name));
  to.bytes.resize(static_cast<std::size_t>(count) * sizeof(Element));
  std::byte* place = to.bytes.data();
  for (auto value : field) {
    auto element = static_cast<Element>(value);
    std::memcpy(place, &element, sizeof element);
    place += sizeof element;
  }
}

// Elements are in raw_data or in a field of their type, whose words may be wider than the elements.
void read_tensor(const proto::TensorProto& from, OnnxTensor& to) {
  std::string name = shown(from.name());
  to.name = from.name();
  to.type = static_cast<OnnxType>(from.data_type());
  std::size_t each = bytes_of(to.type);
  if (each == 0) refuse("has a tensor '{}' of type {}, which reel has not", name, from.data_type());
  if (from.data_location() == proto::TensorProto::EXTERNAL || from.external_data_size() > 0)
    refuse("has the elements of '{}' in another file", name);
  std::uint64_t count = 1;
  for (std::int64_t size : from.dims()) {
    to.dims.push_back(size);
    if (size < 0 || __builtin_mul_overflow(count, static_cast<std::uint64_t>(size), &count))
      refuse("has a tensor '{}' of a shape that no tensor has", name);
  }
  if (from.has_raw_data()) {
    if (count > from.raw_data().size() || count * each != from.raw_data().size())
      refuse("has {} bytes for the {} elements of '{}'", from.raw_data().size(), count, name);
    const auto* bytes = reinterpret_cast<const std::byte*>(from.raw_data().data());
    to.bytes.assign(bytes, bytes + from.raw_data().size());
    return;
  }
  switch (to.type) {
    case OnnxType::f32: return take<float>(from.float_data(), count, to);
    case OnnxType::f64: return take<double>(from.double_data(), count, to);
    case OnnxType::i64: return take<std::int64_t>(from.int64_data(), count, to);
    case OnnxType::boolean: return take<bool>(from.int32_data(), count, to);
    default: break;
  }
  if (each == 4) return take<std::int32_t>(from.int32_data(), count, to);
  if (each == 2) return take<std::uint16_t>(from.int32_data(), count, to);
  take<std::uint8_t>(from.int32_data(), count, to);
}

void read_value(const proto::ValueInfoProto& from, OnnxValue& to) {
  to.name = from.name();
  if (!from.type().has_tensor_type()) {
    if (from.type().value_case() == proto::TypeProto::VALUE_NOT_SET) return;
    refuse("has a value '{}' that is no tensor", shown(from.name()));
  }
  const auto& type = from.type().tensor_type();
  to.type = static_cast<OnnxType>(type.elem_type());
  to.has_axes = type.has_shape();
  for (const auto& dim : type.shape().dim())
    to.axes.push_back({dim.has_dim_value() ? dim.dim_value() : -1, dim.dim_param()});
}

void read_graph(const proto::GraphProto& from, OnnxGraph& to, int depth);

void read_attribute(const proto::AttributeProto& from, OnnxAttribute& to, int depth) {
  using Kind = OnnxAttribute::Kind;
  to.name = from.name();
  switch (from.type()) {
    case proto::AttributeProto::INT:
      to.kind = Kind::integer;
      to.integer = from.i();
      return;
    case proto::AttributeProto::FLOAT:
      to.kind = Kind::number;
      to.number = from.f();
      return;
    case proto::AttributeProto::STRING:
      to.kind = Kind::text;
      to.text = from.s();
      return;
    case proto::AttributeProto::INTS:
      to.kind = Kind::integers;
      to.integers.assign(from.ints().begin(), from.ints().end());
      return;
    case proto::AttributeProto::FLOATS:
      to.kind = Kind::numbers;
      to.numbers.assign(from.floats().begin(), from.floats().end());
      return;
    case proto::AttributeProto::STRINGS:
      to.kind = Kind::texts;
      to.texts.assign(from.strings().begin(), from.strings().end());
      return;
    case proto::AttributeProto::TENSOR:
      to.kind = Kind::tensor;
      to.tensor = std::make_shared<OnnxTensor>();
      read_tensor(from.t(), *to.tensor);
      return;
    case proto::AttributeProto::GRAPH:
      to.kind = Kind::graph;
      to.graph = std::make_shared<OnnxGraph>();
      read_graph(from.g(), *to.graph, depth + 1);
      return;
    default: refuse("has an attribute '{}' of a kind that reel does not read", shown(from.name()));
  }
}

void read_graph(const proto::GraphProto& from, OnnxGraph& to, int depth) {
  if (depth > deepest_graph) refuse("has more than {} graphs in each other", deepest_graph);
  to.name = from.name();
  if (from.sparse_initializer_size() > 0) refuse("has sparse initialisers, which reel does not read");
  for (const auto& node : from.node()) {
    if (!node.domain().empty() && node.domain() != "ai.onnx")
      refuse("has a node of the operators of '{}', which reel has not", shown(node.domain()));
    OnnxNode& made = to.nodes.emplace_back();
    made.type = node.op_type();
    made.name = node.name();
    made.inputs.assign(node.input().begin(), node.input().end());
    made.outputs.assign(node.output().begin(), node.output().end());
    for (const auto& attribute : node.attribute()) read_attribute(attribute, made.attributes.emplace_back(), depth);
  }
  for (const auto& tensor : from.initializer()) read_tensor(tensor, to.initialisers.emplace_back());
  for (const auto& value : from.input()) read_value(value, to.inputs.emplace_back());
  for (const auto& value : from.output()) read_value(value, to.outputs.emplace_back());
}

void read_model(const proto::ModelProto& from, OnnxModel& to) {
  to.ir_version = from.ir_version();
  to.producer = from.producer_name();
  to.producer_version = from.producer_version();
  for (const auto& set : from.opset_import()) {
    if (!set.domain().empty() && set.domain() != "ai.onnx")
      refuse("uses the operators of '{}', which reel has not", shown(set.domain()));
    to.opset = set.version();
  }
  if (!from.has_graph()) refuse("has no graph");
  if (from.functions_size() > 0) refuse("has functions of its own, which reel does not read");
  read_graph(from.graph(), to.graph, 0);
}

// Runs f, and turns what it throws into a predicate about the file.
template <class F>
std::string problem_of(F f) {
  try {
    f();
    return "";
  } catch (const Refusal& refusal) {
    return refusal.text;
  } catch (const std::bad_alloc&) {
    return "needs more memory than there is";
  } catch (const std::exception& error) {
    return fmt::format("cannot be converted: {}", error.what());
  }
}

}  // namespace

WrittenModel onnx_bytes(const OnnxModel& model) {
  WrittenModel result;
  result.problem = problem_of([&] {
    proto::ModelProto made;
    made.set_ir_version(model.ir_version);
    made.set_producer_name(model.producer);
    made.set_producer_version(model.producer_version);
    auto& set = *made.add_opset_import();
    set.set_domain("");
    set.set_version(model.opset);
    write_graph(*made.mutable_graph(), model.graph);
    std::size_t size = made.ByteSizeLong();
    if (size > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
      refuse("would have {} bytes: an ONNX file has fewer than 2 GiB", size);
    if (!made.SerializeToString(&result.bytes)) refuse("cannot be written by protobuf");
  });
  return result;
}

std::string read_onnx(std::span<const std::byte> bytes, OnnxModel& model) {
  return problem_of([&] {
    if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
      refuse("has {} bytes: an ONNX file has fewer than 2 GiB", bytes.size());
    proto::ModelProto found;
    google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
    google::protobuf::io::CodedInputStream coded(&stream);
    coded.SetRecursionLimit(100);
    if (!found.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage()) refuse("is no ONNX file, or is cut off");
    read_model(found, model);
  });
}

}  // namespace reel::detail
