#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace samples {

/// A boolean expression.
struct Expression {
  enum class Kind : std::uint8_t { constant, negation, conjunction, disjunction };
  Kind kind;
  bool value;
  int depth;  ///< 0 for a constant
  std::shared_ptr<const Expression> left, right;
};
using Tree = std::shared_ptr<const Expression>;

/// An expression as text: (true and not false).
std::string to_string(const Expression& e);

/// Random trees in equal numbers of each depth from `shallowest` to `deepest`. Conjunctions and disjunctions are equally
/// likely, so that both values are.
std::vector<Tree> grow_many(std::mt19937_64& random, int count, int shallowest, int deepest);

/// Reads a file of expressions, one a line, as `to_string` writes them. Throws: std::runtime_error for another line.
std::vector<Tree> read_expressions(const std::string& path);

}  // namespace samples
