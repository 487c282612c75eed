#include <reel/threads.h>

#include <atomic>

namespace reel {
namespace {

std::atomic<bool> is_invariant = false;

}  // namespace

void set_batch_invariant(bool invariant) { is_invariant.store(invariant, std::memory_order_relaxed); }

bool batch_invariant() { return is_invariant.load(std::memory_order_relaxed); }

}  // namespace reel
