#include <reel/ops/sort.h>

#include <reel/no_record.h>
#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/scan.h>
#include <reel/ops/shape.h>

#include "../../core/op_error.h"
#include "../if_needed.h"

namespace reel {

using namespace detail;

namespace {

// 0 for the first row of sorted columns (N, M), N > 0, then 1 where an element differs from the one before.
Tensor changes(const Tensor& sorted) {
  Shape one = sorted.shape();
  one[0] = 1;
  Tensor differs = not_equal(slice(sorted, 0, 1), slice(sorted, 0, 0, -1));
  return concat({zeros(one, {.dtype = DType::i64, .device = sorted.device()}), to(differs, DType::i64)}, 0);
}

// The rank of each element of columns (N, M) or of (N) among the distinct ones of its column.
Tensor dense_ranks(const Tensor& columns) {
  auto [sorted, order] = sort(columns, 0);
  Tensor nothing = zeros(columns.shape(), {.dtype = DType::i64, .device = columns.device()});
  return scatter(nothing, 0, order, cumsum(changes(sorted), 0));
}

// Equal elements of a vector, which are numbered in ascending order.
struct EqualElements {
  Tensor first;  // the index of the first of each
  Tensor ranks;  // the number of each element
  Tensor counts;
};

EqualElements equal_elements(const Tensor& vector) {
  auto [sorted, order] = sort(vector, 0);
  Tensor differs = changes(sorted);
  TensorOptions options{.dtype = DType::i64, .device = vector.device()};
  Tensor starts = concat({zeros({1}, options), reshape(nonzero(differs), {-1})}, 0);
  Tensor ends = concat({slice(starts, 0, 1), full({1}, vector.numel(), options)}, 0);
  return {take(order, starts), scatter(zeros(vector.shape(), options), 0, order, cumsum(differs, 0)), ends - starts};
}

// Numbers that order the rows of (N, M), M > 0, as their elements do: pairs of columns are merged until one is left.
Tensor row_ranks(const Tensor& rows) {
  std::int64_t count = rows.size(0);
  Tensor ranks = dense_ranks(rows);
  while (ranks.size(1) > 1) {
    std::int64_t columns = ranks.size(1), even = columns - columns % 2;
    Tensor merged = slice(ranks, 1, 0, even, 2) * count + slice(ranks, 1, 1, even, 2);
    if (even < columns) merged = concat({merged, slice(ranks, 1, even)}, 1);
    ranks = dense_ranks(merged);
  }
  return reshape(ranks, {-1});
}

}  // namespace

UniqueElements unique(const Arg& x) {
  const Tensor& tensor = tensor_of("unique", x);
  OpScope caller(x.location(), "unique");
  NoRecord pause;  // no gradient flows through sets
  TensorOptions options{.dtype = DType::i64, .device = tensor.device()};
  Tensor flat = reshape(tensor, {-1});
  if (flat.numel() == 0) return {copy(flat), zeros(tensor.shape(), options), zeros({0}, options)};
  EqualElements found = equal_elements(flat);
  return {take(flat, found.first), reshape(found.ranks, tensor.shape()), found.counts};
}

UniqueElements unique(const Arg& x, int axis) {
  const Tensor& tensor = tensor_of("unique", x);
  OpScope caller(x.location(), "unique");
  NoRecord pause;  // no gradient flows through sets
  std::int64_t count = tensor.size(axis);
  TensorOptions options{.dtype = DType::i64, .device = tensor.device()};
  if (count == 0) return {copy(tensor), zeros({0}, options), zeros({0}, options)};
  Tensor rows = reshape(transpose(tensor, 0, axis), {count, tensor.numel() / count});
  EqualElements found = equal_elements(rows.numel() == 0 ? zeros({count}, options) : row_ranks(rows));
  return {take(tensor, found.first, axis), found.ranks, found.counts};
}

}  // namespace reel
