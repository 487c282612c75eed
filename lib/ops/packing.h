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

#include "if_needed.h"

namespace reel::detail {

/// How the steps of sequences are packed: those of step 0 of all sequences that have one, then those of step 1 …, the
/// sequences with most steps first.
struct Packing {
  Tensor counts;          ///< (steps of the longest), on the CPU: the sequences that have each step
  Tensor places;          ///< (rows): where each packed row is before; undefined where all stay in place
  Tensor order;           ///< (B): the sequences by their lengths; undefined where they are in that order
  Tensor standing;        ///< (B): where each sequence stands among those; undefined likewise
  std::int64_t rows = 0;  ///< All steps of all sequences.
};

/// The lengths of the sequences x (T, B, …). Throws: DTypeError unless i32 or i64; ShapeError unless (B); IndexError for one
/// outside [0, T]. Of lengths on another device than the CPU it waits for the values.
std::vector<std::int64_t> checked_lengths(const char* op, const Tensor& lengths, const Tensor& x, Location where);

/// The steps of `batch` sequences, all equally long, which are rows (step, sequence).
Packing rectangle(std::int64_t steps, std::int64_t batch);
/// Of so many rows (step, sequence), those of the sequences' first steps. Places and orders are made on the default device.
Packing pack_by_step(std::span<const std::int64_t> lengths, std::int64_t rows);
/// The same of the rows of sequences that lie one behind the other.
Packing pack_by_sequence(std::span<const std::int64_t> lengths);

/// The sum over no elements of any of the tensors: 0, whose gradient by each of them is zeros. With it, what a layer gives
/// for sequences without steps depends on the layer's weights, as with steps. Undefined ones are left out.
Tensor empty_sum(std::span<const Tensor> tensors, DType dtype);

/// What a net gives for packed rows, and its state behind the last step of each sequence.
struct NetOutput {
  Tensor y;
  LSTMState state;
};

/// A net step by step: step(rows of p, state) → the next state, for as many sequences as have the step.
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

/// Layers of nets, with two directions the net from the first step to the last before the one back, over the rows of
/// sequences as they lie before they are packed; the output lies likewise, with zeros where no sequence has a step.
/// states: (nets, B, H), c undefined where there is none; those that come out have the rows' dtype.
/// run(net, reverse, rows, state) → NetOutput; between(rows) → the rows that the next layer takes.
template <class Run, class Between>
LSTMOutput run_layers(const Packing& packing, const Tensor& elements, LSTMState states, std::size_t nets,
                      bool bidirectional, Run run, Between between) {
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
    rows = bidirectional ? concat(outputs, 1) : outputs[0];
  }
  DType dtype = elements.dtype();
  auto finished = [&](const std::vector<Tensor>& states) {
    return to_if_needed(reordered(stack(states), packing.standing), dtype);
  };
  rows = to_if_needed(rows, dtype);
  if (packing.places.defined())
    rows = index_put(zeros({elements.size(0), rows.size(1)}, {.dtype = dtype, .device = rows.device()}),
                     {packing.places}, rows);
  return {std::move(rows), finished(h_n), has_memory ? finished(c_n) : Tensor{}};
}

}  // namespace reel::detail
