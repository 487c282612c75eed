#pragma once

#include <reel/indexing.h>

#include "../../core/context.h"

namespace reel::detail {

/// Writes `value`, which broadcasts and shares no elements with it, to a part. Afterwards the base has the slot of the
/// result.
void assign_part(const Indexed& part, const Tensor& value, Location where);

/// Assigns the part, which is still a view of its base, a slot for its new values after the base has been overwritten.
void show_part(Context& context, const Indexed& part, Location where);

}  // namespace reel::detail
