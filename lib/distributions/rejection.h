#pragma once

#include <reel/tensor.h>

#include <reel/ops/comparison.h>
#include <reel/ops/index.h>
#include <reel/ops/shape.h>

namespace reel::detail {

/// Values that were drawn for some elements, and which of them to draw again: (n) and (n), bool.
struct Proposal {
  Tensor values, rejected;
};

/// The elements of a vector with these indices, or all of them where the index is undefined.
inline Tensor selected(const Tensor& x, const Tensor& index) { return index.defined() ? index_select(x, 0, index) : x; }

/// Rejection sampling of a vector: `propose(index)` draws values for the elements with these indices, or for all of them
/// where the index is undefined; those that it rejects are drawn again until none is.
template <class Propose>
Tensor rejection_sample(const Propose& propose) {
  auto indices_of = [](const Tensor& mask) { return reshape(nonzero(mask), {-1}); };
  Proposal drawn = propose(Tensor());
  Tensor values = drawn.values, pending = indices_of(drawn.rejected);
  while (pending.numel() > 0) {
    drawn = propose(pending);
    values = index_put(values, {pending}, drawn.values);
    pending = index_select(pending, 0, indices_of(drawn.rejected));
  }
  return values;
}

}  // namespace reel::detail
