#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <reel/detail/active_module.h>
#include <reel/detail/active_note.h>
#include <reel/device.h>
#include <reel/location.h>
#include <reel/random.h>
#include <reel/tensor.h>

#include "heap.h"

namespace reel::detail {

struct Call;
class Casts;
struct Entry;
struct OpInfo;
class TapeList;
class WaitListener;

/// Is notified of what a thread runs: every op that passes the dispatcher, backward passes, and optimisers' steps.
class Listener {
 public:
  virtual ~Listener() = default;
  /// Called before an op runs. Throws: what is to end the op.
  virtual void starting(const Call& call, Location where) = 0;
  /// Called after an op has run.
  virtual void finished(const Call& call, Location where) = 0;
  /// Called if an op throws, while the exception passes.
  virtual void failed(const Call& call) noexcept = 0;
  /// Called with an error of an op, before it is thrown: also for calls that are refused before they reach the
  /// dispatcher.
  virtual void refused(const char* op, Location where, const std::string& sentence) noexcept = 0;
  /// In a backward pass, before the gradient function of an entry, with the gradients of its outputs, undefined ones
  /// among them; empty before a deferred product.
  virtual void gradient_starting(const Entry& entry, std::span<const Tensor> gradients) = 0;
  /// After the gradient function of an entry, also when it throws.
  virtual void gradient_finished(const Entry& entry) noexcept = 0;
  /// At the end of a backward pass: the gradient of a parameter or watched tensor; of a table whose gradient is by rows,
  /// only the values of these rows.
  virtual void leaf_gradient(const Tensor& leaf, const Tensor& gradient) = 0;
  /// Before and after an optimiser updates its parameters.
  virtual void updating(std::span<const Tensor> parameters) = 0;
  virtual void updated(std::span<const Tensor> parameters) = 0;
  /// Called when the program names a tensor.
  virtual void named(const Tensor& tensor, std::string_view name) = 0;
  /// Called before the function `by` gives elements of a tensor to the program. Throws: an exception to end that function.
  virtual void reading(const Tensor& tensor, const char* by, Location where) = 0;
};

/// May delay an op and run it later, together with equal ones: its fibre then waits inside `run`, or goes on with results
/// whose elements are pending.
class Interceptor {
 public:
  virtual ~Interceptor() = default;
  /// Runs the call, at once or later: fills `call.outputs`, perhaps with pending tensors, before it returns.
  virtual void run(Call& call) = 0;
  /// Returns when the elements of a pending tensor are there. Throws: MemoryError and other errors of the delayed call.
  virtual void wait_for(const Tensor&) {}
  /// Returns when all calls of the caller's example have run. Throws: as `wait_for`.
  virtual void wait_for_all() {}
  /// Runs all delayed calls at once; an error of one is thrown by the next op of its example.
  virtual void run_delayed() noexcept {}
  /// Returns when no delayed call reads the elements that x has now. Throws: as `wait_for`.
  virtual void wait_for_uses(const Tensor&) {}
  /// Calls run(data), which may need much stack: on the thread's own one if that of the caller's fibre has little left.
  virtual void run_with_stack(void (*run)(void* data), void* data) { run(data); }
};

/// The scoped state of a thread. A thread has one context; a fibre may have its own, which shares the thread's heap and
/// tape list, and a switch of fibres swaps `current_context`.
struct Context {
  enum Flag : std::uint32_t {
    recording = 1,     // ops on tracked tensors are recorded on the tape
    intercepted = 2,   // a listener or an interceptor observes ops
    caller_named = 4,  // `caller` replaces the call site of every op
    autocasting = 8,   // ops run in the dtypes that autocast chooses
    on_device = 16,    // this thread uses a device other than the CPU
    grouped = 32,      // ops run for several calls, each of which has its own uses of tensors recorded
    runs_alone = 64,   // ops of this example of batch_map join no others, since it has changed what they use
    replacing = 128,   // no op may use the tensors `replaced`
    slow_path = intercepted | autocasting | on_device | replacing,
  };
  const Context* parent = nullptr;  // of a fibre's context: that of what started the fibre
  std::uint32_t flags = 0;          // changed by `set` and `set_flags`
  std::uint32_t scope_id = 0;  // the scope id that new tensors store in place of a slot; 0 outside isolated functions
  std::uint32_t isolated_scopes = 0;  // the number of isolated functions run so far
  Device device;                      // the default device of new tensors
  Heap* heap = nullptr;
  TapeList* tapes = nullptr;
  Generator* generator = nullptr;
  Listener* listener = nullptr;
  Interceptor* interceptor = nullptr;
  Casts* casts = nullptr;         // of the innermost autocast scope
  const Call* running = nullptr;  // the op that runs, set on the slow path
  Location caller;
  const char* function = nullptr;                      // the composed function that runs, which errors name
  const char* caller_function = nullptr;               // of the innermost CallerScope; null: unknown
  const std::vector<const Body*>* replaced = nullptr;  // by functional_call, ascending
  const OpInfo* differentiating = nullptr;             // in a backward: the op whose gradient runs
  double multiplications = 0;                          // of all products and convolutions that this thread has run
  const ActiveModule* module_call = nullptr;           // the innermost running nn::ModuleCall
  const ActiveNote* notes = nullptr;                   // the innermost note of the program
  WaitListener* wait_listener = nullptr;
  // Ops that are called with the stack below this address take the dispatcher's slow path.
  std::uintptr_t slow_below = 0;
  // The value of `slow_below` while only an interceptor observes ops. Calls that may share a weight reach it on any stack.
  std::uintptr_t intercepted_below = UINTPTR_MAX;
  std::uint32_t backward_passes = 0;  // the number of tapes that differentiate
  std::uint32_t scope_changes = 0;    // the `Scopes::changes` that the settings of this context contain
  // In a fibre's context: scopes that its parents open from this number on are not around it.
  std::uint64_t first_inner_scope = ~std::uint64_t{0};

