#include "peer/peers.h"

namespace reel_test {

void add_in_place_peers(Peers&) {}

}  // namespace reel_test
