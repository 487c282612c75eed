#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include <reel/debug/recorded_run.h>
#include <reel/location.h>
#include <reel/named_tensor.h>
#include <reel/tape.h>

namespace reel::debug {

/// The kind of a graph's node.
enum class GraphNodeKind : std::uint8_t {
  parameter,  ///< a parameter
  data,       ///< a watched tensor, or of a recorded run any tensor that no op made
  op,         ///< an op, or the runs of one in a loop
  module,     ///< all ops of a module
  failed,     ///< the op that threw
};

/// A node of a graph.
struct GraphNode {
  GraphNodeKind kind = GraphNodeKind::op;  ///< what it is
  std::string label = {};                  ///< the op, the parameter's name, or the module's path
  std::string module = {};                 ///< the path of the module around it: "encoder.layers.2"; empty: not known
  std::string file = {};                   ///< the file of the caller; empty: unknown
  int line = 0;                            ///< the line of the caller
  std::string form = {};                   ///< dtype and shape of the first output: "f32 (2, 3)"
  std::int64_t count = 1;                  ///< the number of ops or tensors that were folded into it
  std::string message = {};                ///< of a failed op: what the exception says
};

/// An edge of a graph: tensors that one node computes and the other uses.
struct GraphEdge {
  std::uint32_t from = 0;  ///< the index of the node that computes
  std::uint32_t to = 0;    ///< the index of the node that uses; not greater than `from` where a loop goes round
  std::int64_t count = 1;  ///< the number of uses
  bool order = false;      ///< true if no tensor is known to pass: the failed op ran after this one
};

/// How a graph is made of what was recorded.
struct GraphOptions {
  /// Names of leaves, such as `model.named_parameters()`; default: parameters' own names.
  std::vector<NamedTensor> names = {};
  /// Executions of an op from one line of one module are one node if their results have equal shapes and depend on equal
  /// parameters, as those of a loop do; default true.
  bool fold_loops = true;
  /// All ops of a module whose path has this many names are one node, with those of its sub-modules: 1 folds
  /// "encoder.layers.2" into "encoder". The module of a tape's entry is known by the names of its parameters; that of a
  /// recorded op always. 0: none are folded; default 0.
  int module_depth = 0;
  /// The exception that ended the recording of a tape: its op is added and marked. Default: the one that a `catch`
  /// around the call handles.
  std::exception_ptr error = std::current_exception();
};

/// A picture of what was computed.
class Graph {
 public:
  /// A graph of nodes, in the order of their first run, and edges between them.
  Graph(std::vector<GraphNode> nodes, std::vector<GraphEdge> edges);

  /// The nodes, in the order of their first run.
  const std::vector<GraphNode>& nodes() const { return nodes_; }
  /// The edges, by ascending `to` and `from`.
  const std::vector<GraphEdge>& edges() const { return edges_; }
  /// The graph in Graphviz's language, a cluster for each module.
  std::string dot() const;
  /// The graph as a picture in SVG, with each node's full location as its title, by Graphviz's program dot: 1,000 nodes
  /// take it a second, 3,000 nine. Throws: Error if dot is not installed or fails.
  std::string svg(Location where = Location::here()) const;
  /// Writes `svg()` or `dot()` to a file, by its ending: ".svg", ".dot" or ".gv".
  /// Throws: Error for another ending, and for ".svg" if dot is not installed or fails; FileError if the file cannot be
  /// written.
  void save(const std::string& file, Location where = Location::here()) const;

 private:
  std::vector<GraphNode> nodes_;
  std::vector<GraphEdge> edges_;
};

/// The graph of the entries that this thread's tapes have now: parameters, watched tensors and ops. In a `catch`, after
/// an op has thrown, it ends with that op, marked as failed:
///
///     Tape tape;
///     try {
///       Tensor loss = mean(square(matmul(x, w) - y));
///       tape.backward(loss);
///     } catch (const Error&) {
///       debug::graph(tape).save("graph.svg");
///       throw;
///     }
///
/// Throws: TapeError if another thread opened the tape, within the function of a checkpoint, and if there are no entries
/// and no error; a differentiation drops the entries unless the tape is persistent.
Graph graph(const Tape& tape, const GraphOptions& options = {}, Location where = Location::here());
/// The graph of the ops of a recorded run that ran outside of backward passes, and of the op that threw. `names` and
/// `error` of the options are not used.
Graph graph(const RecordedRun& run, const GraphOptions& options = {});

}  // namespace reel::debug
