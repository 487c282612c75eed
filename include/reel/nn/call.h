#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <reel/location.h>
#include <reel/ops/recurrent.h>
#include <reel/tensor.h>

namespace reel::nn {

class Module;

/// Sees the inputs, results or gradients of a module's call, and may replace them.
using TensorsHook = std::function<void(std::span<Tensor> tensors)>;

/// What is to see the calls of a module.
struct ModuleHooks : std::enable_shared_from_this<ModuleHooks> {
  enum When : std::uint8_t { before_forward, after_forward, before_backward, after_backward };
  struct Hook {
    TensorsHook f;
    When when;
    std::uint64_t number;
  };
  std::vector<Hook> hooks;
  std::uint64_t added = 0;

  bool sees(When when) const;
  void run(When when, std::span<Tensor> tensors) const;
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
  static void enter(ModuleHooks& hooks, std::span<Tensor> inputs);
  static void leave(ModuleHooks& hooks, const std::vector<Tensor*>& results);

  const Module& module_;
  CallerScope caller_;
  double before_;
};

}  // namespace reel::nn
