#include <reel/dist/checkpoint.h>

#include <utility>

#include <reel/ops/create.h>
#include <reel/train/interruption.h>

#include "../core/fail.h"

namespace reel::dist {

using namespace detail;

Checkpoint::Checkpoint(Group group, const std::string& directory, std::initializer_list<train::CheckpointPart> parts,
                       train::CheckpointOptions options, Location where)
    : group_(std::move(group)) {
  bool saves = group_.rank() == 0;
  if (!saves) {
    group_.barrier(where);  // until the directory exists
    options.read_only = true;
    options.every = 0;
  }
  checkpoint_ = std::make_unique<train::Checkpoint>(directory, parts, options, where);
  if (saves) group_.barrier(where);
}

train::Resumed Checkpoint::resume(Location where) {
  train::Resumed resumed = checkpoint_->resume({}, where);
  steps_ = checkpoint_->steps();
  Tensor least = tensor({resumed ? resumed.step : -1}), most = tensor({resumed ? resumed.step : -1});
  // Also keeps rank 0 from removing a snapshot that is being read.
  group_.all_reduce(least, Reduction::min, where);
  group_.all_reduce(most, Reduction::max, where);
  if (least.item<std::int64_t>() != most.item<std::int64_t>())
    fail<Error>("dist::Checkpoint", where,
                "ranks have resumed from different snapshots, of step {} and of step {}; name a directory that all of "
                "them share",
                least.item<std::int64_t>(), most.item<std::int64_t>());
  return resumed;
}

void Checkpoint::after_step(Location where) {
  ++steps_;
  if (group_.rank() == 0)
    checkpoint_->after_step(where);
  else
    train::check_interruption();
}

void Checkpoint::save(const train::SaveOptions& options, Location where) {
  if (group_.rank() == 0) checkpoint_->save(options, where);
}

}  // namespace reel::dist
