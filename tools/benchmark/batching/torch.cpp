#include "../peer/models.h"
#include "../peer/version.h"
#include "compare.h"

namespace reel_bench {

std::optional<PeerTrees> peer_trees() {
  auto training = std::make_shared<TorchTreeTraining>();
  return PeerTrees{
      "libtorch " + torch_version() + " by level, by hand",
      [=](const std::vector<Tree>& trees, int minibatch) { return training->epoch(trees, minibatch, true); }};
}

}  // namespace reel_bench
