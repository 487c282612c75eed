#include "tensor_float.h"

#include <atomic>

namespace reel::detail {
namespace {

std::atomic<bool> allowed_now = false;

}  // namespace

bool may_use_tf32() noexcept { return allowed_now.load(std::memory_order_relaxed); }
void allow_tf32(bool allowed) noexcept { allowed_now.store(allowed, std::memory_order_relaxed); }

}  // namespace reel::detail
