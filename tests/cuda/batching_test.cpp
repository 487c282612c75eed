#include <reel/batching.h>

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cuda/gpu.h"
#include "ops/table/row_checks.h"

// batch_map on a device: every row of the op table in several examples, with inputs of their own, and with all but the
// first in common, as parameters are.

namespace reel_test {

using namespace reel;

namespace {

constexpr std::size_t examples = 3;

struct Results {
  std::vector<Tensor> values, gradients;
};

// The values of all examples, and the gradients of a sum of them without symmetry; on the device.
Results run(const Row& row, bool shares, bool differentiates, const BatchOptions& options) {
  std::vector<std::vector<Tensor>> inputs;
  std::vector<Tensor> sources;
  for (std::size_t k = 0; k < examples; ++k) {
    std::vector<Tensor>& own = inputs.emplace_back();
    std::vector<Tensor> drawn = draw_inputs(row, f32, table_seed + k);
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      if (shares && k > 0 && i > 0) {
        own.push_back(inputs[0][i]);
        continue;
      }
      own.push_back(to(drawn[i], gpu));
      if (row.inputs[i].takes_row_dtype()) sources.push_back(own.back());
    }
  }
  manual_seed(7);
  // Tensors that a row makes besides its inputs are made there, too.
  DeviceGuard device(gpu);
  auto values = [&] {
    return batch_map(
        inputs, [&](const std::vector<Tensor>& x) { return row.run(x); }, options);
  };
  if (!differentiates || sources.empty()) return {values(), {}};
  Tape tape;
  for (const Tensor& source : sources) tape.watch(source);
  Results results{values(), {}};
  Tensor total = sum(sources[0]) * 0;
  for (const Tensor& y : results.values)
    if (is_floating(y.dtype())) total = total + sum(sin(reshape(y, {y.numel()}) + 0.3));
  results.gradients = tape.gradient(total, sources, {.unconnected = Unconnected::zeros});
  return results;
}

std::string difference(const char* what, const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  std::string text;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    Tensor a = to(contiguous(found[i]), cpu), b = to(contiguous(expected[i]), cpu);
    if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) {
      text += fmt::format("{} {} has another form; ", what, i);
      continue;
    }
    double apart = is_floating(a.dtype()) ? distance(a, b) : static_cast<double>(!same_bits(a, b));
    if (apart > 200 * last_place(f32)) text += fmt::format("{} {} lies {} apart; ", what, i, apart);
  }
  return text;
}

std::string fault(const Row& row, bool shares) {
  try {
    bool differentiates = checks_gradient(row);
    Results found = run(row, shares, differentiates, {}),
            expected = run(row, shares, differentiates, {.immediate = true});
    return difference("value", found.values, expected.values) +
           difference("gradient", found.gradients, expected.gradients);
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("every op gives in a batch of examples on a device what it gives in each") {
  if (lacks_device()) return;
  CAPTURE(table_seed);
  for (const Row& row : table()) {
    // The row of zero_ overwrites the result of an op, which batch_map refuses; the others read and write by pointer.
    if (row.op == "zero_" || row.op == "data" || row.op == "write" || row.op == "item") continue;
    if (std::ranges::find(row.dtypes, f32) == row.dtypes.end()) continue;
    CAPTURE(row.name);
    CHECK(fault(row, false) == "");
    if (row.inputs.size() > 1) CHECK(fault(row, true) == "");
  }
}

}  // namespace reel_test
