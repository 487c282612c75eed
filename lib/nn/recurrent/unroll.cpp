#include <reel/nn/unroll.h>

#include <algorithm>
#include <numeric>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/shape.h>

#include "../../core/memory_error.h"
#include "../../core/op_error.h"
#include "packed.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* unroll_name = "unroll";

void check_rows(const char* what, const Tensor& tensor, std::int64_t batch) {
  if (tensor.defined() && (tensor.rank() == 0 || tensor.size(0) != batch))
    fail<ShapeError>(unroll_name, {}, "{} {} does not have a row for each of {} sequences", what, describe(tensor),
                     batch);
}

void check_state(const std::vector<Tensor>& state, std::int64_t batch) {
  for (const Tensor& tensor : state) check_rows("the state", tensor, batch);
}

Tensor checked_step(const UnrolledCell& cell, const Tensor& x, std::vector<Tensor>& state) {
  std::size_t count = state.size();
  Tensor output = cell(x, state);
  if (!output.defined()) fail<Error>(unroll_name, {}, "the cell returned an undefined output");
  if (state.size() != count)
    fail<Error>(unroll_name, {}, "the cell returned a state of {} tensors instead of {}", state.size(), count);
  check_rows("the cell's output", output, x.size(0));
  check_state(state, x.size(0));
  return output;
}

bool is_ascending(const std::vector<std::int64_t>& places) {
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

std::vector<std::int64_t> inverse_of(const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return inverse;
}

Tensor reordered(const Tensor& rows, const std::vector<std::int64_t>& order) {
  return rows.defined() && !is_ascending(order) ? index_select(rows, 0, tensor(order)) : rows;
}

// The order in which the elements of sequences are computed: step by step, the longest sequence first.
struct StepOrder {
  std::vector<std::int64_t> sequences;  // by descending lengths
  std::vector<std::int64_t> counts;     // of each step, the number of sequences that have it
  std::vector<std::int64_t> places;     // of each row, the index of its element

  StepOrder(const std::vector<std::int64_t>& lengths, bool reverse) : sequences(lengths.size()) {
    auto length_of = [&](std::int64_t sequence) { return lengths[static_cast<std::size_t>(sequence)]; };
    std::iota(sequences.begin(), sequences.end(), 0);
    std::ranges::stable_sort(sequences, std::greater(), length_of);
    std::vector<std::int64_t> begins(lengths.size());
    std::exclusive_scan(lengths.begin(), lengths.end(), begins.begin(), std::int64_t{0});
    std::int64_t longest = sequences.empty() ? 0 : length_of(sequences.front());
    for (std::int64_t step = 0; step < longest; ++step) {
      std::int64_t count = 0;
      for (; count < std::ssize(sequences); ++count) {
        std::int64_t sequence = sequences[static_cast<std::size_t>(count)], length = length_of(sequence);
        if (length <= step) break;
        places.push_back(begins[static_cast<std::size_t>(sequence)] + (reverse ? length - 1 - step : step));
      }
      counts.push_back(count);
    }
  }
};

// Runs the cell on rows in the order of the steps. The state's rows are those of the sequences by descending lengths;
// sequences that have ended keep theirs.
std::vector<Tensor> run_rows(const std::vector<Tensor>& steps, std::vector<Tensor>& state, const UnrolledCell& cell) {
  std::vector<std::vector<Tensor>> ended(state.size());
  auto keep_first = [&](std::int64_t count) {
    for (std::size_t i = 0; i < state.size(); ++i) {
      if (!state[i].defined() || state[i].size(0) == count) continue;
      ended[i].push_back(slice(state[i], 0, count, state[i].size(0)));
      state[i] = slice(state[i], 0, 0, count);
    }
  };
  std::vector<Tensor> outputs;
  for (const Tensor& x : steps) {
    keep_first(x.size(0));
    outputs.push_back(checked_step(cell, x, state));
  }
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (ended[i].empty()) continue;
    ended[i].push_back(state[i]);
    std::ranges::reverse(ended[i]);
    state[i] = concat(ended[i]);
  }
  return outputs;
}

// The shape of the outputs is known only from the cell, so it runs on no rows.
Tensor output_without_elements(const Tensor& elements, const std::vector<Tensor>& state, const UnrolledCell& cell) {
  std::vector<Tensor> none;
  for (const Tensor& tensor : state) none.push_back(tensor.defined() ? slice(tensor, 0, 0, 0) : tensor);
  return checked_step(cell, elements, none);
}

}  // namespace

Tensor merge_directions(const Arg& forward, const Tensor& reverse, MergeDirections merge) {
  CallerScope caller(forward.location());
  const Tensor& ahead = tensor_of("merge_directions", forward);
  if (!reverse.defined()) fail<Error>("merge_directions", {}, "the outputs in reverse are an undefined tensor");
  if (merge == MergeDirections::concat) return concat({ahead, reverse}, -1);
  if (ahead.shape() != reverse.shape())
    fail<ShapeError>("merge_directions", {}, "outputs {} and {} have no sum; choose MergeDirections::concat",
                     describe(ahead), describe(reverse));
  Tensor sum = ahead + reverse;
  return merge == MergeDirections::mean ? sum * 0.5 : sum;
}

}  // namespace reel::nn

namespace reel::detail {

Tensor unroll_packed(const nn::Packed& x, std::vector<Tensor>& state, const UnrolledCell& cell, bool reverse,
                     Location where) {
  return with_memory_error(nn::unroll_name, where, [&]() -> Tensor {
    using namespace nn;
    check_packed(unroll_name, x, where);
    CallerScope caller(where);
    DeviceGuard here(x.elements.device());
    check_state(state, x.size());
    if (x.elements.size(0) == 0) return output_without_elements(x.elements, state, cell);
    StepOrder order(x.lengths, reverse);
    for (Tensor& tensor : state) tensor = reordered(tensor, order.sequences);
    Tensor outputs = concat(run_rows(split(reordered(x.elements, order.places), order.counts), state, cell));
    for (Tensor& tensor : state) tensor = reordered(tensor, inverse_of(order.sequences));
    return reordered(outputs, inverse_of(order.places));
  });
}

Tensor unroll_steps(const Arg& x, std::vector<Tensor>& state, const UnrolledCell& cell, bool reverse) {
  return with_memory_error(nn::unroll_name, x.location(), [&]() -> Tensor {
    using namespace nn;
    const Tensor& input = tensor_of(unroll_name, x);
    CallerScope caller(x.location());
    if (input.rank() < 2) fail<ShapeError>(unroll_name, {}, "x {} is not (T, B, …)", describe(input));
    check_state(state, input.size(1));
    std::int64_t length = input.size(0), batch = input.size(1);
    if (length == 0) {
      // The shape of the outputs is known only from the cell.
      std::vector<Tensor> unused = state;
      Shape row;
      for (int axis = 1; axis < input.rank(); ++axis) row.push_back(input.size(axis));
      Tensor x = zeros(row, {.dtype = input.dtype(), .device = input.device()});
      return slice(unsqueeze(checked_step(cell, x, unused), 0), 0, 0, 0);
    }
    std::vector<Tensor> steps =
        split(flatten(input, 0, 1), std::vector<std::int64_t>(static_cast<std::size_t>(length), batch));
    if (reverse) std::ranges::reverse(steps);
    std::vector<Tensor> outputs = run_rows(steps, state, cell);
    if (reverse) std::ranges::reverse(outputs);
    return stack(outputs);
  });
}

}  // namespace reel::detail
