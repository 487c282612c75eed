#include "operators.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace reel::io::onnx {

namespace {

using Rows = std::unordered_map<std::string_view, const Operator*>;

// Adds each row under all of its names, by ops or by operators.
Rows rows_by(bool op) {
  Rows rows;
  for (auto family :
       {elementwise_operators(), reduce_operators(), shape_operators(), index_operators(), product_operators(),
        convolution_operators(), normalise_operators(), loss_operators(), recurrent_operators(), loop_operators()})
    for (const Operator& row : family) {
      std::string_view names = op ? row.ops : row.type ? row.type : "";
      while (!names.empty()) {
        std::string_view name = names.substr(0, names.find(' '));
        rows.emplace(name, &row);
        names.remove_prefix(std::min(name.size() + 1, names.size()));
      }
    }
  return rows;
}

const Operator* find(const Rows& rows, std::string_view name) {
  auto found = rows.find(name);
  return found == rows.end() ? nullptr : found->second;
}

}  // namespace

const Operator* operator_of(std::string_view op) {
  static const Rows rows = rows_by(true);
  return find(rows, op);
}

RunNode runner_of(std::string_view type) {
  static const Rows rows = rows_by(false);
  const Operator* row = find(rows, type);
  return row ? row->run : nullptr;
}

void write_op(Writer& w, const Operator& row) {
  if (row.write) return row.write(w);
  Names inputs;
  for (std::size_t i = 0; i < w.input_count(); ++i) inputs.push_back(w.in(i));
  w.result(w.node(row.type, inputs));
}

bool is_random(std::string_view op) {
  static constexpr std::array<std::string_view, 8> drawn{"rand",    "randn",    "gumbel",  "bernoulli",
                                                         "randint", "randperm", "dropout", "multinomial"};
  return std::ranges::find(drawn, op) != drawn.end();
}

}  // namespace reel::io::onnx
