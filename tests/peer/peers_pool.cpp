#include "peer/peers.h"

namespace reel_test {

void add_pool_peers(Peers&) {}

}  // namespace reel_test
