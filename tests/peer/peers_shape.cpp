#include "peer/peers.h"

namespace reel_test {

void add_shape_peers(Peers&) {}

}  // namespace reel_test
