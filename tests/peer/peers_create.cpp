#include "peer/peers.h"

namespace reel_test {

void add_create_peers(Peers&) {}

}  // namespace reel_test
