#include "peer/peers.h"

namespace reel_test {

void add_sample_peers(Peers&) {}

}  // namespace reel_test
