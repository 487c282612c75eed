#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <reel/detail/active_module.h>
#include <reel/detail/fork_safe_mutex.h>
#include <reel/location.h>
#include <reel/ops/recurrent.h>
#include <reel/tensor.h>

namespace reel::nn {

class Module;

/// A hook on the calls of a module: sees the inputs, results or gradients of a call, and may replace them.
using TensorsHook = std::function<void(std::span<Tensor> tensors)>;

/// The hooks of a module. Threads may run, add and remove hooks concurrently.
class ModuleHooks : public std::enable_shared_from_this<ModuleHooks> {
 public:
  /// When a hook is called.
  enum When : std::uint8_t { before_forward, after_forward, before_backward, after_backward };

  /// No hooks yet; `module` is the name of its type, for messages.
  explicit ModuleHooks(std::string module) : module_(std::move(module)) {}

  /// Adds a hook; returns its id.
  std::uint64_t add(TensorsHook f, When when, Location where);
  /// Removes the hook with the given id.
  void remove(std::uint64_t id) noexcept;
  /// True if there is no hook.
  bool empty() const;
  /// True if there is a hook of the given kind.
  bool sees(When when) const;
  /// Runs the hooks of one kind; one that is removed meanwhile runs no more, and one that is added not yet.
  void run(When when, std::span<Tensor> tensors) const;

  /// Records that the module was called.
  void mark_called() { called_.store(true, std::memory_order_relaxed); }
  /// Checks that the module was called before its part is. Throws: Error if it never was.
  void check_called(const Module& part, Location where) const;

 private:
  // Called where it is, so that it keeps its state from one call to the next.
  struct Hook {
    TensorsHook f;
    When when;
    std::uint64_t id;
    Location where;
    std::atomic<bool> removed = false;
  };
  void warn_of_silence(const Hook& hook) const noexcept;

  mutable detail::ForkSafeMutex mutex_;
  std::vector<std::shared_ptr<Hook>> hooks_;
  std::uint64_t added_ = 0;
  std::atomic<bool> called_ = false;
  mutable std::atomic<bool> reported_ = false;  // that the hooks do not run
  std::string module_;
};

/// A handle of a hook of a module: while it lives, the hook is called.
class [[nodiscard]] ModuleHook {
 public:
  /// A handle of the hook with the given id.
  ModuleHook(std::weak_ptr<ModuleHooks> hooks, std::uint64_t id) : hooks_(std::move(hooks)), id_(id) {}
  /// Takes over the hook.
  ModuleHook(ModuleHook&& other) noexcept = default;
  /// Removes its own hook and takes over the other.
  ModuleHook& operator=(ModuleHook&& other) noexcept;
  /// Removes the hook.
  ~ModuleHook() { remove(); }
  /// Removes the hook.
  void remove() noexcept;

 private:
  std::weak_ptr<ModuleHooks> hooks_;
  std::uint64_t id_;
};

/// The tensors of a result, for hooks. A layer that returns a struct of its own overloads this function beside that
/// struct.
inline std::vector<Tensor*> tensors_of(Tensor& result) { return {&result}; }
/// The tensors of a result, for hooks. A layer that returns a struct of its own overloads this function beside that
/// struct.
inline std::vector<Tensor*> tensors_of(LSTMState& result) { return {&result.h, &result.c}; }
/// The tensors of a result, for hooks. A layer that returns a struct of its own overloads this function beside that
/// struct.
inline std::vector<Tensor*> tensors_of(LSTMOutput& result) { return {&result.output, &result.h_n, &result.c_n}; }
/// The tensors of a result, for hooks. A layer that returns a struct of its own overloads this function beside that
/// struct.
inline std::vector<Tensor*> tensors_of(RecurrentOutput& result) { return {&result.output, &result.h_n}; }

/// A running call of a module: what `Module::call` opens.
class ModuleCall final : public detail::ActiveModule, detail::Immovable {
 public:
  /// A call from the given location. `op`: the name of the function, for messages; null: unknown.
  /// Throws: Error if a module around this one has hooks and was never called itself, so that they would not run.
  ModuleCall(const Module& module, Location where, const char* op = nullptr);
  /// A call with input x, from its location.
  /// Throws: Error if x is undefined, and if a module around this one has hooks and was never called itself, so that
  /// they would not run; DTypeError if x is a number, in the name of `op`.
  ModuleCall(const Module& module, const char* op, const Arg& x);
  /// Ends the call and stores its operations.
  ~ModuleCall();

  /// Runs f(inputs…), with the hooks if there are any, and returns its result.
  template <class F, class... Inputs>
  auto run(ModuleHooks* hooks, F& f, const Inputs&... inputs) {
    if (!hooks) return f(inputs...);
    std::array<Tensor, sizeof...(Inputs)> seen{inputs...};
    return run_seen(*hooks, seen, [&] { return std::apply(f, seen); });
  }
  /// The name of the module within the outermost one around it: "layers.1.attention"; empty for the outermost.
  std::string module_path() const override;
  /// The module that is called.
  const Module& module() const { return module_; }
  /// The number of calls that have begun on observed threads: tells apart two calls at one address.
  static std::uint64_t observed_calls();
  /// The call that runs around this one on its thread; null: none.
  const ModuleCall* outer() const { return outer_; }
  /// The hooks that observe the call; null: none.
  ModuleHooks* hooks() const;
  /// Runs f() with hooks that may replace `inputs` in place, where f reads them, and returns its result.
  template <class F>
  auto run_seen(ModuleHooks& hooks, std::span<Tensor> inputs, F f) {
    enter(hooks, inputs);
    auto result = f();
    leave(hooks, tensors_of(result));
    return result;
  }

 private:
  void enter(ModuleHooks& hooks, std::span<Tensor> inputs);
  void leave(ModuleHooks& hooks, const std::vector<Tensor*>& results) const;

  const Module& module_;
  const ModuleCall* outer_;
  CallerScope caller_;
  double before_;
  std::size_t untracked_inputs_ = 0;  // how many there are, if no tape tracks any
};

}  // namespace reel::nn
