#include "peer/peers.h"

namespace reel_test {

void add_attend_peers(Peers&) {}

}  // namespace reel_test
