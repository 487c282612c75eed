#pragma once

#include <cstdint>
#include <vector>

namespace reel_test::programs {

/// A number, the node of the expression that computes it, −1 for a constant, and how far off it may be.
struct Scalar {
  double value = 0;
  int node = -1;
  double error = 0;  ///< the most by which any order of computation may differ from the exact value
};

/// How a node follows from its operands. A custom rule's derivative is not that of its value.
enum class Rule : std::uint8_t {
  variable,
  copy,
  add,
  sub,
  mul,
  div,
  neg,
  square,
  sin,
  cos,
  exp,
  tanh,
  custom_constant,  ///< a²; its derivative is treated as 3
  custom_input,     ///< sin a; its derivative is treated as a / 2
};

/// A graph of scalar expressions. A derivative is an expression too, so that it can be differentiated again.
class Scalars {
 public:
  Scalar variable(Scalar value);
  /// A constant if all operands are.
  Scalar apply(Rule rule, Scalar a, Scalar b = {});
  int count() const { return static_cast<int>(nodes_.size()); }
  /// While set, results are constants.
  bool constants_only = false;

  /// Until the adjoints are cleared, a node keeps what is passed on to it.
  void keep(int node);
  /// Adds to a node's adjoint.
  void add_adjoint(int node, Scalar adjoint);
  /// Passes the adjoints of nodes [begin, end) on to their operands.
  void pull_back(int begin, int end);
  /// A node's adjoint; the constant 0 if nothing was passed on to it.
  Scalar adjoint_of(int node) const;
  void clear_adjoints();

  /// Makes a node an element of a slot.
  void assign(int node, int slot) { nodes_[static_cast<std::size_t>(node)].slot = slot; }
  /// The slots whose elements these are computed from, directly or through nodes of no slot.
  std::vector<int> slots_behind(const std::vector<Scalar>& values);

 private:
  struct Node {
    Rule rule;
    Scalar a, b;
    double value, error;
    int slot = 0;
    int visit = 0;
  };
  void pass_on(int number, Scalar d);
  void give(Scalar operand, Scalar adjoint) {
    if (operand.node >= 0) add_adjoint(operand.node, adjoint);
  }

  struct Adjoint {
    Scalar sum;
    bool defined = false, kept = false;
  };
  Adjoint& touch(int node);

  std::vector<Node> nodes_;
  std::vector<Adjoint> adjoints_;
  std::vector<int> touched_;
  int visit_ = 0;
};

}  // namespace reel_test::programs
