#pragma once

#include "../dispatch/listener_scope.h"

namespace reel::debug {

using detail::ListenerScope;
using detail::Unobserved;

}  // namespace reel::debug
