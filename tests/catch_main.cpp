#ifdef REEL_CATCH2_V2
#define CATCH_CONFIG_MAIN
#endif
#include "catch.h"

#include <reel/batching.h>

// Tests have small tensors: their calls are joined although groups of them cost more than they save.
[[maybe_unused]] const bool joins_all = (reel::set_group_cost(0), true);
