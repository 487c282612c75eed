#pragma once

#include <utility>

#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/storage.h"
#include "origin.h"
#include "use_log.h"

namespace reel::detail {

/// A gradient as users get it: row-major, without gaps, with elements that nothing else holds, neither another gradient or
/// view nor a seed, an input, or what a tape has saved. That is `gradient` itself if its handle and its elements have no
/// other owner; else a copy, which tapes that record now can differentiate.
inline Tensor owned(Tensor gradient) {
  const Body& given = gradient.body();
  bool is_tracked = given.requires_grad || !is_untracked(given);
  // It may be a saved value of the tape that is being differentiated, to which no gradient is to flow back from here.
  if (is_tracked && !is_recording()) gradient = stop_gradient(gradient);
  Body& body = gradient.body();
  if (!body.contiguous || !body.references.unique() || !body.storage->references.unique()) return copy(gradient);
  // What the backward pass has used it for is no use of the caller's, who may still watch it.
  UseLog::forget(body);
  return gradient;
}

}  // namespace reel::detail
