#include <fmt/format.h>
#include <reel/io/onnx.h>
#include <reel/ops.h>

#include "operators.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

Results run_body(const NodeCall& c, const OnnxGraph& body, std::span<const Tensor> inputs) {
  if (body.inputs.size() != inputs.size())
    c.refuse(fmt::format("its body has {} inputs instead of {}", body.inputs.size(), inputs.size()));
  TensorsByName tensors(&c.tensors());
  for (std::size_t i = 0; i < inputs.size(); ++i) tensors.set(body.inputs[i].name, inputs[i]);
  return run_graph(body, tensors, c.where());
}

Results run_scan(const NodeCall& c) {
  const OnnxGraph& body = c.graph("body");
  std::int64_t scanned = c.integer("num_scan_inputs", 0);
  if (scanned < 1 || scanned > static_cast<std::int64_t>(c.input_count())) c.refuse("num_scan_inputs does not fit");
  for (const char* name : {"scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions"})
    if (c.has_attribute(name)) c.refuse(fmt::format("reel does not run {}", name));
  std::size_t states = c.input_count() - static_cast<std::size_t>(scanned);
  if (body.outputs.size() < states) c.refuse("its body has too few outputs");
  std::vector<Tensor> state, inputs;
  for (std::size_t i = 0; i < c.input_count(); ++i) (i < states ? state : inputs).push_back(c.in(i));
  ScanResult result = scan(
      [&](std::span<const Tensor> before, std::span<const Tensor> parts) -> ScanStep {
        std::vector<Tensor> given(before.begin(), before.end());
        given.insert(given.end(), parts.begin(), parts.end());
        Results found = run_body(c, body, given);
        auto split = found.begin() + static_cast<std::ptrdiff_t>(states);
        return {{found.begin(), split}, {split, found.end()}};
      },
      state, inputs, c.where());
  Results all = std::move(result.state);
  all.insert(all.end(), result.outputs.begin(), result.outputs.end());
  return all;
}

Results run_loop(const NodeCall& c) {
  const OnnxGraph& body = c.graph("body");
  std::size_t states = c.input_count() < 2 ? 0 : c.input_count() - 2;
  if (c.has(1)) c.refuse("reel runs loops of a count only, without a condition");
  if (body.outputs.size() != 1 + states) c.refuse("its body has other outputs than its states");
  std::int64_t count = c.scalar_of(0);
  std::vector<Tensor> state;
  for (std::size_t i = 0; i < states; ++i) state.push_back(c.in(2 + i));
  DeviceGuard here(cpu);
  Tensor holds = full({}, true, {.dtype = boolean});
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<Tensor> given{full({}, i, {.dtype = i64}), holds};
    given.insert(given.end(), state.begin(), state.end());
    Results found = run_body(c, body, given);
    if (found[0].dtype() != boolean || found[0].numel() != 1) c.refuse("its body's condition is no bool");
    state.assign(found.begin() + 1, found.end());
    if (!found[0].item<bool>()) break;
  }
  return state;
}

}  // namespace

// scan.cpp writes them: loops of a traced function are steps of their own, not ops.
std::span<const Operator> loop_operators() {
  static constexpr Operator table[] = {{.type = "Scan", .run = run_scan}, {.type = "Loop", .run = run_loop}};
  return table;
}

}  // namespace reel::io::onnx
