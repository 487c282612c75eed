#include "peer/peers.h"

namespace reel_test {

void add_index_peers(Peers&) {}

}  // namespace reel_test
