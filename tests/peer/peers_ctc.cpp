#include "peer/peers.h"

namespace reel_test {

void add_ctc_peers(Peers&) {}

}  // namespace reel_test
