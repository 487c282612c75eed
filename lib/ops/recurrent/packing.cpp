#include "packing.h"

#include <algorithm>
#include <numeric>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/reduce.h>

#include "../../core/op_error.h"
#include "../if_needed.h"

namespace reel::detail {

namespace {

bool is_rising_from_zero(const std::vector<std::int64_t>& numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

// place(sequence, step) is the index of a row before packing, out of `rows_before` rows.
template <class Place>
Packing pack(std::span<const std::int64_t> lengths, std::int64_t rows_before, Place place) {
  Packing packing;
  packing.rows = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (packing.rows == 0) return packing;
  std::vector<std::int64_t> order(lengths.size()), inverse_order(lengths.size()), counts, places;
  std::iota(order.begin(), order.end(), 0);
  auto length_of = [&](std::int64_t sequence) { return lengths[static_cast<std::size_t>(sequence)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return length_of(a) > length_of(b); });
  for (std::size_t i = 0; i < order.size(); ++i)
    inverse_order[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  places.reserve(static_cast<std::size_t>(packing.rows));
  std::int64_t steps = length_of(order[0]);
  for (std::int64_t step = 0, count = std::ssize(order); step < steps; ++step) {
    while (length_of(order[static_cast<std::size_t>(count - 1)]) <= step) --count;
    counts.push_back(count);
    for (std::int64_t i = 0; i < count; ++i) places.push_back(place(order[static_cast<std::size_t>(i)], step));
  }
  {
    DeviceGuard there(cpu);
    packing.counts = tensor(counts);
  }
  if (packing.rows != rows_before || !is_rising_from_zero(places)) packing.places = tensor(places);
  if (!is_rising_from_zero(order)) {
    packing.order = tensor(order);
    packing.inverse_order = tensor(inverse_order);
  }
  return packing;
}

}  // namespace

std::vector<std::int64_t> checked_lengths(const char* op, const Tensor& lengths, const Tensor& x, Location where) {
  if (lengths.dtype() != DType::i32 && lengths.dtype() != DType::i64)
    fail<DTypeError>(op, where, "lengths are i32 or i64, not {}", describe(lengths));
  if (lengths.shape() != Shape{x.size(1)})
    fail<ShapeError>(op, where, "lengths {} are not ({},), one for each example of x {}", describe(lengths), x.size(1),
                     to_string(x.shape()));
  std::vector<std::int64_t> values = to_if_needed(lengths, DType::i64).to_vector<std::int64_t>();
  for (std::int64_t length : values)
    if (length < 0 || length > x.size(0))
      fail<IndexError>(op, where, "the length {} is not in [0, {}], the steps of x {}", length, x.size(0),
                       to_string(x.shape()));
  return values;
}

Tensor empty_sum(std::span<const Tensor> tensors, DType dtype) {
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors)
    if (tensor.defined()) parts.push_back(to_if_needed(slice(reshape(tensor, {tensor.numel()}), 0, 0, 0), dtype));
  return sum(concat(parts));
}

Packing rectangle(std::int64_t steps, std::int64_t batch) {
  Packing packing;
  packing.rows = steps * batch;
  if (packing.rows > 0) packing.counts = full({steps}, batch, {.dtype = DType::i64, .device = cpu});
  return packing;
}

Packing pack_by_step(std::span<const std::int64_t> lengths, std::int64_t rows) {
  std::int64_t batch = std::ssize(lengths);
  return pack(lengths, rows, [=](std::int64_t sequence, std::int64_t step) { return step * batch + sequence; });
}

Packing pack_by_sequence(std::span<const std::int64_t> lengths) {
  std::vector<std::int64_t> starts(lengths.size() + 1);
  std::partial_sum(lengths.begin(), lengths.end(), starts.begin() + 1);
  return pack(lengths, starts.back(), [&](std::int64_t sequence, std::int64_t step) {
    return starts[static_cast<std::size_t>(sequence)] + step;
  });
}

}  // namespace reel::detail
