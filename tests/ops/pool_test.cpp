#include <reel/reel.h>

#include "catch.h"
#include "ops/bad_input.h"

namespace reel_test {

using namespace reel;

}  // namespace reel_test
