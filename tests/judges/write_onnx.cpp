// Writes ONNX files and, beside each, inputs and the results that reel computes from them, for judge_onnx.py.
//
// Usage: write_onnx FOLDER [PATTERN]
//
// Writes three rows of each op of the op table, or with REEL_ENDURANCE=1 all; with a PATTERN all whose names contain it. NAME.onnx is a model; NAME.0.npz, NAME.1.npz, … are calls of it: arrays named in.NAME and out.NAME. Prints a line for
// each row of the op table that was not exported, with the reason, and one for each whose file computes something else in
// reel.

#include <algorithm>
#include <map>
#include <set>

#include "judges/onnx_calls.h"
#include "ops/table/row_checks.h"

namespace reel_test {

using namespace reel;

namespace {

std::vector<io::onnx::Input> inputs_of(std::span<const Tensor> examples) {
  std::vector<io::onnx::Input> inputs;
  for (std::size_t i = 0; i < examples.size(); ++i)
    inputs.push_back({.name = fmt::format("x{}", i), .example = examples[i]});
  return inputs;
}

DType dtype_of(const Row& row) {
  for (DType dtype : row.dtypes)
    if (dtype == f32) return f32;
  return row.dtypes[0];
}

struct Count {
  int exported = 0, refused = 0;
  std::set<std::string> exported_ops, refused_ops;
};

void write_row(const std::filesystem::path& folder, const Row& row, int index, Count& count) {
  std::vector<Tensor> examples = draw_inputs(row, dtype_of(row), table_seed);
  std::vector<Tensor> others = draw_inputs(row, dtype_of(row), table_seed + 1);
  std::string name = fmt::format("row{}", index);
  try {
    io::onnx::save((folder / (name + ".onnx")).string(),
                   [&](std::span<const Tensor> x) { return std::vector<Tensor>{row.run(x)}; }, inputs_of(examples));
  } catch (const Error& error) {
    ++count.refused;
    count.refused_ops.insert(row.op);
    fmt::print("refused {} ({}): {}\n", row.name, row.op, error.what());
    return;
  }
  ++count.exported;
  count.exported_ops.insert(row.op);
  std::vector<Tensor> kept;
  for (const Tensor& other : others) kept.push_back(copy(other));
  Tensor expected = row.run(others);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kept.size(); ++i) names.push_back(fmt::format("x{}", i));
  // NumPy has no bf16.
  if (expected.dtype() != bf16)
    save_call(folder, name, 0, names, kept, {"output"}, {&expected, 1});
  else
    check_loaded(folder / (name + ".onnx"), row.name, kept, {&expected, 1});
  fmt::print("row {} {} ({})\n", name, row.name, row.op);
}

void write_rows(const std::filesystem::path& folder, const std::string& pattern) {
  bool all = is_long() || !pattern.empty();
  Count count;
  int index = 0;
  std::map<std::string, int> taken;
  for (const Row& row : table()) {
    ++index;
    if (row.name.find(pattern) == std::string::npos) continue;
    bool has_elements =
        std::all_of(row.inputs.begin(), row.inputs.end(), [](const Input& input) { return input.shape.numel() > 0; });
    if (all || (has_elements && taken[row.op]++ < 3)) write_row(folder, row, index, count);
  }
  for (const std::string& op : count.exported_ops) count.refused_ops.erase(op);
  fmt::print("{} rows of {} ops exported, {} rows refused, of which {} ops have no row that is exported\n",
             count.exported, count.exported_ops.size(), count.refused, count.refused_ops.size());
}

}  // namespace
}  // namespace reel_test

int main(int count, char** arguments) {
  if (count < 2) return 2;
  reel_test::write_rows(arguments[1], count > 2 ? arguments[2] : "");
}
