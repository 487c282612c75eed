#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <reel/nn/call.h>
#include <reel/nn/packed.h>
#include <reel/tensor.h>

/// \file
/// Loops of any cell over sequences. A cell is a function of x (B, …) and the state before, which returns the state
/// after, or a CellStep with an output beside it: LSTMCell, GRUCell, RNNCell, the wrappers of cells.h, or a struct of
/// one's own:
///
///     struct Leaky : nn::Module {
///       nn::Linear input{*this, "input", 8, 16};
///
///       Tensor operator()(const Arg& x, const Tensor& h) const { return 0.9 * h + 0.1 * tanh(input(x)); }
///       Tensor initial_state(std::int64_t batch) const { return zeros({batch, 16}); }
///     };
///
/// A state is a tensor (B, …), a vector or tuple of states, or a struct for which `tensors_of(State&)` lists its tensors
/// (B, …), by an overload beside that struct.

namespace reel::nn {

/// The tensors of several states.
template <class State>
std::vector<Tensor*> tensors_of(std::vector<State>& states);
/// The tensors of a tuple of states.
template <class... States>
std::vector<Tensor*> tensors_of(std::tuple<States...>& states);

template <class State>
std::vector<Tensor*> tensors_of(std::vector<State>& states) {
  std::vector<Tensor*> all;
  for (State& state : states) {
    std::vector<Tensor*> own = tensors_of(state);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}
template <class... States>
std::vector<Tensor*> tensors_of(std::tuple<States...>& states) {
  std::vector<Tensor*> all;
  auto add = [&](auto& state) {
    std::vector<Tensor*> own = tensors_of(state);
    all.insert(all.end(), own.begin(), own.end());
  };
  std::apply([&](auto&... state) { (add(state), ...); }, states);
  return all;
}

/// The result of one step of a cell whose output is not the first tensor of its state.
template <class StateType>
struct CellStep {
  using State = StateType;  ///< the type of the state
  Tensor output;            ///< (B, …)
  State state;              ///< the state after the step
};

/// The tensors of a step: its output, then those of its state.
template <class State>
std::vector<Tensor*> tensors_of(CellStep<State>& step) {
  std::vector<Tensor*> all = tensors_of(step.state);
  all.insert(all.begin(), &step.output);
  return all;
}

/// A cell with a state: cell(x, state) gives the next one, or a CellStep.
template <class Cell, class State>
concept CellOver = requires(const Cell& cell, const Tensor& x, const State& state) {
  { cell(x, state) } -> std::convertible_to<State>;
} || requires(const Cell& cell, const Tensor& x, const State& state) {
  { cell(x, state) } -> std::convertible_to<CellStep<State>>;
};

/// A cell that makes its own first state: cell.initial_state(B).
template <class Cell>
concept CellWithState = requires(const Cell& cell) { cell.initial_state(std::int64_t{1}); };

/// The type of the state of a cell that makes its own first one.
template <CellWithState Cell>
using StateOf = std::remove_cvref_t<decltype(std::declval<const Cell&>().initial_state(std::int64_t{1}))>;

/// One step of any cell: its output, by default the first tensor of its state, and the state after it.
template <class State, CellOver<State> Cell>
CellStep<State> step_of(const Cell& cell, const Tensor& x, const State& state) {
  if constexpr (std::convertible_to<decltype(cell(x, state)), CellStep<State>>) {
    return cell(x, state);
  } else {
    State after = cell(x, state);
    return {*tensors_of(after).front(), after};
  }
}

/// Options of `unroll`.
struct UnrollOptions {
  bool reverse = false;  ///< whether each sequence runs from its last element to its first; default false
};

/// The result of `unroll` over Packed sequences.
template <class State>
struct Unrolled {
  Packed output;  ///< elements (N, …): the output at each element, in the order of the elements
  State state;    ///< (B, …): the state after each sequence's last step; the first one for an empty sequence
};

/// The result of `unroll` over padded sequences.
template <class State>
struct UnrolledSteps {
  Tensor output;  ///< (T, B, …): the output of each step
  State state;    ///< (B, …): the state after the last step
};

}  // namespace reel::nn

namespace reel::detail {

/// One step: replaces the tensors of the state and returns the output.
using UnrolledCell = std::function<Tensor(const Tensor& x, std::vector<Tensor>& state)>;

/// Runs a cell over sequences of elements and returns its outputs (N, …); `state` then has the last states.
Tensor unroll_packed(const nn::Packed& x, std::vector<Tensor>& state, const UnrolledCell& cell, bool reverse,
                     Location where);
/// Runs a cell over all steps of x (T, B, …) and returns its outputs (T, B, …); `state` then has the last states.
Tensor unroll_steps(const Arg& x, std::vector<Tensor>& state, const UnrolledCell& cell, bool reverse);

template <class State>
std::vector<Tensor> list_of(State& state) {
  using nn::tensors_of;
  std::vector<Tensor> list;
  for (Tensor* tensor : tensors_of(state)) list.push_back(*tensor);
  return list;
}
template <class State>
void assign_list(State& state, const std::vector<Tensor>& list) {
  using nn::tensors_of;
  std::size_t i = 0;
  for (Tensor* tensor : tensors_of(state)) *tensor = list[i++];
}

// The cell on lists of tensors; `state` is one to copy what is not a tensor from.
template <class Cell, class State>
UnrolledCell unrolled(const Cell& cell, State& state) {
  return [&cell, &state](const Tensor& x, std::vector<Tensor>& list) {
    assign_list(state, list);
    nn::CellStep<State> step = nn::step_of<State>(cell, x, state);
    list = list_of(step.state);
    return step.output;
  };
}

}  // namespace reel::detail

namespace reel::nn {

/// Runs a cell over each of the packed sequences, from the given state (B, …), and returns its outputs and last states.
/// One step takes all sequences that are long enough at once.
///
///     nn::LSTMCell cell(8, 16);
///     auto [output, state] = nn::unroll(cell, words, cell.initial_state(words.size()));
///
/// Throws: ShapeError unless the lengths fit the elements, and the state and what the cell returns have a row for each
/// sequence; Error if the elements are undefined; what the cell throws.
/// Source: TensorFlow's dynamic_rnn.
template <class State, CellOver<State> Cell>
Unrolled<State> unroll(const Cell& cell, const Packed& x, State state, UnrollOptions options = {},
                       Location where = Location::here()) {
  std::vector<Tensor> list = detail::list_of(state);
  Tensor output = detail::unroll_packed(x, list, detail::unrolled(cell, state), options.reverse, where);
  detail::assign_list(state, list);
  return {x.with(output, where), std::move(state)};
}
/// Runs a cell over each of the packed sequences, from the cell's own first state, and returns its outputs and last
/// states. One step takes all sequences that are long enough at once.
/// Throws: ShapeError unless the lengths fit the elements, and what the cell returns has a row for each sequence; Error
/// if the elements are undefined; what the cell throws.
/// Source: TensorFlow's dynamic_rnn.
template <CellWithState Cell>
Unrolled<StateOf<Cell>> unroll(const Cell& cell, const Packed& x, UnrollOptions options = {},
                               Location where = Location::here()) {
  return unroll<StateOf<Cell>>(cell, x, cell.initial_state(x.size()), options, where);
}
/// Runs a cell over all steps of x (T, B, …), from the given state (B, …), and returns its outputs and last state.
/// Throws: ShapeError unless x is (T, B, …), and the state and what the cell returns have B rows; Error if x is
/// undefined; what the cell throws.
/// Source: TensorFlow's dynamic_rnn.
template <class State, CellOver<State> Cell>
UnrolledSteps<State> unroll(const Cell& cell, const Arg& x, State state, UnrollOptions options = {}) {
  std::vector<Tensor> list = detail::list_of(state);
  Tensor output = detail::unroll_steps(x, list, detail::unrolled(cell, state), options.reverse);
  detail::assign_list(state, list);
  return {std::move(output), std::move(state)};
}
/// Runs a cell over all steps of x (T, B, …), from the cell's own first state, and returns its outputs and last state.
/// Throws: ShapeError unless x is (T, B, …), and what the cell returns has B rows; Error if x is undefined; what the
/// cell throws.
/// Source: TensorFlow's dynamic_rnn.
template <CellWithState Cell>
UnrolledSteps<StateOf<Cell>> unroll(const Cell& cell, const Tensor& x, UnrollOptions options = {},
                                    Location where = Location::here()) {
  std::int64_t batch = x.defined() && x.rank() > 1 ? x.size(1) : 0;
  return unroll<StateOf<Cell>>(cell, Arg(x, where), cell.initial_state(batch), options);
}

/// How the outputs (…, H) of two directions become one.
enum class MergeDirections : std::uint8_t {
  concat,  ///< forward, then reverse, along the last axis: (…, 2 H)
  sum,     ///< their sum: (…, H)
  mean,    ///< their mean: (…, H)
};

/// Options of `unroll_bidirectional`.
struct BidirectionalOptions {
  MergeDirections merge = MergeDirections::concat;  ///< default concat
};

/// The result of `unroll_bidirectional`.
template <class State, class ReverseState = State>
struct UnrolledBidirectional {
  Packed output;               ///< elements (N, …): the merged outputs at each element
  State state;                 ///< (B, …): the state of the forward cell after each sequence's last element
  ReverseState reverse_state;  ///< (B, …): the state of the reverse cell after each sequence's first element
};

/// The outputs of two directions, merged. Throws: ShapeError unless the shapes fit.
Tensor merge_directions(const Arg& forward, const Tensor& reverse, MergeDirections merge);

/// Runs one cell forward and another in reverse over each of the packed sequences, from their own first states, and
/// returns their merged outputs and both last states.
/// Throws: as `unroll`; ShapeError if the outputs have shapes that cannot be merged.
/// Source: TensorFlow's bidirectional_dynamic_rnn.
template <CellWithState Forward, CellWithState Reverse>
UnrolledBidirectional<StateOf<Forward>, StateOf<Reverse>> unroll_bidirectional(const Forward& forward,
                                                                               const Reverse& reverse, const Packed& x,
                                                                               BidirectionalOptions options = {},
                                                                               Location where = Location::here()) {
  auto ahead = unroll(forward, x, {}, where);
  auto back = unroll(reverse, x, {.reverse = true}, where);
  Tensor merged = merge_directions(Arg(ahead.output.elements, where), back.output.elements, options.merge);
  return {x.with(merged, where), std::move(ahead.state), std::move(back.state)};
}

}  // namespace reel::nn
