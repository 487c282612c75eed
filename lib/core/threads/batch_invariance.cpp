#include <reel/threads.h>

#include <atomic>

#include "../context.h"

namespace reel {
namespace {

std::atomic<bool> is_invariant = false;

}  // namespace

void set_batch_invariant(bool invariant) {
  if (const detail::Context* context = detail::current_context) wait_for_all(*context);
  is_invariant.store(invariant, std::memory_order_relaxed);
}

bool batch_invariant() { return is_invariant.load(std::memory_order_relaxed); }

}  // namespace reel
