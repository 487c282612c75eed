#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <reel/location.h>
#include <reel/ops/recurrent.h>
#include <reel/tensor.h>

namespace reel::nn {

class Module;

/// Sees the inputs, results or gradients of a module's call, and may replace them.
using TensorsHook = std::function<void(std::span<Tensor> tensors)>;

/// The hooks of a module. Threads may run them, and add and remove some, at once.
class ModuleHooks : public std::enable_shared_from_this<ModuleHooks> {
 public:
  enum When : std::uint8_t { before_forward, after_forward, before_backward, after_backward };

  /// `module`: the type's name, for messages.
  explicit ModuleHooks(std::string module) : module_(std::move(module)) {}

  /// Returns the hook's number.
  std::uint64_t add(TensorsHook f, When when, Location where);
  void remove(std::uint64_t number) noexcept;
  bool empty() const;
  bool sees(When when) const;
  /// Runs those of one kind; one that is removed meanwhile runs no more, and one that is added not yet.
  void run(When when, std::span<Tensor> tensors) const;

  /// The module is being called.
  void note_call() { called_.store(true, std::memory_order_relaxed); }
  /// Throws: Error if the module was never called, although a part of it is.
  void check_called(const Module& part, Location where) const;

 private:
  // Called where it is, so that it keeps its state from one call to the next.
  struct Hook {
    TensorsHook f;
    When when;
    std::uint64_t number;
    Location where;
    std::atomic<bool> removed = false;
  };
  void warn_of_silence(const Hook& hook) const noexcept;

  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Hook>> hooks_;
  std::uint64_t added_ = 0;
  std::atomic<bool> called_ = false;
  mutable std::atomic<bool> reported_ = false;  // that the hooks do not run
  std::string module_;
};

/// While it lives, a hook of a module is called.
class [[nodiscard]] ModuleHook {
 public:
  ModuleHook(std::weak_ptr<ModuleHooks> hooks, std::uint64_t number) : hooks_(std::move(hooks)), number_(number) {}
  ModuleHook(ModuleHook&& other) noexcept = default;
  ModuleHook& operator=(ModuleHook&& other) noexcept;
  ~ModuleHook() { remove(); }
  void remove() noexcept;

 private:
  std::weak_ptr<ModuleHooks> hooks_;
  std::uint64_t number_;
};

/// The tensors of a result, for hooks. A layer that returns a struct of its own overloads it beside that struct.
inline std::vector<Tensor*> tensors_of(Tensor& result) { return {&result}; }
inline std::vector<Tensor*> tensors_of(LSTMState& result) { return {&result.h, &result.c}; }
inline std::vector<Tensor*> tensors_of(LSTMOutput& result) { return {&result.output, &result.h_n, &result.c_n}; }
inline std::vector<Tensor*> tensors_of(RecurrentOutput& result) { return {&result.output, &result.h_n}; }

/// A running call of a module.
class ModuleCall {
 public:
  /// Throws: Error if a module around this one has hooks and was never called itself, so that they would not run.
  ModuleCall(const Module& module, Location where);
  ModuleCall(const Module& module, const char* op, const Arg& x);
  ~ModuleCall();
  ModuleCall(const ModuleCall&) = delete;
  ModuleCall& operator=(const ModuleCall&) = delete;

  template <class F, class... Inputs>
  auto run(ModuleHooks* hooks, F& f, const Inputs&... inputs) {
    if (!hooks) return f(inputs...);
    std::array<Tensor, sizeof...(Inputs)> seen{inputs...};
    return run_seen(*hooks, seen, [&] { return std::apply(f, seen); });
  }
  /// What is to see the call; null: nothing.
  ModuleHooks* hooks() const;
  /// f() with any number of inputs, which it reads where they stand: hooks may replace them there.
  template <class F>
  auto run_seen(ModuleHooks& hooks, std::span<Tensor> inputs, F f) {
    enter(hooks, inputs);
    auto result = f();
    leave(hooks, tensors_of(result));
    return result;
  }

 private:
  void enter(ModuleHooks& hooks, std::span<Tensor> inputs);
  void leave(ModuleHooks& hooks, const std::vector<Tensor*>& results);

  const Module& module_;
  CallerScope caller_;
  double before_;
  std::size_t untracked_inputs_ = 0;  // how many there are, if no tape tracks any
};

}  // namespace reel::nn
