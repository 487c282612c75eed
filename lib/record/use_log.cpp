#include "use_log.h"

#include <algorithm>

namespace reel::detail {
namespace {

constexpr std::uint64_t used = std::uint64_t{1} << 63;
constexpr std::uint32_t serial_of(std::uint64_t mark) { return static_cast<std::uint32_t>(mark >> 32) & 0x7fffffff; }

std::uint32_t new_period() noexcept {
  static std::atomic<std::uint32_t> last = 0;
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

std::uint32_t UseLog::begin_period() {
  periods_.push_back(new_period());
  return period_ = periods_.back();
}

void UseLog::restart() noexcept {
  if (periods_.empty()) return;
  periods_.assign(1, period_ = new_period());
}

void UseLog::record_first_use(Context& context, Body& body, std::uint64_t mark, const char* op,
                              const Location& where) noexcept {
  if (!is_untracked(mark) || context.has(Context::grouped)) return;
  last_ = (last_ + 1) & 0x7fffffff;
  const Location& call_site = context.has(Context::caller_named) ? context.caller : where;
  uses_[last_ % kept] = {op, call_site.file, call_site.line, last_};
  std::uint64_t mark_of_use = used | std::uint64_t{last_} << 32 | period_;
  if (Heap::owner_of(&body) == context.heap)
    body.epoch.store(mark_of_use, std::memory_order_relaxed);
  else  // a tensor whose own thread may be assigning it a slot
    body.epoch.compare_exchange_strong(mark, mark_of_use, std::memory_order_relaxed);
}

bool UseLog::has_used(std::uint64_t mark, std::uint32_t since) const {
  if (mark == 0 || !is_untracked(mark)) return false;
  auto period = std::ranges::find(periods_, static_cast<std::uint32_t>(mark));
  auto first = std::ranges::find(periods_, since);
  return period != periods_.end() && (first == periods_.end() || first <= period);
}

UseLog::Use UseLog::use_of(std::uint64_t mark) const {
  std::uint32_t serial = serial_of(mark);
  const Kept& use = uses_[serial % kept];
  return use.serial == serial ? Use{use.op, {use.file, use.line}} : Use{nullptr, {}};
}

}  // namespace reel::detail
