#include <reel/nn/call.h>

#include <algorithm>

#include <reel/custom.h>
#include <reel/nn/module.h>
#include <reel/tape.h>

#include "../core/op_error.h"
#include "../tape/tape_list.h"

namespace reel::nn {

using namespace detail;

namespace {

// The tensors of a call where a tape records them, with what sees their gradients; the tape's list owns it.
struct Boundary {
  std::shared_ptr<const ModuleHooks> hooks;
  ModuleHooks::When when;
  std::vector<std::size_t> numbers;  // of those whose gradients are asked for
  std::size_t count;
};

void pass_forward(CustomForward& run) {
  std::ranges::copy(run.inputs, run.outputs.begin());
  auto* boundary = static_cast<Boundary*>(run.op);
  std::memcpy(run.state, &boundary, sizeof boundary);
}

void pass_backward(const CustomGradient& run) {
  const Boundary* boundary = nullptr;
  std::memcpy(&boundary, run.state(), sizeof boundary);
  std::vector<Tensor> all(boundary->count), passed;
  for (std::size_t k = 0; k < boundary->numbers.size(); ++k) all[boundary->numbers[k]] = run.output(k);
  boundary->hooks->run(boundary->when, all);
  for (std::size_t number : boundary->numbers) passed.push_back(all[number]);
  run.give(passed);
}

// Puts an op around tensors that does nothing but show their gradients.
void observe(ModuleHooks& hooks, ModuleHooks::When when, std::span<Tensor* const> tensors) {
  Context& context = detail::context();
  if (!hooks.sees(when) || !context.has(Context::recording)) return;
  auto boundary =
      std::make_shared<Boundary>(hooks.shared_from_this(), when, std::vector<std::size_t>{}, tensors.size());
  std::vector<Arg> inputs;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i]->defined()) continue;
    const Body& body = tensors[i]->body();
    if (!body.requires_grad && !context.tapes->is_live(body)) continue;  // nobody asks for its gradient
    boundary->numbers.push_back(i);
    inputs.emplace_back(*tensors[i], context.caller);
  }
  if (inputs.empty()) return;
  std::vector<Tensor> outputs(inputs.size());
  const CustomFunctions functions{.forward = pass_forward, .gradient = pass_backward, .state_bytes = sizeof(void*)};
  run_custom(custom_op("module_hook", functions), boundary.get(), inputs, outputs);
  context.tapes->keep(boundary);
  for (std::size_t k = 0; k < outputs.size(); ++k) *tensors[boundary->numbers[k]] = std::move(outputs[k]);
}

}  // namespace

bool ModuleHooks::sees(When when) const {
  return std::ranges::any_of(hooks, [&](const Hook& hook) { return hook.when == when; });
}

void ModuleHooks::run(When when, std::span<Tensor> tensors) const {
  // A hook may remove itself, or add others.
  std::vector<TensorsHook> called;
  for (const Hook& hook : hooks)
    if (hook.when == when) called.push_back(hook.f);
  for (const TensorsHook& f : called) f(tensors);
}

ModuleHook& ModuleHook::operator=(ModuleHook&& other) noexcept {
  if (this == &other) return *this;
  remove();
  hooks_ = std::move(other.hooks_);
  number_ = other.number_;
  return *this;
}

void ModuleHook::remove() noexcept {
  if (std::shared_ptr<ModuleHooks> hooks = hooks_.lock())
    std::erase_if(hooks->hooks, [&](const ModuleHooks::Hook& hook) { return hook.number == number_; });
  hooks_.reset();
}

ModuleHook Module::add_hook(TensorsHook f, ModuleHooks::When when) {
  if (!hooks_) hooks_ = std::make_shared<ModuleHooks>();
  hooks_->hooks.push_back({std::move(f), when, hooks_->added});
  return {hooks_, hooks_->added++};
}

ModuleHook Module::before_forward(TensorsHook f) { return add_hook(std::move(f), ModuleHooks::before_forward); }
ModuleHook Module::after_forward(TensorsHook f) { return add_hook(std::move(f), ModuleHooks::after_forward); }
ModuleHook Module::before_backward(TensorsHook f) { return add_hook(std::move(f), ModuleHooks::before_backward); }
ModuleHook Module::after_backward(TensorsHook f) { return add_hook(std::move(f), ModuleHooks::after_backward); }

ModuleCall::ModuleCall(const Module& module, Location where)
    : module_(module), caller_(where), before_(context().multiplications) {}

ModuleCall::ModuleCall(const Module& module, const char* op, const Arg& x) : ModuleCall(module, x.location()) {
  tensor_of(op, x);
}

ModuleCall::~ModuleCall() {
  module_.multiplications_.store(context().multiplications - before_, std::memory_order_relaxed);
}

ModuleHooks* ModuleCall::hooks() const { return module_.hooks_.get(); }

void ModuleCall::enter(ModuleHooks& hooks, std::span<Tensor> inputs) {
  hooks.run(ModuleHooks::before_forward, inputs);
  std::vector<Tensor*> tensors;
  for (Tensor& input : inputs) tensors.push_back(&input);
  observe(hooks, ModuleHooks::after_backward, tensors);
}

void ModuleCall::leave(ModuleHooks& hooks, const std::vector<Tensor*>& results) {
  if (hooks.sees(ModuleHooks::after_forward)) {
    std::vector<Tensor> seen;
    for (Tensor* result : results) seen.push_back(*result);
    hooks.run(ModuleHooks::after_forward, seen);
    for (std::size_t i = 0; i < results.size(); ++i) *results[i] = std::move(seen[i]);
  }
  observe(hooks, ModuleHooks::before_backward, results);
}

}  // namespace reel::nn
