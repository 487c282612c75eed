#include <reel/threads.h>

#include <atomic>

namespace reel {
namespace {

std::atomic<bool> invariant = false;

}  // namespace

void set_batch_invariant(bool wanted) { invariant.store(wanted, std::memory_order_relaxed); }

bool batch_invariant() { return invariant.load(std::memory_order_relaxed); }

}  // namespace reel
