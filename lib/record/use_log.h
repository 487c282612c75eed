#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include <reel/location.h>

#include "../core/context.h"
#include "origin.h"

namespace reel::detail {

/// Records the ops that have used untracked tensors while a tape recorded. Tracking such a tensor afterwards would lose
/// the use's contribution to the gradient, so it is refused with an error that names the use.
///
/// An untracked tensor's `Body::epoch` holds a mark: the sign bit; the serial number of the use; the period in which it
/// took place. A period begins with each tape, and when the outermost one forgets what it has recorded; no two periods
/// of a process have the same number. Only the first use of a tensor in a period is recorded, so that a constant costs one
/// comparison. The ops of the most recent uses are kept.
class UseLog {
 public:
  struct Use {
    const char* op;  ///< null: no longer known
    Location where;
  };

  /// Begins the period of a tape, and returns it.
  std::uint32_t begin_period();
  /// Forgets all uses and begins a new period.
  void restart() noexcept;

  /// Records that an op has used an untracked tensor.
  void record_use(Context& context, Body& body, const char* op, const Location& where) noexcept {
    std::uint64_t mark = body.epoch.load(std::memory_order_relaxed);
    if (static_cast<std::uint32_t>(mark) == period_) [[likely]]
      return;
    record_first_use(context, body, mark, op, where);
  }
  /// Returns true if a mark records a use since a period began; `since` 0: since the outermost tape has recorded.
  bool has_used(std::uint64_t mark, std::uint32_t since) const;
  /// The use that a mark records.
  Use use_of(std::uint64_t mark) const;
  /// Called when a tensor gets other values, or a slot.
  static void forget(Body& body) noexcept {
    if (is_untracked(body)) body.epoch.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t kept = 2048;
  struct Kept {
    const char* op;
    const char* file;
    std::int32_t line;
    std::uint32_t serial;
  };

  void record_first_use(Context& context, Body& body, std::uint64_t mark, const char* op,
                        const Location& where) noexcept;

  std::uint32_t period_ = 0, last_ = 0;
  std::vector<std::uint32_t> periods_;  // the periods that are not over, ascending
  std::array<Kept, kept> uses_ = {};
};

}  // namespace reel::detail
