#pragma once

#include <cstdint>

#include <reel/device.h>
#include <reel/location.h>
#include <reel/random.h>

#include "heap.h"

namespace reel::detail {

struct Call;
class Casts;
struct OpInfo;
class TapeList;

/// Sees every op that passes the door, after it has run.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void finished(const Call& call, Location where) = 0;
};

/// May keep an op from running now and run it later, together with equal ones: its fibre then waits inside `run`.
class Lane {
 public:
  virtual ~Lane() = default;
  /// Fills `call.outputs`.
  virtual void run(Call& call) = 0;
};

/// Everything scoped. A thread has one; a fibre may bring its own, sharing the thread's heap and tape list, and a
/// switch of fibres swaps `current_context`.
struct Context {
  enum Flag : std::uint32_t {
    recording = 1,     // ops on tracked tensors go onto the tape
    intercepted = 2,   // a listener or a lane wants to see ops
    caller_named = 4,  // `caller` stands for the place of every op
    autocasting = 8,   // ops run in the dtypes that suit them
    on_device = 16,    // this thread uses a device that is no CPU
    looked_at = intercepted | autocasting | on_device,
  };
  std::uint32_t flags = 0;
  std::uint32_t birth = 0;   // what tensors that are made now show in place of a slot; 0 unless a function runs apart
  std::uint32_t births = 0;  // how often one has
  Device device;             // where tensors are made that are given none
  Heap* heap = nullptr;
  TapeList* tapes = nullptr;
  Generator* generator = nullptr;
  Listener* listener = nullptr;
  Lane* lane = nullptr;
  Casts* casts = nullptr;         // of the innermost autocast scope
  const Call* running = nullptr;  // the op that runs, where it is looked at
  Location caller;
  const OpInfo* differentiating = nullptr;  // in a backward: whose gradient runs
  double multiplications = 0;               // of all products and convolutions that this thread has run

  /// Of several flags: whether any is set.
  bool has(Flag flag) const { return flags & flag; }
  void set(Flag flag, bool on) { flags = on ? flags | flag : flags & ~flag; }
  /// The place to report for an op called at `where`.
  Location resolve(Location where) const { return has(caller_named) ? caller : where; }
};

extern thread_local constinit Context* current_context __attribute__((tls_model("initial-exec")));

/// Makes this thread's context, or takes over that of a thread which has ended.
Context& create_context();

/// This thread's context.
inline Context& context() {
  if (Context* found = current_context) [[likely]]
    return *found;
  return create_context();
}

/// Names the caller for the ops within, in place of an outer name.
class NamedCaller {
 public:
  NamedCaller(Context& context, Location where)
      : context_(context), caller_before_(context.caller), named_before_(context.has(Context::caller_named)) {
    rename(where);
    context.set(Context::caller_named, true);
  }
  ~NamedCaller() {
    context_.caller = caller_before_;
    context_.set(Context::caller_named, named_before_);
  }
  NamedCaller(const NamedCaller&) = delete;
  NamedCaller& operator=(const NamedCaller&) = delete;
  void rename(Location where) { context_.caller = where; }

 private:
  Context& context_;
  Location caller_before_;
  bool named_before_;
};

}  // namespace reel::detail
