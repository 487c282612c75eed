#pragma once

#include <reel/location.h>

#include "../core/context.h"

namespace reel::detail {

struct Body;
struct OpInfo;

/// Records an op that has run. The op has no attributes, keeps no shapes, and its output has its inputs' shape and
/// dtype.
void record(Context& context, const OpInfo& op, Body& output, const Location& where, Body& x);
void record(Context& context, const OpInfo& op, Body& output, const Location& where, Body& a, Body& b);

}  // namespace reel::detail
