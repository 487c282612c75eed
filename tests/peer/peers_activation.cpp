#include "peer/peers.h"

namespace reel_test {

void add_activation_peers(Peers&) {}

}  // namespace reel_test
