#pragma once

#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/storage.h"
#include "../record/origin.h"
#include "../record/use_log.h"

namespace reel::detail {

/// Returns a gradient in the form that users get: row-major, without gaps, its elements shared with no other gradient,
/// view, seed, input or saved value: `gradient` itself if its handle and its elements have no other owner; else a copy,
/// which recording tapes can differentiate.
inline Tensor owned(Tensor gradient) {
  const Body& given = gradient.body();
  bool is_tracked = given.requires_grad || !is_untracked(given);
  // It may be a saved value of the tape that is being differentiated; no gradient may flow back to that from here.
  if (is_tracked && !is_recording()) gradient = stop_gradient(gradient);
  Body& body = gradient.body();
  if (!body.contiguous || !body.references.unique() || !body.storage->references.unique()) return copy(gradient);
  // Uses by the backward pass must not prevent the caller from watching the tensor.
  UseLog::forget(body);
  return gradient;
}

}  // namespace reel::detail
