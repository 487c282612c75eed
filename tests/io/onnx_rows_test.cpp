#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "catch.h"
#include "folder.h"
#include "io/onnx/writer.h"
#include "judges/onnx_calls.h"
#include "ops/table/row_checks.h"

// Rows of the op table as models: each is written to a file, which then computes for other inputs what the row does.

namespace reel_test {

using namespace reel;

namespace {

DType dtype_of(const Row& row) { return std::ranges::count(row.dtypes, f32) > 0 ? f32 : row.dtypes[0]; }

// Returns false for a row that ONNX has no operator for.
bool is_exported(const Row& row, const std::string& file) {
  std::vector<Tensor> examples = draw_inputs(row, dtype_of(row), table_seed);
  std::vector<io::onnx::Input> inputs;
  for (std::size_t i = 0; i < examples.size(); ++i)
    inputs.push_back({.name = fmt::format("x{}", i), .example = examples[i]});
  std::string refusal = error_of<Error>([&] {
    io::onnx::save(
        file, [&](std::span<const Tensor> x) { return std::vector<Tensor>{row.run(x)}; }, inputs);
  });
  if (!refusal.empty())
    CHECK_THAT(refusal, contains("cannot be exported") || contains("overwritten") || contains("reads elements of"));
  return refusal.empty();
}

void check_file(const Row& row, const std::string& file) {
  std::vector<Tensor> others = draw_inputs(row, dtype_of(row), table_seed + 1), kept;
  for (const Tensor& other : others) kept.push_back(copy(other));
  Tensor expected = row.run(others);
  io::onnx::Model model = io::onnx::load(file);
  testing::Closeness close =
      testing::all_close(model(kept).at(0), expected, {.relative = 1e-5, .absolute = 1e-5, .equal_nan = true});
  INFO(close.difference());
  CHECK(static_cast<bool>(close));
}

}  // namespace

TEST_CASE("the file of each row of the op table computes what the row does") {
  Folder folder;
  std::map<std::string, int> rows_of;
  std::set<std::string> exported, refused;
  for (const Row& row : table()) {
    CAPTURE(row.name);
    bool has_elements = std::ranges::all_of(row.inputs, [](const Input& one) { return one.shape.numel() > 0; });
    if (!has_elements || (++rows_of[row.op] > 6 && !is_long())) continue;
    if (is_exported(row, folder.file("model.onnx"))) {
      exported.insert(row.op);
      check_file(row, folder.file("model.onnx"));
    } else {
      refused.insert(row.op);
    }
  }
  CHECK(exported.size() > 200);
  // Bits of bools alone have an operator, and in-place ops only where nothing else reads the tensor.
  for (const std::string& op : refused) {
    CAPTURE(op);
    if (!op.starts_with("bitwise_") && !op.ends_with('_')) CHECK((exported.contains(op) || !io::onnx::operator_of(op)));
  }
}

}  // namespace reel_test
