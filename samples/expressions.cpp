#include "expressions.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <reel/io.h>

namespace samples {

using namespace reel;

std::string to_string(const Expression& e) {
  if (e.kind == Expression::Kind::constant) return e.value ? "true" : "false";
  if (e.kind == Expression::Kind::negation) return "not " + to_string(*e.left);
  const char* word = e.kind == Expression::Kind::conjunction ? " and " : " or ";
  return "(" + to_string(*e.left) + word + to_string(*e.right) + ")";
}

namespace {

constexpr int most_levels = 1000;  // of a file's expression: functions of it are recursive

Tree constant(bool value) {
  return std::make_shared<Expression>(Expression::Kind::constant, value, 0, nullptr, nullptr);
}
Tree negation(const Tree& e) {
  return std::make_shared<Expression>(Expression::Kind::negation, !e->value, 1 + e->depth, e, nullptr);
}
Tree combination(bool both, const Tree& left, const Tree& right) {
  bool value = both ? left->value && right->value : left->value || right->value;
  auto kind = both ? Expression::Kind::conjunction : Expression::Kind::disjunction;
  return std::make_shared<Expression>(kind, value, 1 + std::max(left->depth, right->depth), left, right);
}

// A random tree of exactly the given depth.
Tree grow(std::mt19937_64& random, int depth) {
  auto below = [&](int bound) { return static_cast<int>(random() % static_cast<std::uint64_t>(bound)); };
  if (depth == 0) return constant(below(2) == 0);
  if (below(4) == 0) return negation(grow(random, depth - 1));
  // One side reaches the depth; the other may end anywhere above.
  Tree left = grow(random, depth - 1), right = grow(random, below(depth));
  if (below(2) == 0) std::swap(left, right);
  return combination(below(2) == 0, left, right);
}

// Parses an expression as `to_string` writes it, and removes it from `text`.
Tree parse(std::string_view& text, int levels = most_levels) {
  auto starts_with = [&](std::string_view word) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    bool found = text.starts_with(word);
    if (found) text.remove_prefix(word.size());
    return found;
  };
  if (levels == 0) throw std::runtime_error(fmt::format("more than {} levels", most_levels));
  if (starts_with("true")) return constant(true);
  if (starts_with("false")) return constant(false);
  if (starts_with("not ")) return negation(parse(text, levels - 1));
  if (!starts_with("(")) throw std::runtime_error("no expression");
  Tree left = parse(text, levels - 1);
  bool both = starts_with("and ");
  if (!both && !starts_with("or ")) throw std::runtime_error("no operator");
  Tree right = parse(text, levels - 1);
  if (!starts_with(")")) throw std::runtime_error("no closing bracket");
  return combination(both, left, right);
}

}  // namespace

std::vector<Tree> grow_many(std::mt19937_64& random, int count, int shallowest, int deepest) {
  std::vector<Tree> trees;
  for (int i = 0; i < count; ++i) trees.push_back(grow(random, shallowest + i % (deepest - shallowest + 1)));
  return trees;
}

std::vector<Tree> read_expressions(const std::string& path) {
  std::vector<Tree> trees;
  for (const std::string& line : io::read_lines(path)) try {
      std::string_view text = line;
      trees.push_back(parse(text));
      if (text.find_first_not_of(' ') != std::string_view::npos) throw std::runtime_error("more than one expression");
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(fmt::format("'{}' has a line with {}: '{}'; write (true and not false).",
                                           io::printable(path), error.what(), io::printable(line.substr(0, 80))));
    }
  return trees;
}

}  // namespace samples
