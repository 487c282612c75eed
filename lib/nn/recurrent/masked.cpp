#include <reel/nn/masked.h>

#include <limits>

#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/in_place.h>
#include <reel/ops/index.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../../core/memory_error.h"
#include "../../core/op_error.h"
#include "../../dispatch/autocast.h"
#include "../../ops/if_needed.h"
#include "../../ops/recurrent/packing.h"
#include "../../ops/recurrent/recurrent.h"
#include "packed.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr double lowest = -std::numeric_limits<double>::infinity();

// The mask with axes of size 1 appended, so that it broadcasts to x.
Tensor with_axes_of(const Tensor& mask, const Tensor& x) {
  Shape shape = mask.shape();
  while (shape.rank() < x.rank()) shape.push_back(1);
  return reshape(mask, shape);
}

// Returns the mask with axes such that it broadcasts to x. Throws unless it is a valid mask.
Tensor checked_mask(const char* name, const Tensor& x, const Tensor& mask, int axis, Location where) {
  check_floating(name, x, where);
  if (!mask.defined()) fail<Error>(name, where, "the mask is an undefined tensor");
  if (mask.dtype() != DType::boolean) fail<DTypeError>(name, where, "the mask is bool, not {}", describe(mask));
  bool fits = axis < mask.rank() && mask.rank() <= x.rank();
  for (int i = 0; fits && i < mask.rank(); ++i) fits = mask.size(i) == x.size(i);
  if (!fits)
    fail<ShapeError>(name, where, "the mask {} has not the first axes of x {}, up to axis {}", to_string(mask.shape()),
                     to_string(x.shape()), axis);
  return with_axes_of(mask, x);
}

// The indices (B, D) of the largest elements of each sequence in elements (N, D); 0 for an empty sequence. Computed
// step by step, so that time and memory depend on the number of elements and not on the longest sequence.
Tensor places_of_largest(const Tensor& elements, std::span<const std::int64_t> lengths) {
  DeviceGuard here(elements.device());
  Packing packing = pack_by_sequence(lengths);
  Tensor rows = packing.places.defined() ? index_select(elements, 0, packing.places) : elements;
  std::vector<std::int64_t> counts = packing.counts.to_vector<std::int64_t>();
  std::int64_t first = counts[0];
  Tensor largest = copy(slice(rows, 0, 0, first));
  Tensor places = copy(expand(unsqueeze(arange(first), 1), largest.shape()));
  for (std::size_t step = 1; step < counts.size(); ++step) {
    std::int64_t last = first + counts[step];
    Tensor rivals = slice(rows, 0, first, last), best = slice(largest, 0, 0, counts[step]);
    Tensor their_places = slice(places, 0, 0, counts[step]);
    // The first NaN wins.
    Tensor wins = mul(!(rivals <= best), best == best);
    copy_(their_places, where(wins, unsqueeze(arange(first, last), 1), their_places));
    copy_(best, where(wins, rivals, best));
    first = last;
  }
  if (packing.places.defined()) places = take(packing.places, places);
  Tensor of_all = zeros({std::ssize(lengths), elements.size(1)}, {.dtype = DType::i64, .device = elements.device()});
  copy_(slice(of_all, 0, 0, counts[0]), places);
  return packing.inverse_order.defined() ? index_select(of_all, 0, packing.inverse_order) : of_all;
}

Tensor lengths_of(const Packed& x) {
  DeviceGuard here(x.elements.device());
  return with_axes_of(tensor(x.lengths), x.elements);
}

}  // namespace

Tensor masked_mean(const Packed& x, Location where) {
  return with_memory_error("masked_mean", where, [&]() -> Tensor {
    check_packed("masked_mean", x, where);
    check_floating("masked_mean", x.elements, where);
    CallerScope caller(where);
    Tensor sums = segment_sum(widened(x.elements), x.sequence_of_elements(), x.size());
    return to_if_needed(sums / to(maximum(lengths_of(x), 1), sums.dtype()),
                        autocast_dtype(Precision::full, x.elements.dtype()));
  });
}

Tensor masked_mean(const Arg& x, const Tensor& mask, int axis) {
  const Tensor& values = tensor_of("masked_mean", x);
  CallerScope caller(x.location());
  axis = check_axis("masked_mean", axis, values, x.location());
  Tensor seen = checked_mask("masked_mean", values, mask, axis, x.location());
  Tensor counts = maximum(count_nonzero(seen, axis), 1);
  Tensor sums = sum(widened(where(seen, values, 0.0)), axis);
  return to_if_needed(sums / to(counts, sums.dtype()), autocast_dtype(Precision::full, values.dtype()));
}

Tensor masked_max(const Packed& x, Location where) {
  return with_memory_error("masked_max", where, [&]() -> Tensor {
    check_packed("masked_max", x, where);
    check_floating("masked_max", x.elements, where);
    CallerScope caller(where);
    if (x.elements.numel() == 0) return segment_sum(x.elements, x.sequence_of_elements(), x.size());
    Tensor rows = reshape(x.elements, {x.elements.size(0), -1}), places;
    {
      NoRecord pause;
      places = places_of_largest(rows, x.lengths);
    }
    Shape shape = x.elements.shape();
    shape[0] = x.size();
    Tensor largest = reshape(gather(rows, 0, places), shape);
    return reel::where(lengths_of(x) > 0, largest, 0.0);
  });
}

Tensor masked_max(const Arg& x, const Tensor& mask, int axis) {
  const Tensor& values = tensor_of("masked_max", x);
  CallerScope caller(x.location());
  axis = check_axis("masked_max", axis, values, x.location());
  Tensor seen = checked_mask("masked_max", values, mask, axis, x.location());
  if (values.size(axis) == 0) return sum(values, axis);
  Tensor shown = where(seen, values, lowest);
  Tensor largest = gather(shown, axis, argmax(shown, axis, {.keepdims = true}));
  return where(any(seen, axis), squeeze(largest, axis), 0.0);
}

}  // namespace reel::nn
