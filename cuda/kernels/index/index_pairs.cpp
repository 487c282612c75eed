#include "index_pairs.h"

#include <algorithm>
#include <limits>

#include "../../../lib/core/context.h"
#include "../../../lib/core/fail.h"
#include "../../../lib/core/op.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

using Axis = IndexAxes::Axis;

std::int64_t product(const Axis* axes, int count) {
  std::int64_t product = 1;
  for (int k = 0; k < count; ++k) product *= axes[k].size;
  return product;
}

// The offsets of operands along some axes in row-major order. The strides of each operand are a member of Axis.
template <int operand_count>
Offsets<operand_count> offsets_of(const Axis* axes, int rank, std::int64_t Axis::*const (&members)[operand_count]) {
  std::int64_t dims[8], strides[operand_count][8];
  View views[operand_count];
  const View* operands[operand_count];
  for (int k = 0; k < operand_count; ++k) {
    for (int axis = 0; axis < rank; ++axis) {
      dims[axis] = axes[axis].size;
      strides[k][axis] = axes[axis].*members[k];
    }
    views[k] = {nullptr, dims, strides[k], product(axes, rank), rank, DType::f32, false};
    operands[k] = &views[k];
  }
  return Offsets<operand_count>(Iteration<operand_count>(operands));
}

}  // namespace

IndexAxes IndexAxes::of_rows(const View& listed, const View& indexed, const View& indices, int axis) {
  IndexAxes axes;
  axes.size = indexed.dims[axis];
  axes.step = indexed.strides[axis];
  axes.first_inner = axis;
  for (int k = 0; k < axis; ++k)
    axes.columns[axes.column_rank++] = {listed.dims[k], listed.strides[k], indexed.strides[k], 0};
  for (int k = 0; k < indices.rank; ++k)
    axes.list[axes.list_rank++] = {indices.dims[k], listed.strides[axis + k], 0, indices.strides[k]};
  for (int k = axis + 1; k < indexed.rank; ++k) {
    int own = k - 1 + indices.rank;
    axes.columns[axes.column_rank++] = {listed.dims[own], listed.strides[own], indexed.strides[k], 0};
  }
  return axes;
}

IndexAxes IndexAxes::of_elements(const View& listed, const View& indexed, const View& index, int axis) {
  IndexAxes axes;
  axes.size = indexed.dims[axis];
  axes.step = indexed.strides[axis];
  axes.first_inner = axis;
  axes.list[axes.list_rank++] = {index.dims[axis], listed.strides[axis], 0, index.strides[axis]};
  for (int k = 0; k < index.rank; ++k) {
    if (k == axis) continue;
    std::int64_t step = index.dims[k] == 1 ? 0 : index.strides[k];
    axes.columns[axes.column_rank++] = {index.dims[k], listed.strides[k], indexed.strides[k], step};
  }
  return axes;
}

bool IndexAxes::are_rows() const {
  return std::all_of(columns, columns + column_rank, [](const Axis& axis) { return axis.index == 0; });
}

std::int64_t IndexAxes::widen(std::int64_t bytes, const void* listed, const void* indexed) {
  if (column_rank == first_inner || !are_rows()) return bytes;
  Axis& last = columns[column_rank - 1];
  if (last.listed != 1 || last.indexed != 1) return bytes;
  auto fits = [&](std::int64_t by) {
    auto divides = [by](std::int64_t number) { return number % by == 0; };
    auto even = [&](const Axis& axis) { return &axis == &last || (divides(axis.listed) && divides(axis.indexed)); };
    auto aligned = [&](const void* data) { return reinterpret_cast<std::uintptr_t>(data) % (by * bytes) == 0; };
    return divides(last.size) && divides(step) && std::all_of(columns, columns + column_rank, even) &&
           std::all_of(list, list + list_rank, even) && aligned(listed) && aligned(indexed);
  };
  std::int64_t by = 16 / bytes;
  while (by > 1 && !fits(by)) by /= 2;
  last.size /= by;
  step /= by;
  for (Axis* axis = columns; axis < columns + column_rank - 1; ++axis) {
    axis->listed /= by;
    axis->indexed /= by;
  }
  for (Axis* axis = list; axis < list + list_rank; ++axis) axis->listed /= by;
  return bytes * by;
}

IndexPairs::IndexPairs(const IndexAxes& axes)
    : column_offsets_(offsets_of<3>(axes.columns, axes.column_rank, {&Axis::listed, &Axis::indexed, &Axis::index})),
      list_offsets_(offsets_of<2>(axes.list, axes.list_rank, {&Axis::listed, &Axis::index})),
      columns_(product(axes.columns, axes.column_rank)),
      list_count_(product(axes.list, axes.list_rank)),
      inner_count_(product(axes.columns + axes.first_inner, axes.column_rank - axes.first_inner)),
      step_(axes.step) {
  inner_ = Split(inner_count_, count());
  list_split_ = Split(list_count_, count());
}

void check_countable(std::int64_t count) {
  constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
  if (count < most) return;
  const Call* call = context().running;
  fail<Error>(call ? call->op.name : "an op", call ? call->where : Location{},
              "there are {} indices; on a device there can be fewer than {}", count, most);
}

}  // namespace reel::detail::inline REEL_TARGET
