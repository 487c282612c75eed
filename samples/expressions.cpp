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

// A random tree of exactly the given depth.
Tree grow(std::mt19937_64& random, int depth) {
  auto below = [&](int bound) { return static_cast<int>(random() % static_cast<std::uint64_t>(bound)); };
  if (depth == 0) return std::make_shared<Expression>(Expression::Kind::constant, below(2) == 0, 0, nullptr, nullptr);
  if (below(4) == 0) {
    Tree operand = grow(random, depth - 1);
    return std::make_shared<Expression>(Expression::Kind::negation, !operand->value, depth, std::move(operand),
                                        nullptr);
  }
  // One side reaches the depth; the other may end anywhere above.
  Tree left = grow(random, depth - 1), right = grow(random, below(depth));
  if (below(2) == 0) std::swap(left, right);
  bool both = below(2) == 0, value = both ? left->value && right->value : left->value || right->value;
  auto kind = both ? Expression::Kind::conjunction : Expression::Kind::disjunction;
  return std::make_shared<Expression>(kind, value, depth, std::move(left), std::move(right));
}

// An expression as `to_string` writes it, which ends where `text` begins afterwards.
Tree parse(std::string_view& text) {
  auto starts_with = [&](std::string_view word) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    bool found = text.starts_with(word);
    if (found) text.remove_prefix(word.size());
    return found;
  };
  using enum Expression::Kind;
  for (bool value : {false, true})
    if (starts_with(value ? "true" : "false"))
      return std::make_shared<Expression>(constant, value, 0, nullptr, nullptr);
  if (starts_with("not ")) {
    Tree operand = parse(text);
    return std::make_shared<Expression>(negation, !operand->value, operand->depth + 1, operand, nullptr);
  }
  if (!starts_with("(")) throw std::runtime_error("no expression");
  Tree left = parse(text);
  bool both = starts_with("and ");
  if (!both && !starts_with("or ")) throw std::runtime_error("no operator");
  Tree right = parse(text);
  if (!starts_with(")")) throw std::runtime_error("no closing bracket");
  bool value = both ? left->value && right->value : left->value || right->value;
  return std::make_shared<Expression>(both ? conjunction : disjunction, value, 1 + std::max(left->depth, right->depth),
                                      left, right);
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
                                           io::printable(path), error.what(), io::printable(line)));
    }
  return trees;
}

}  // namespace samples
