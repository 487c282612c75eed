#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include <reel/detail/immovable.h>

#include "../record/arena.h"
#include "queued_call.h"

namespace reel::detail {

struct CallBucket;

/// What calls must have in common to be joined.
struct CallKind {
  std::vector<std::uint64_t> key;
  Joining joining;
  /// The calls of this kind in the queue, by depth: valid where `filling` is the queue's.
  struct AtDepth {
    std::uint64_t filling = 0;
    CallBucket* bucket = nullptr;
  };
  std::vector<AtDepth> at_depth;
};

/// Calls of one kind and depth, in the order in which they were made.
struct CallBucket {
  CallKind* kind;
  QueuedCall *first = nullptr, *last = nullptr;
  std::size_t count = 0;
  CallBucket* next = nullptr;  // of the same depth
};

/// The calls that wait to run, by depth and kind. A call's depth is above that of the calls which compute its operands.
class CallQueue : Immovable {
 public:
  CallQueue() = default;
  ~CallQueue();

  /// The kind of a call, found by its line or else by its key. `tracked`: a tape tracks an operand. Throws: std::bad_alloc.
  CallKind& kind_of(const Call& call, const Joining& joining, const Context& context, bool tracked);
  /// Adds a call, which stays where it is until it is taken. Throws: std::bad_alloc.
  void add(QueuedCall& call, CallKind& kind, std::uint32_t depth);
  /// A copy of a call, which owns its operands and outputs until `clear`. Throws: std::bad_alloc.
  QueuedCall& copy_of(const Call& call, const QueuedCall& like);

  bool is_empty() const { return calls_ == 0; }
  /// A number for what the queue holds until `clear`.
  std::uint64_t filling() const { return filling_; }
  std::size_t size() const { return calls_; }
  /// Returns true if a call reads elements of x's storage.
  bool reads(const Body& x) const;
  /// Removes the calls of the least depth that has any; null if there is none.
  CallBucket* take_level();
  /// Removes calls for which `is_removed` holds.
  template <class Predicate>
  void remove_if(Predicate is_removed) noexcept {
    for (Level& level : levels_)
      for (CallBucket* bucket = level.first; bucket; bucket = bucket->next) {
        QueuedCall* kept = std::exchange(bucket->first, nullptr);
        bucket->last = nullptr;
        while (QueuedCall* one = kept) {
          kept = std::exchange(one->next, nullptr);
          if (is_removed(*one)) {
            --bucket->count;
            --calls_;
            continue;
          }
          (bucket->first ? bucket->last->next : bucket->first) = one;
          bucket->last = one;
        }
      }
  }
  /// Releases what copies own. All calls must have been taken.
  void clear() noexcept;

 private:
  struct Copy {
    Call call;
    QueuedCall queued;
    Copy* before;
    Tensor* held;  // operands and outputs
  };
  struct Level {
    CallBucket *first = nullptr, *last = nullptr;
  };
  CallBucket& bucket_of(CallKind& kind, std::uint32_t depth);

  Arena arena_;
  Copy* last_copy_ = nullptr;
  std::vector<Level> levels_;  // by depth
  std::size_t level_ = 0;      // none before it has calls
  std::size_t calls_ = 0;
  std::uint64_t filling_ = 1;
  std::unordered_map<std::uint64_t, std::vector<std::unique_ptr<CallKind>>> kinds_;  // by hash of the key
  std::array<CallKind*, 512> by_site_ = {};                                          // the last kind of a call site
  std::vector<std::uint64_t> key_;                                                   // of the call that is looked up
};

}  // namespace reel::detail
