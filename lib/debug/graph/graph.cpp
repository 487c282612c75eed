#include <reel/debug/graph.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "../../core/op_error.h"
#include "../../core/storage.h"
#include "../../io/atomic_file.h"
#include "../../record/tape_nodes.h"
#include "graphviz.h"

namespace reel::debug {
namespace {

constexpr const char* graph_function = "debug::graph";

// Gathers nodes, folded as the options say, and the edges between them.
class GraphBuilder {
 public:
  explicit GraphBuilder(const GraphOptions& options) : options_(options) {}

  /// Adds a node that uses the results of others, and the edges from them. Returns the index of the node that it is
  /// folded into; never one of another `identity`.
  std::uint32_t add(GraphNode node, const std::vector<std::uint32_t>& uses, std::string identity = {}) {
    Parameters parameters = parameters_of(uses);
    if (std::string path = folded_module(node.module); !path.empty() && node.kind != GraphNodeKind::failed) {
      node = {.kind = GraphNodeKind::module, .label = path, .module = outer_module(path)};
      parameters.clear();
      identity.clear();
    } else if (node.kind != GraphNodeKind::failed && !options_.fold_loops) {
      identity = std::to_string(nodes_.size());
    }
    std::vector<std::uint32_t>& alike =
        alike_[fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}", static_cast<int>(node.kind), node.label, node.module,
                           node.file, node.line, node.form, identity)];
    // Calls of several layers on one line differ in their parameters; the first run of a loop may use more of them.
    auto found = std::ranges::find_if(alike, [&](std::uint32_t other) {
      const Parameters& others = parameters_[other];
      return others.empty() == parameters.empty() &&
             (std::ranges::includes(others, parameters) || std::ranges::includes(parameters, others));
    });
    if (found == alike.end()) {
      found = alike.insert(found, static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back(std::move(node));
      parameters_.push_back(std::move(parameters));
      last_runs_.push_back(0);
    } else {
      ++nodes_[*found].count;
      parameters_[*found].merge(parameters);
    }
    last_runs_[*found] = ++runs_;
    for (std::uint32_t used : uses) connect(used, *found);
    return *found;
  }

  void connect(std::uint32_t from, std::uint32_t to, bool order = false) {
    if (from == to && nodes_[from].kind == GraphNodeKind::module) return;
    ++edges_[std::uint64_t{to} << 32 | from].first;
    edges_[std::uint64_t{to} << 32 | from].second = order;
  }

  bool empty() const { return nodes_.empty(); }
  std::uint32_t last() const { return last_; }
  void set_last(std::uint32_t node) { last_ = node; }

  Graph built() && {
    std::vector<GraphEdge> edges;
    edges.reserve(edges_.size());
    for (const auto& [ends, uses] : edges_)
      edges.push_back(
          {static_cast<std::uint32_t>(ends), static_cast<std::uint32_t>(ends >> 32), uses.first, uses.second});
    std::sort(edges.begin(), edges.end(),
              [](const GraphEdge& a, const GraphEdge& b) { return std::pair(a.to, a.from) < std::pair(b.to, b.from); });
    return {std::move(nodes_), std::move(edges)};
  }

 private:
  using Parameters = std::set<std::uint32_t>;

  // The parameters that an op uses, or else those of the latest op whose results it uses: they tell layers apart.
  Parameters parameters_of(const std::vector<std::uint32_t>& uses) const {
    Parameters own, inherited;
    std::uint32_t latest = 0;
    for (std::uint32_t used : uses) {
      if (nodes_[used].kind == GraphNodeKind::parameter) own.insert(used);
      if (parameters_[used].empty() || last_runs_[used] < latest) continue;
      inherited = parameters_[used];
      latest = last_runs_[used];
    }
    return own.empty() ? inherited : own;
  }

  // The path of the module that an op's module is folded into; empty: none.
  std::string folded_module(std::string_view path) const {
    if (options_.module_depth <= 0 || path.empty()) return {};
    std::size_t end = 0;
    for (int i = 0; i < options_.module_depth; ++i) {
      end = path.find('.', i == 0 ? 0 : end + 1);
      if (end == std::string_view::npos) return i + 1 == options_.module_depth ? std::string(path) : std::string();
    }
    return std::string(path.substr(0, end));
  }
  static std::string outer_module(std::string_view path) {
    std::size_t dot = path.rfind('.');
    return std::string(dot == std::string_view::npos ? std::string_view() : path.substr(0, dot));
  }

  const GraphOptions& options_;
  std::vector<GraphNode> nodes_;
  std::vector<Parameters> parameters_;    // by node
  std::vector<std::uint32_t> last_runs_;  // by node
  std::uint32_t runs_ = 0;
  std::unordered_map<std::string, std::vector<std::uint32_t>> alike_;       // nodes of one op, line, module and form
  std::unordered_map<std::uint64_t, std::pair<std::int64_t, bool>> edges_;  // uses, and whether it is an order
  std::uint32_t last_ = 0;
};

void locate(GraphNode& node, Location where) {
  if (!where.file) return;
  std::string text = to_string(where);
  node.file = text.substr(0, text.rfind(':'));
  node.line = where.line;
}

std::string outer_name(std::string_view name) {
  std::size_t dot = name.rfind('.');
  return std::string(dot == std::string_view::npos ? std::string_view() : name.substr(0, dot));
}

std::string form_of(const detail::SlotForm* form) {
  return form ? fmt::format("{} {}", name_of(form->dtype), to_string(form->shape())) : std::string();
}

// The node of an op that threw; the sentence of an error begins with the op's name.
GraphNode failed_node(const std::exception_ptr& error) {
  GraphNode node{.kind = GraphNodeKind::failed, .label = "exception"};
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    node.message = known.what();
    locate(node, known.where());
    if (std::size_t colon = node.message.find(": "); colon != std::string::npos && colon < 64)
      node.label = node.message.substr(0, colon);
  } catch (const std::exception& other) {
    node.message = other.what();
  } catch (...) {
    node.message = "an exception of another type";
  }
  return node;
}

}  // namespace

