#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include <reel/detail/fork_safe_mutex.h>
#include <reel/detail/immovable.h>

#include "../core/context.h"

namespace reel::detail {

/// The setting that a scope changes on its thread while it is open. The innermost of several open scopes with one setting
/// decides.
enum class Setting : std::uint8_t { recording, device, autocast, listener, wait_listener };

/// The value of a scope of `Setting::recording`, with the reason for it.
enum class Recording : std::uint32_t {
  tape,             ///< on: a tape is open
  isolated,         ///< on: a function runs on an inner list
  isolated_paused,  ///< off: a function runs on an inner list, and its ops are not differentiated
  paused,           ///< off: NoRecord
  differentiating,  ///< off: a tape differentiates, and none is open around it
};

/// One open scope.
struct OpenScope {
  const void* scope;  ///< the scope's address, which identifies it
  Setting setting;
  std::uint32_t value = 0;  ///< of recording: a `Recording`; of a device: its bits; of autocast: whether it is on
  /// of recording: the tape list; else the object of the context while the scope is innermost
  void* object = nullptr;
  Context* context = nullptr;  ///< the context on which it was opened: the thread's own, or a fibre's
  std::uint64_t number = 0;    ///< ascends in the order of opening
};

/// The open scopes of a thread, which may end in any order, and on any thread: a scope does not restore what it found,
/// but is removed from this list, and the remaining scopes decide. A scope that another thread has ended takes effect
/// when this thread begins or ends a scope, reads a scoped setting, or next needs memory for its tape.
class Scopes : Immovable {
 public:
  Scopes();
  ~Scopes();

  /// Begins a scope of the calling thread. Throws: std::bad_alloc, without changing anything.
  void begin(Context& context, OpenScope scope);
  /// Ends a scope that any thread has begun; does nothing if that thread has ended.
  static void end(const void* scope) noexcept;
  /// Ends all tapes that the calling thread has begun on a list.
  void end_tapes(const void* list) noexcept;
  /// Ends all scopes; called when the thread ends.
  void end_all() noexcept;
  /// Called when a fibre starts: the scopes that are open now on its parents are around it, and no later ones.
  void begin_fibre(Context& context) noexcept;
  /// Called when a fibre ends: ends the scopes that it has left open.
  void end_fibre(Context& context) noexcept;
  /// Called when a context becomes the current one: applies the ends of scopes around it since it was last.
  void update(Context& context) noexcept {
    if (context.scope_changes != changes_) [[unlikely]]
      apply_all(context);
  }

  /// Applies the scope ends that other threads have made.
  void apply_remote_ends(Context& context) noexcept {
    if (ended_elsewhere_.load(std::memory_order_acquire)) [[unlikely]]
      apply_pending_ends(context);
  }
  /// The number of ends of scopes that fibres may have around them.
  std::uint32_t changes() const { return changes_; }
  bool is_open(const void* scope) const noexcept;
  /// The number of open scopes that keep a tape list in use.
  int tapes_on(const void* list) const noexcept;
  /// The outermost scope on a tape list; null if there is none.
  const void* outermost_on(const void* list) const noexcept;
  /// The object of the innermost scope around `scope` that has the same setting; null if there is none.
  void* object_around(const void* scope) const noexcept;

 private:
  friend struct RecordLayout;

  bool remove(const void* scope, OpenScope& removed) noexcept;
  const OpenScope* innermost(const Context& context, Setting setting, std::uint64_t end) const noexcept;
  void apply(Context& context, Setting setting) noexcept;
  void apply_all(Context& context) noexcept;
  void apply_recording(Context& context, const OpenScope* scope) noexcept;
  void apply_pending_ends(Context& context) noexcept;

  mutable ForkSafeMutex mutex_;  // other threads end scopes, too
  std::vector<OpenScope> open_;
  std::uint64_t next_number_ = 0;
  std::uint64_t last_fibre_ = 0;  // the number of the first scope that no fibre can have around it
  std::uint32_t changes_ = 0;
  std::atomic<bool> ended_elsewhere_ = false;
};

}  // namespace reel::detail
