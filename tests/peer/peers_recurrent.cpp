#include "peer/peers.h"

namespace reel_test {

void add_recurrent_peers(Peers&) {}

}  // namespace reel_test
