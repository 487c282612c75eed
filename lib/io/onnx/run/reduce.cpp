#include <reel/ops.h>

#include "../../../ops/if_needed.h"
#include "run.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

Shape axes_of(const NodeCall& c, std::vector<std::int64_t> axes) {
  int rank = c.in(0).rank();
  if (axes.empty())
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  if (axes.size() > static_cast<std::size_t>(max_rank)) c.refuse("it reduces more than 8 axes");
  return Shape(std::span(axes.data(), axes.size()));
}

using Reduce = Tensor (*)(const Arg&, const Axes&, ReduceOptions);

template <Reduce reduce>
Results reduced(const NodeCall& c) {
  Tensor y = reduce(c.first(), axes_of(c, c.integers("axes")), {.keepdims = c.integer("keepdims", 1) != 0});
  return {to_if_needed(Arg(y, c.where()), c.in(0).dtype())};
}

Results run_sum(const NodeCall& c) {
  std::vector<std::int64_t> axes = c.has(1) ? c.list(1) : std::vector<std::int64_t>();
  if (axes.empty() && c.integer("noop_with_empty_axes", 0) != 0) return {c.in(0)};
  Tensor y = sum(c.first(), axes_of(c, axes), {.keepdims = c.integer("keepdims", 1) != 0});
  return {to_if_needed(Arg(y, c.where()), c.in(0).dtype())};
}

template <bool largest>
Results run_arg(const NodeCall& c) {
  if (c.integer("select_last_index", 0) != 0) c.refuse("it selects the last of equal elements");
  int axis = c.axis(c.integer("axis", 0), c.in(0).rank());
  ReduceOptions options{.keepdims = c.integer("keepdims", 1) != 0};
  return {largest ? argmax(c.first(), axis, options) : argmin(c.first(), axis, options)};
}

Results run_cumsum(const NodeCall& c) {
  if (c.integer("exclusive", 0) != 0) c.refuse("it leaves out each element itself");
  int axis = c.axis(c.scalar_of(1), c.in(0).rank());
  bool reverse = c.integer("reverse", 0) != 0;
  Tensor x = reverse ? flip(c.first(), axis) : c.in(0);
  Tensor y = cumsum(Arg(x, c.where()), axis);
  if (reverse) y = flip(Arg(y, c.where()), axis);
  return {to_if_needed(Arg(y, c.where()), c.in(0).dtype())};
}

Results run_topk(const NodeCall& c) {
  int axis = c.axis(c.integer("axis", -1), c.in(0).rank());
  auto [values, indices] = topk(c.first(), c.scalar_of(1), axis, {.largest = c.integer("largest", 1) != 0});
  return {values, indices};
}

}  // namespace

std::span<const Runner> reduce_runners() {
  static constexpr Runner table[] = {
      {"ReduceSum", run_sum},
      {"ReduceMean", reduced<static_cast<Reduce>(reel::mean)>},
      {"ReduceMax", reduced<static_cast<Reduce>(reel::max)>},
      {"ReduceMin", reduced<static_cast<Reduce>(reel::min)>},
      {"ReduceProd", reduced<static_cast<Reduce>(reel::prod)>},
      {"ReduceLogSumExp", reduced<static_cast<Reduce>(reel::logsumexp)>},
      {"ArgMax", run_arg<true>},
      {"ArgMin", run_arg<false>},
      {"CumSum", run_cumsum},
      {"TopK", run_topk},
  };
  return table;
}

}  // namespace reel::io::onnx
