#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "../core/memory_order.h"
#include "../core/op.h"

// How calls of ops that several files share can be joined with others; see Joining.

namespace reel::detail {

/// For an elementwise op: by rows if all operands have the result's shape; others broadcast, and are stacked.
Joining by_elements(const Call& call);
/// Returns true if the op's calls are joined by `by_elements`.
bool is_elementwise(const OpInfo& op);

/// For an op whose calls never run with others: they may have pending results.
Joining runs_alone(const Call& call);

/// For an op that treats the rows of all its operands one by one.
inline Joining by_rows(const Call& call) {
  for (const Tensor* input : call.inputs)
    if (input->rank() == 0) return {};
  return {.by = Joining::By::rows};
}

/// For an op that treats leading axes one by one: by rows if there are any, else stacked.
inline Joining by_leading_axes(const Call& call) {
  if (call.input(0).rank == 0) return {};
  return {.by = call.input(0).rank > 1 ? Joining::By::rows : Joining::By::stacked};
}

/// Returns true if an operand's axes are in memory in their own order, as they would be once joined with others: the order
/// in which sums add depends on it.
inline bool is_in_order(const Body& x) { return x.contiguous || MemoryOrder(x.dims, x.strides, x.rank).is_logical; }
inline bool has_logical_order(const Call& call) {
  return std::ranges::all_of(call.inputs, [](const Tensor* input) { return is_in_order(input->body()); });
}

/// For a reduction, whose result has size 1 on the reduced axes: by rows if axis 0 is not reduced.
inline Joining by_kept_axes(const Call& call) {
  const Body& x = call.input(0);
  const OutputSpec& y = call.specs[0];
  if (x.rank != y.rank || x.rank == max_rank || !has_logical_order(call)) return {};
  bool rows = x.rank > 0 && x.dims[0] == y.dims[0];
  return {.by = rows ? Joining::By::rows : Joining::By::stacked};
}

/// For an op that treats matrices, the last two axes, one by one: by rows if there are axes before them, else stacked.
inline Joining by_matrices(const Call& call) {
  int rank = call.input(0).rank;
  for (const Tensor* input : call.inputs)
    if (input->rank() != rank) return {};
  return {.by = rank > 2 ? Joining::By::rows : Joining::By::stacked};
}

/// Stacked, for an op along one axis, which AxisAttributes or attributes that begin with an axis name.
inline Joining stacked_beside_axis(const Call& call) {
  if (call.input(0).rank == max_rank || !has_logical_order(call)) return {};
  return {.by = Joining::By::stacked, .attributes = [](std::span<std::byte> attributes, std::int64_t) {
            ++*reinterpret_cast<std::int64_t*>(attributes.data());
          }};
}

/// For an op along one axis, which AxisAttributes or attributes that begin with an axis name: by rows, or stacked if it
/// is axis 0.
inline Joining by_other_axes(const Call& call) {
  std::int64_t axis = *reinterpret_cast<const std::int64_t*>(call.attribute_bytes.data());
  if (!has_logical_order(call)) return {};
  return axis > 0 ? by_rows(call) : stacked_beside_axis(call);
}

}  // namespace reel::detail