Graph::Graph(std::vector<GraphNode> nodes, std::vector<GraphEdge> edges)
    : nodes_(std::move(nodes)), edges_(std::move(edges)) {
  for (const GraphEdge& edge : edges_)
    if (edge.from >= nodes_.size() || edge.to >= nodes_.size())
      throw Error("debug::Graph: an edge leads to a node that is not there", Location());
}

std::string Graph::svg(Location where) const { return svg_of(dot(), "debug::Graph::svg", where); }

void Graph::save(const std::string& file, Location where) const {
  constexpr const char* function = "debug::Graph::save";
  bool picture = file.ends_with(".svg");
  if (!picture && !file.ends_with(".dot") && !file.ends_with(".gv"))
    detail::fail<Error>(function, where, "'{}' must end in .svg, .dot or .gv", file);
  std::string text = picture ? svg_of(dot(), function, where) : dot();
  io::AtomicFile output(function, file, where);
  output.write(std::as_bytes(std::span(text)));
  output.commit();
}

Graph graph(const Tape& tape, const GraphOptions& options, Location where) {
  const detail::TapeList& list = detail::list_of_open_tape(graph_function, &tape, where);
  if (list.entry_count() == 0 && !options.error)
    detail::fail<TapeError>(graph_function, where,
                            "the tape has no entries; draw its graph before it differentiates, or open it with "
                            ".persistent = true");
  std::unordered_map<const detail::Body*, std::string_view> names;
  for (const NamedTensor& named : options.names)
    if (named.tensor.defined()) names.emplace(&named.tensor.body(), named.name);

  detail::TapeNodes recorded(list);
  GraphBuilder builder(options);
  std::vector<std::uint32_t> index;
  std::vector<std::string> modules;  // of leaves, by the names of their parameters
  for (const detail::TapeNode& from : recorded.all()) {
    GraphNode node;
    std::string module;
    if (from.leaf) {
      const Tensor& leaf = from.leaf->tensor;
      const detail::Body& body = leaf.body();
      node.kind = leaf.is_parameter() ? GraphNodeKind::parameter : GraphNodeKind::data;
      node.label = leaf.is_parameter() ? "parameter" : "watched";
      if (auto given = names.find(&body); given != names.end())
        node.label = given->second;
      else if (body.leaf && !body.leaf->name.empty())
        node.label = body.leaf->name;
      locate(node, leaf.made_at());
      module = outer_name(node.label);
    } else {
      node.label = from.entry->op->name;
      locate(node, from.entry->where());
      for (detail::TapeNode::Source source : recorded.inputs(from))
        if (recorded.all()[source.node].leaf && !modules[source.node].empty()) module = modules[source.node];
    }
    modules.push_back(module);
    node.module = module;
    if (from.output_count > 0) node.form = form_of(list.slot(from.first_output).form);
    std::vector<std::uint32_t> uses;
    for (detail::TapeNode::Source source : recorded.inputs(from)) uses.push_back(index[source.node]);
    bool is_parameter = node.kind == GraphNodeKind::parameter;
    index.push_back(builder.add(std::move(node), uses, is_parameter ? std::to_string(from.leaf->slot) : std::string()));
    builder.set_last(index.back());
  }
  if (options.error) {
    bool after_another = !builder.empty();
    std::uint32_t before = builder.last(), failed = builder.add(failed_node(options.error), {});
    if (after_another) builder.connect(before, failed, true);
  }
  return std::move(builder).built();
}

Graph graph(const RecordedRun& run, const GraphOptions& options) {
  GraphBuilder builder(options);
  std::unordered_map<std::uint64_t, std::uint32_t> index;
  for (const RecordedOp& op : run.ops()) {
    if (op.kind != OpKind::source && op.kind != OpKind::forward) continue;
    GraphNode node;
    node.label = op.op;
    if (!op.error.empty()) {
      node.kind = GraphNodeKind::failed;
      node.message = op.error;
    } else if (op.kind == OpKind::source) {
      node.kind = op.op == "parameter" ? GraphNodeKind::parameter : GraphNodeKind::data;
      if (!op.outputs.empty() && !op.outputs[0].name.empty()) node.label = op.outputs[0].name;
    }
    node.module = op.kind == OpKind::source ? outer_name(node.label) : std::string(op.module);
    node.file = op.file;
    node.line = op.line;
    if (!op.outputs.empty())
      node.form = fmt::format("{} {}", name_of(op.outputs[0].dtype), to_string(op.outputs[0].shape));
    std::vector<std::uint32_t> uses;
    for (TensorId input : op.inputs)
      if (auto found = index.find(input.op); found != index.end()) uses.push_back(found->second);
    index.emplace(op.id, builder.add(std::move(node), uses));
  }
  return std::move(builder).built();
}

}  // namespace reel::debug
