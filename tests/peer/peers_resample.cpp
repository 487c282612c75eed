#include "peer/peers.h"

namespace reel_test {

void add_resample_peers(Peers&) {}

}  // namespace reel_test
