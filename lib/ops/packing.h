#pragma once

#include <span>
#include <utility>
#include <vector>

#include <reel/ops/recurrent.h>
#include <reel/ops/shape.h>

namespace reel::detail {

/// How the steps of sequences are packed: those of step 0 of all sequences that have one, then those of step 1 …, the
/// sequences with most steps first.
struct Packing {
  Tensor counts;          ///< (steps of the longest): the sequences that have each step
  Tensor places;          ///< (rows): where each packed row is before; undefined where all stay in place
  Tensor order;           ///< (B): the sequences by their lengths; undefined where they are in that order
  Tensor standing;        ///< (B): where each sequence stands among those; undefined likewise
  std::int64_t rows = 0;  ///< All steps of all sequences.
};

/// The lengths of the sequences x (T, B, …). Throws: DTypeError unless i32 or i64; ShapeError unless (B); IndexError for one
/// outside [0, T].
std::vector<std::int64_t> checked_lengths(const char* op, const Tensor& lengths, const Tensor& x, Location where);

/// The steps of `batch` sequences, all equally long, which are rows (step, sequence).
Packing rectangle(std::int64_t steps, std::int64_t batch);
/// Of so many rows (step, sequence), those of the sequences' first steps.
Packing pack_by_step(std::span<const std::int64_t> lengths, std::int64_t rows);
/// Of the rows of sequences that lie one behind the other.
Packing pack_by_sequence(std::span<const std::int64_t> lengths);

/// What a net gives for packed rows, and its state behind the last step of each sequence.
struct NetOutput {
  Tensor y;
  LSTMState state;
};

/// Layers of nets over packed rows, with two directions the net from the first step to the last before the one back.
/// states: (nets, B, H), c undefined where there is none.
/// run(net, reverse, rows, state) → NetOutput; between(rows) → rows, which the next layer takes.
template <class Run, class Between>
LSTMOutput run_layers(std::size_t nets, bool bidirectional, Tensor rows, const LSTMState& states, Run run,
                      Between between) {
  std::vector<Tensor> h_n, c_n;
  for (std::size_t net = 0; net < nets;) {
    if (net > 0) rows = between(std::move(rows));
    std::vector<Tensor> outputs;
    for (bool reverse : {false, true}) {
      if (reverse && !bidirectional) break;
      auto own = static_cast<std::int64_t>(net);
      LSTMState before{select(states.h, 0, own), states.c.defined() ? select(states.c, 0, own) : Tensor{}};
      NetOutput output = run(net++, reverse, rows, before);
      outputs.push_back(std::move(output.y));
      h_n.push_back(std::move(output.state.h));
      if (states.c.defined()) c_n.push_back(std::move(output.state.c));
    }
    rows = bidirectional ? concat(outputs, 1) : outputs[0];
  }
  return {std::move(rows), stack(h_n), c_n.empty() ? Tensor{} : stack(c_n)};
}

}  // namespace reel::detail
