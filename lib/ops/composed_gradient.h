#pragma once

#include <span>
#include <vector>

#include <reel/ops/elementwise.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../tape/gradient.h"

namespace reel::detail {

/// Gives the gradients of an op that has saved all its inputs by differentiating twin(inputs), which computes the outputs
/// from them with differentiable ops: for where an outer tape records. Outputs without a gradient may be undefined.
template <class Twin>
void give_composed(Gradient& g, Twin twin) {
  std::vector<Tensor> inputs, sources;
  for (std::size_t i = 0; i < g.input_count(); ++i) {
    Tensor input = g.saved_input(static_cast<int>(i));
    // One input may be computed from another, and what flows through that is not this op's.
    if (g.wants(i)) sources.emplace_back(input = reshape(input, input.shape()));
    inputs.push_back(std::move(input));
  }
  Tape tape;
  std::vector<Tensor> outputs = twin(std::span<const Tensor>(inputs));
  Tensor total;
  for (std::size_t k = 0; k < g.output_count(); ++k) {
    if (!g.has_output(k)) continue;
    Tensor part = sum(outputs[k] * g.output(k));
    total = total.defined() ? total + part : part;
  }
  std::vector<Tensor> gradients = tape.gradient(total, sources, {.unconnected = Unconnected::zeros});
  for (std::size_t i = 0, next = 0; i < g.input_count(); ++i)
    if (g.wants(i)) g.give(i, std::move(gradients[next++]));
}

}  // namespace reel::detail
