#include "../core/op_error.h"
#include "tape_list.h"

// Errors for tensors that cannot be differentiated: one sentence for each cause.

namespace reel::detail {
namespace {

// Why a target has no slot on any list, and the remedy.
const char* sentence_of(const Body& target, const Heap* mine) {
  if (Heap::owner_of(&target) != mine)
    return "was computed by another thread, whose ops a tape of this one does not see; compute it here, or open the "
           "tape there";
  if (target.leaf) return "is a frozen parameter; call requires_grad() on it before it is used";
  switch (origin_of(target)) {
    case Origin::before_tape:
      return "was there before the tape was opened, so how it was computed is not on the tape; compute it while the "
             "tape is open";
    case Origin::recorded: break;
    case Origin::paused:
      return "was computed under NoRecord, so how is not on the tape; compute it outside of NoRecord";
    case Origin::gradient:
      return "was computed by a tape that differentiated, which no other tape recorded; open an outer tape around that "
             "one, and ask it";
    case Origin::constant_op:
      return "depends on what is tracked only through an op that has no gradient, such as argmax or a comparison; "
             "compute it with ops that have one";
    case Origin::detached:
      return "depends on what is tracked only through stop_gradient; leave that out where the gradient is to flow";
    case Origin::frozen:
      return "depends on no parameter but frozen ones; call requires_grad() on one of them before it is used";
  }
  return "was computed from nothing that is tracked; call requires_grad() on a tensor that it depends on, or "
         "tape.watch, before it is computed";
}

}  // namespace

void TapeList::refuse_target(const char* op, const Tensor& target, Location where) const {
  const Body& body = target.body();
  std::string made = fmt::format("the target {}, computed at {},", describe(target), to_string(target.made_at()));
  if (is_untracked(body)) fail<TapeError>(op, where, "{} {}", made, sentence_of(body, context().heap));
  std::uint64_t epoch = body.epoch.load(std::memory_order_relaxed);
  if (int parent = parent_that_opened(epoch))
    fail<TapeError>(op, where,
                    "{} belongs to a tape that was opened before fork(), by process {}; compute it again on a tape of "
                    "this process",
                    made, parent);
  if (!is_of_this_thread(epoch))
    fail<TapeError>(op, where, "{} belongs to the tape of another thread; differentiate it there", made);
  if (is_tracked_outside(body))
    fail<TapeError>(
        op, where,
        "{} belongs to a tape outside the function of a checkpoint or of a custom gradient that runs now; ask "
        "that one, outside",
        made);
  fail<TapeError>(
      op, where,
      "{} belongs to a tape that has finished or has been differentiated already; compute it again, or open "
      "the tape with {{.persistent = true}}",
      made);
}

}  // namespace reel::detail
