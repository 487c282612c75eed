#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include <reel/location.h>

#include "../core/context.h"
#include "origin.h"

namespace reel::detail {

/// Which ops have used tensors that no tape tracks, while one recorded. Who tracks such a tensor afterwards would lose
/// the use's share of the gradient, and is told so.
///
/// An untracked tensor's `Body::epoch` holds a mark: the sign bit; the serial number of the use; the period in which it
/// took place. A period begins with each tape, and when the outermost one forgets what it has recorded; no two of the
/// process have one number. Of a period only the first use of a tensor is noted, so that a constant costs a comparison.
/// Of the last uses it is known which ops they were.
class UseLog {
 public:
  struct Use {
    const char* op;  ///< null: no longer known
    Location where;
  };

  /// Begins the period of a tape, and returns it.
  std::uint32_t begin_period();
  /// Forgets all uses; what begins is a new period.
  void restart() noexcept;

  /// Notes that an op has used an untracked tensor.
  void note(Context& context, Body& body, const char* op, const Location& where) noexcept {
    std::uint64_t mark = body.epoch.load(std::memory_order_relaxed);
    if (static_cast<std::uint32_t>(mark) == period_) [[likely]]
      return;
    note_first(context, body, mark, op, where);
  }
  /// Whether an op has used an untracked tensor since a period began; 0: since the outermost tape has recorded.
  bool has_used(const Body& body, std::uint32_t since) const;
  /// That use.
  Use use_of(const Body& body) const;
  /// To be called when a tensor gets other values, or a slot.
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

  void note_first(Context& context, Body& body, std::uint64_t mark, const char* op, const Location& where) noexcept;

  std::uint32_t period_ = 0, last_ = 0;
  std::vector<std::uint32_t> periods_;  // those that are not over, rising
  std::array<Kept, kept> uses_ = {};
};

}  // namespace reel::detail