  /// Returns true if any of the given flags is set.
  bool has(Flag flag) const { return flags & flag; }
  void set(Flag flag, bool on) { set_flags(on ? flags | flag : flags & ~flag); }
  void set_flags(std::uint32_t all) {
    flags = all;
    std::uint32_t slow = flags & slow_path;
    slow_below = slow == 0 ? 0 : slow == intercepted && !listener ? intercepted_below : UINTPTR_MAX;
  }
  void intercept_below(std::uintptr_t stack) {
    intercepted_below = stack;
    set_flags(flags);
  }
  /// Returns true if an op that is called here takes the dispatcher's slow path.
  [[gnu::always_inline]] bool takes_slow_path() const {
#if defined(__x86_64__)
    // Two instructions; the address of a variable needs room on the stack, and six.
    asm goto("cmpq %%rsp, %0\n\tja %l[slow]" : : "m"(slow_below) : "cc" : slow);
    return false;
  slow:
    return true;
#else
    return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) < slow_below;
#endif
  }
  /// The call site to report for an op called at `where`.
  Location call_site(Location where) const { return has(caller_named) ? caller : where; }
};

extern thread_local constinit Context* current_context __attribute__((tls_model("initial-exec")));

/// Makes this thread's context, or adopts that of a thread which has ended.
Context& create_context();

/// This thread's context.
inline Context& context() {
  if (Context* found = current_context) [[likely]]
    return *found;
  return create_context();
}

/// Calls f(), which may need much stack.
template <class F>
void run_with_stack(const Context& context, F f) {
  if (!context.interceptor) return f();
  context.interceptor->run_with_stack([](void* data) { (*static_cast<F*>(data))(); }, &f);
}

/// Throws an Error for a pending tensor that no delayed call of this thread fills; else waits for its elements.
void wait_for_pending(const Tensor& x, Location where);

/// Returns when the elements of x are there: at once unless x is the result of a delayed call. Throws: as
/// Interceptor::wait_for.
inline void wait_for(const Tensor& x, Location where) {
  if (x.body().marks & Body::pending) [[unlikely]]
    wait_for_pending(x, where);
}

/// Returns when no call of the caller's is delayed, so that the state with which they were called may change.
/// Throws: as Interceptor::wait_for.
inline void wait_for_all(const Context& context) {
  if (context.interceptor) [[unlikely]]
    context.interceptor->wait_for_all();
}

/// Runs what is delayed where nothing may be thrown.
inline void run_delayed(const Context& context) noexcept {
  if (context.interceptor) [[unlikely]]
    context.interceptor->run_delayed();
}

/// Returns when no delayed call reads the elements of x, which are about to change. Throws: as `wait_for`.
inline void wait_for_uses(const Tensor& x, const Context& context) {
  if (context.interceptor) [[unlikely]]
    context.interceptor->wait_for_uses(x);
}

/// Notifies this thread's listener that the function `by`, or the one around it that names itself, gives elements of x
/// to the program. Throws: as the listener's `reading`.
inline void notify_of_reading(const Tensor& x, const char* by, Location where) {
  wait_for(x, where);
  const Context& now = context();
  if (!now.has(Context::intercepted) || !now.listener) return;
  now.listener->reading(x, now.has(Context::caller_named) && now.caller_function ? now.caller_function : by, where);
}

/// Gives a variable another value while it lives.
template <class T>
class ScopedValue : Immovable {
 public:
  /// Only restores the value that the variable has now.
  explicit ScopedValue(T& variable) : variable_(variable), before_(variable) {}
  ScopedValue(T& variable, T value) : variable_(variable), before_(std::exchange(variable, value)) {}
  ~ScopedValue() { variable_ = before_; }

 private:
  T& variable_;
  T before_;
};

/// Sets or clears a flag while it lives.
class FlagScope : Immovable {
 public:
  FlagScope(Context& context, Context::Flag flag, bool on)
      : context_(context), flag_(flag), before_(context.has(flag)) {
    context.set(flag, on);
  }
  ~FlagScope() { context_.set(flag_, before_); }

 private:
  Context& context_;
  Context::Flag flag_;
  bool before_;
};

/// Names the caller for the ops within; overrides an outer name.
class NamedCaller {
 public:
  NamedCaller(Context& context, Location where)
      : context_(context), caller_(context.caller, where), named_(context, Context::caller_named, true) {}
  void rename(Location where) { context_.caller = where; }

 private:
  Context& context_;
  ScopedValue<Location> caller_;
  FlagScope named_;
};

}  // namespace reel::detail
