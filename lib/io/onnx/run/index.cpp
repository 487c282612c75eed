#include <reel/ops.h>

#include "../../../ops/if_needed.h"
#include "run.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

Results run_gather(const NodeCall& c) {
  return {take(c.first(), c.in(1), c.axis(c.integer("axis", 0), c.in(0).rank()))};
}

Results run_gather_elements(const NodeCall& c) {
  return {gather(c.first(), c.axis(c.integer("axis", 0), c.in(0).rank()), c.in(1))};
}

bool adds(const NodeCall& c) {
  std::string reduction = c.text("reduction", "none");
  if (reduction != "none" && reduction != "add") c.refuse("its reduction is neither 'none' nor 'add'");
  return reduction == "add";
}

Results run_scatter_elements(const NodeCall& c) {
  int axis = c.axis(c.integer("axis", 0), c.in(0).rank());
  return {adds(c) ? scatter_add(c.first(), axis, c.in(1), c.in(2)) : scatter(c.first(), axis, c.in(1), c.in(2))};
}

// Indices (…, 1) of rows.
Results run_scatter_nd(const NodeCall& c) {
  const Tensor& indices = c.in(1);
  if (indices.rank() == 0 || indices.size(-1) != 1) c.refuse("reel runs ScatterND on rows of axis 0 only");
  Tensor rows = squeeze(Arg(indices, c.where()), -1);
  return {index_put(c.first(), std::vector<Tensor>{rows}, c.in(2), {.accumulate = adds(c)})};
}

}  // namespace

std::span<const Runner> index_runners() {
  static constexpr Runner table[] = {
      {"Gather", run_gather},
      {"GatherElements", run_gather_elements},
      {"ScatterElements", run_scatter_elements},
      {"ScatterND", run_scatter_nd},
  };
  return table;
}

}  // namespace reel::io::onnx
