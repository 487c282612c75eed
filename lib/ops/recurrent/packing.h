#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/recurrent.h>
#include <reel/ops/shape.h>

#include "../if_needed.h"

namespace reel::detail {

/// How the steps of sequences are packed: first step 0 of all sequences that have one, then step 1 …, with the
/// sequences in descending order of their lengths.
struct Packing {
  Tensor counts;  ///< (steps of the longest), on the CPU: the number of sequences that have each step
  Tensor places;  ///< (rows): the index of each packed row before packing; undefined if all rows keep their index
  Tensor order;   ///< (B): the sequences in the order of their lengths; undefined if they are in that order already
  Tensor inverse_order;   ///< (B): the inverse permutation of `order`; undefined if `order` is
  std::int64_t rows = 0;  ///< steps of all sequences together
};

/// The lengths of the sequences x (T, B, …). Throws: DTypeError unless i32 or i64; ShapeError unless (B); IndexError
/// for one outside [0, T]. Waits for the values if the lengths are on a device other than the CPU.
std::vector<std::int64_t> checked_lengths(const char* op, const Tensor& lengths, const Tensor& x, Location where);

/// The packing of `batch` sequences of equal length, whose rows are in the order (step, sequence).
Packing rectangle(std::int64_t steps, std::int64_t batch);
/// The packing of the first lengths[i] steps of each sequence i, out of `rows` rows in the order (step, sequence).
/// Index tensors are made on the default device.
Packing pack_by_step(std::span<const std::int64_t> lengths, std::int64_t rows);
/// The packing of rows in the order (sequence, step), with sequences concatenated.
Packing pack_by_sequence(std::span<const std::int64_t> lengths);

/// A zero that depends on the tensors: the sum over no elements of any of them, whose gradients are zeros. With it, a
/// layer's result for sequences without steps depends on the layer's weights, as with steps. Undefined tensors are
/// skipped.
Tensor empty_sum(std::span<const Tensor> tensors, DType dtype);

/// The outputs of a net for packed rows, and its state after the last step of each sequence.
struct NetOutput {
  Tensor y;
  LSTMState state;
};

/// Runs a net step by step: step(rows of p, state) → the next state, for the sequences that have the step.
template <class Step>
NetOutput run_steps(const Tensor& p, LSTMState state, const Tensor& counts, bool reverse, Step step) {
  std::vector<Tensor> parts = split(p, counts.to_vector<std::int64_t>());
  if (reverse) std::reverse(parts.begin(), parts.end());
  auto first_of = [](const Tensor& states, std::int64_t count) {
    return states.defined() ? slice(states, 0, 0, count) : states;
  };
  auto with_first = [](const Tensor& rows, const Tensor& states) {
    if (!states.defined() || rows.size(0) == states.size(0)) return rows;
    return concat({rows, slice(states, 0, rows.size(0))});
  };
  for (Tensor& part : parts) {
    std::int64_t count = part.size(0);
    LSTMState after = step(part, LSTMState{first_of(state.h, count), first_of(state.c, count)});
    state = {with_first(after.h, state.h), with_first(after.c, state.c)};
    part = std::move(after.h);
  }
  if (reverse) std::reverse(parts.begin(), parts.end());
  return {concat(parts), std::move(state)};
}

/// Runs layers of nets on rows of sequences in their unpacked order; with two directions, the net that runs forward
/// comes before the one that runs in reverse. The output is unpacked too, with zeros where a sequence has no step.
/// states: (nets, B, H), c undefined if the cell has none; the resulting states have the rows' dtype.
/// run(net, reverse, rows, state) → NetOutput; between(rows) → the rows that the next layer gets; merge(the outputs of
/// each direction) → those of the layer.
template <class Run, class Between, class Merge>
LSTMOutput run_layers(const Packing& packing, const Tensor& elements, LSTMState states, std::size_t nets,
                      bool bidirectional, Run run, Between between, Merge merge) {
  bool has_memory = states.c.defined();
  Tensor rows = packing.places.defined() ? index_select(elements, 0, packing.places) : elements;
  auto reordered = [](const Tensor& states, const Tensor& order) {
    return states.defined() && order.defined() ? index_select(states, 1, order) : states;
  };
  states = {reordered(states.h, packing.order), reordered(states.c, packing.order)};
  std::vector<Tensor> h_n, c_n;
  for (std::size_t net = 0; net < nets;) {
    if (net > 0) rows = between(std::move(rows));
    std::vector<Tensor> outputs;
    for (bool reverse : {false, true}) {
      if (reverse && !bidirectional) break;
      auto own = static_cast<std::int64_t>(net);
      LSTMState before{select(states.h, 0, own), has_memory ? select(states.c, 0, own) : Tensor{}};
      NetOutput output = run(net++, reverse, rows, before);
      outputs.push_back(std::move(output.y));
      h_n.push_back(std::move(output.state.h));
      if (has_memory) c_n.push_back(std::move(output.state.c));
    }
    rows = merge(outputs);
  }
  DType dtype = elements.dtype();
  auto finished = [&](const std::vector<Tensor>& states) {
    Tensor all = states.size() == 1 ? unsqueeze(states[0], 0) : stack(states);
    return to_if_needed(reordered(all, packing.inverse_order), dtype);
  };
  rows = to_if_needed(rows, dtype);
  if (packing.places.defined())
    rows = index_put(zeros({elements.size(0), rows.size(1)}, {.dtype = dtype, .device = rows.device()}),
                     {packing.places}, rows);
  return {std::move(rows), finished(h_n), has_memory ? finished(c_n) : Tensor{}};
}

}  // namespace reel::detail
