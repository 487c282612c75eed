#include "graph.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <reel/device.h>

#include "../core/op_error.h"
#include "../record/tape_nodes.h"
#include "protobuf.h"

namespace reel::logging {

using detail::SlotForm;
using detail::TapeList;
using detail::TapeNode;
using detail::TapeNodes;

namespace {

// The numbers of the fields of GraphDef, VersionDef, NodeDef, AttrValue and its ListValue.
constexpr std::uint32_t graph_node = 1, graph_versions = 4, version_producer = 1;
constexpr std::uint32_t node_name = 1, node_op = 2, node_input = 3, node_device = 4, node_attribute = 5;
constexpr std::uint32_t attribute_key = 1, attribute_value = 2, attribute_text = 2, attribute_list = 1, list_shape = 7;
constexpr std::uint32_t shape_dim = 2, dim_size = 1;
constexpr std::int64_t producer_version = 22;  // the first one whose graphs have the present form

Message attribute(std::string_view key, const Message& value) {
  return Message().text(attribute_key, key).message(attribute_value, value);
}

class GraphOfTape {
 public:
  GraphOfTape(const TapeList& list, std::span<const NamedTensor> names) : list_(list), nodes_(list) {
    for (const NamedTensor& named : names) {
      if (!named.tensor.defined()) continue;
      std::string name = named.name;
      // TensorBoard groups nodes by the parts of their names.
      std::replace(name.begin(), name.end(), '.', '/');
      given_names_.emplace(&named.tensor.body(), std::move(name));
    }
  }

  std::string bytes() {
    for (const TapeNode& node : nodes_.all())
      if (node.leaf)
        add_leaf(node);
      else
        add_entry(node);
    graph_.message(graph_versions, Message().integer(version_producer, producer_version));
    return graph_.bytes();
  }

 private:
  // A name that no other node has.
  std::string unused_name(const std::string& wanted) {
    int& count = uses_[wanted];
    std::string name = count == 0 ? wanted : fmt::format("{}_{}", wanted, count);
    ++count;
    return name == wanted || uses_.emplace(name, 1).second ? name : unused_name(wanted);
  }

  void add_leaf(const TapeNode& node) {
    const Tensor& leaf = node.leaf->tensor;
    bool is_parameter = leaf.is_parameter();
    auto given = given_names_.find(&leaf.body());
    std::string name = given != given_names_.end() ? given->second : is_parameter ? "parameter" : "watched";
    add_node(unused_name(name), is_parameter ? "Parameter" : "Watched", Message(), leaf.made_at(), node);
  }

  void add_entry(const TapeNode& node) {
    Message inputs;
    for (TapeNode::Source source : nodes_.inputs(node)) {
      const std::string& name = names_[source.node];
      inputs.text(node_input, source.output == 0 ? name : fmt::format("{}:{}", name, source.output));
    }
    add_node(unused_name(node.entry->op->name), node.entry->op->name, inputs, node.entry->where(), node);
  }

  void add_node(const std::string& name, std::string_view op, const Message& inputs, Location where,
                const TapeNode& outputs) {
    Message node, shapes;
    node.text(node_name, name).text(node_op, op).fields(inputs);
    for (std::uint32_t i = 0; i < outputs.output_count; ++i) {
      const SlotForm* form = list_.slot(outputs.first_output + i).form;
      if (form && i == 0) node.text(node_device, to_string(form->device));
      shapes.message(list_shape, form ? shape(*form) : Message());
    }
    names_.push_back(name);
    node.message(node_attribute, attribute("_output_shapes", Message().message(attribute_list, shapes)));
    node.message(node_attribute, attribute("where", Message().text(attribute_text, to_string(where))));
    graph_.message(graph_node, node);
  }

  static Message shape(const SlotForm& form) {
    Message shape;
    for (std::int64_t size : form.shape()) shape.message(shape_dim, Message().integer(dim_size, size));
    return shape;
  }

  const TapeList& list_;
  TapeNodes nodes_;
  std::unordered_map<const detail::Body*, std::string> given_names_;
  std::unordered_map<std::string, int> uses_;
  std::vector<std::string> names_;  // of the nodes so far
  Message graph_;
};

}  // namespace

std::string graph_of(const Tape& tape, std::span<const NamedTensor> names, Location where) {
  constexpr const char* function = "logging::Writer::graph";
  const TapeList& list = detail::list_of_open_tape(function, &tape, where);
  if (list.entry_count() == 0)
    detail::fail<TapeError>(function, where,
                            "the tape has no entries; log its graph before it differentiates, or open it with "
                            ".persistent = true");
  return GraphOfTape(list, names).bytes();
}

}  // namespace reel::logging
