#pragma once

#include <reel/indexing.h>

#include "../core/context.h"

namespace reel::detail {

/// Puts `value`, which broadcasts and shares no elements with it, into a part. The base then stands for the result.
void assign_part(const Indexed& part, const Tensor& value, Location where);

/// Lets the part, which is a view of its base still, stand for that again after the base has been overwritten.
void show_part(Context& context, const Indexed& part, Location where);

}  // namespace reel::detail
