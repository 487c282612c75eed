#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "context.h"

namespace reel::detail {

/// What a scope sets on its thread while it is open. Of several open ones that set the same thing the innermost decides.
enum class Setting : std::uint8_t { recording, device, autocast, listener, wait_listener };

/// What a scope of `Setting::recording` says, and why.
enum class Recording : std::uint32_t {
  tape,             ///< on: a tape is open
  isolated,         ///< on: a function runs on an inner list
  isolated_paused,  ///< off: the same, for one whose ops nobody differentiates
  paused,           ///< off: NoRecord
  differentiating,  ///< off: a tape differentiates, and none is open around it
};

/// One open scope.
struct OpenScope {
  const void* scope;  ///< which one: its address
  Setting setting;
  std::uint32_t value = 0;     ///< of recording: a `Recording`; of a device: its bits; of autocast: whether it is on
  void* object = nullptr;      ///< of recording: the tape list; else what the context is to point to
  Context* context = nullptr;  ///< on which it was opened; the thread's own, or a fibre's
};

/// The open scopes of a thread, which may end in any order, and on any thread: a scope does not restore what it found,
/// but is taken out of here, and what is left decides. What another thread has ended takes effect when this one begins
/// or ends a scope, asks for what scopes set, or next needs memory for its tape.
class Scopes {
 public:
  /// `main`: the thread's own context.
  explicit Scopes(const Context& main);
  ~Scopes();
  Scopes(const Scopes&) = delete;
  Scopes& operator=(const Scopes&) = delete;

  /// Of the calling thread. Throws: std::bad_alloc, and then has changed nothing.
  void begin(Context& context, OpenScope scope);
  /// Ends a scope that any thread has begun; nothing if its thread has ended.
  static void end(const void* scope) noexcept;
  /// Ends all tapes on a list, which the calling thread has begun.
  void end_tapes(const void* list) noexcept;
  /// Ends all, with the thread.
  void end_all() noexcept;

  /// Lets what other threads have ended here take effect.
  void settle(Context& context) noexcept {
    if (ended_elsewhere_.load(std::memory_order_acquire)) [[unlikely]]
      settle_ended(context);
  }
  bool is_open(const void* scope) const noexcept;
  /// How many scopes keep a tape list in use.
  int tapes_on(const void* list) const noexcept;
  /// The outermost of these; null if there is none.
  const void* outermost_on(const void* list) const noexcept;
  /// The object of the innermost scope around this one that sets the same thing; null if there is none.
  void* object_around(const void* scope) const noexcept;

 private:
  bool remove(const void* scope, OpenScope& removed) noexcept;
  const OpenScope* innermost(const Context& context, Setting setting) const noexcept;
  void apply(Context& context, Setting setting) noexcept;
  void apply_recording(Context& context, const OpenScope* innermost) noexcept;
  void settle_ended(Context& context) noexcept;

  const Context* main_;
  mutable std::mutex mutex_;  // other threads end scopes, too
  std::vector<OpenScope> open_;
  std::atomic<bool> ended_elsewhere_ = false;
};

}  // namespace reel::detail
