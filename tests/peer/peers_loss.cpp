#include "peer/peers.h"

namespace reel_test {

void add_loss_peers(Peers&) {}

}  // namespace reel_test
