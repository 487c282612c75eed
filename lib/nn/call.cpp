#include <reel/nn/call.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include <reel/custom.h>
#include <reel/nn/module.h>
#include <reel/tape.h>

#include "../core/op_error.h"
#include "../core/warning.h"
#include "../record/tape_list.h"

namespace reel::nn {

using namespace detail;

namespace {

// The tensors of a call at which an observing op is recorded, with the hooks that it calls; owned by the tape list.
struct Boundary {
  std::shared_ptr<const ModuleHooks> hooks;
  ModuleHooks::When when;
  std::vector<std::size_t> numbers;  // the indices of the tensors whose gradients are observed
  std::size_t count;
  std::size_t untracked_inputs;  // of results: the number of inputs if none of them gets a gradient, else 0
};

void pass_forward(CustomForward& run) {
  std::ranges::copy(run.inputs, run.outputs.begin());
  auto* boundary = static_cast<Boundary*>(run.op);
  std::memcpy(run.state, static_cast<const void*>(&boundary), sizeof(Boundary*));
}

void pass_backward(const CustomGradient& run) {
  const Boundary* boundary = nullptr;
  std::memcpy(static_cast<void*>(&boundary), run.state(), sizeof(Boundary*));
  std::vector<Tensor> all(boundary->count), passed, none(boundary->untracked_inputs);
  for (std::size_t k = 0; k < boundary->numbers.size(); ++k) all[boundary->numbers[k]] = run.output(k);
  boundary->hooks->run(boundary->when, all);
  if (!none.empty()) boundary->hooks->run(ModuleHooks::after_backward, none);
  for (std::size_t number : boundary->numbers) passed.push_back(all[number]);
  run.give(passed);
}

// The indices of the tensors that get gradients.
std::vector<std::size_t> tracked(const Context& context, std::span<Tensor* const> tensors) {
  std::vector<std::size_t> numbers;
  if (!context.has(Context::recording)) return numbers;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i]->defined()) continue;
    wait_for(*tensors[i], {});
    const Body& body = tensors[i]->body();
    if (body.requires_grad || context.tapes->is_live(body)) numbers.push_back(i);
  }
  return numbers;
}

constinit std::atomic<std::uint64_t> observed = 0;

// Records an identity op around tensors that reports their gradients to the hooks. Returns false if none gets a
// gradient.
bool observe(ModuleHooks& hooks, ModuleHooks::When when, std::span<Tensor* const> tensors,
             std::size_t untracked_inputs = 0) {
  Context& context = detail::context();
  std::vector<std::size_t> numbers = tracked(context, tensors);
  if (numbers.empty()) return false;
  std::vector<Arg> inputs;
  for (std::size_t i : numbers) inputs.emplace_back(*tensors[i], context.caller);
  auto boundary =
      std::make_shared<Boundary>(hooks.shared_from_this(), when, std::move(numbers), tensors.size(), untracked_inputs);
  std::vector<Tensor> outputs(inputs.size());
  const CustomFunctions functions{.forward = pass_forward, .gradient = pass_backward, .state_bytes = sizeof(void*)};
  run_custom(custom_op("module_hook", functions), boundary.get(), inputs, outputs);
  context.tapes->keep(boundary);
  for (std::size_t k = 0; k < outputs.size(); ++k) *tensors[boundary->numbers[k]] = std::move(outputs[k]);
  return true;
}

}  // namespace

std::uint64_t ModuleHooks::add(TensorsHook f, When when, Location where) {
  std::lock_guard lock(mutex_);
  hooks_.push_back(std::make_shared<Hook>(std::move(f), when, added_, where));
  return added_++;
}

void ModuleHooks::remove(std::uint64_t id) noexcept {
  // Its captures are destroyed after the lock is released, because that may remove other hooks.
  std::shared_ptr<Hook> gone;
  {
    std::lock_guard lock(mutex_);
    auto found = std::ranges::find_if(hooks_, [&](const auto& hook) { return hook->id == id; });
    if (found == hooks_.end()) return;
    gone = std::move(*found);
    hooks_.erase(found);
  }
  gone->removed.store(true, std::memory_order_relaxed);
  if (!called_.load(std::memory_order_relaxed) && !reported_.exchange(true)) warn_of_silence(*gone);
}

bool ModuleHooks::empty() const {
  std::lock_guard lock(mutex_);
  return hooks_.empty();
}

bool ModuleHooks::sees(When when) const {
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(hooks_, [&](const auto& hook) { return hook->when == when; });
}

void ModuleHooks::run(When when, std::span<Tensor> tensors) const {
  std::vector<std::shared_ptr<Hook>> called;
  {
    std::lock_guard lock(mutex_);
    std::ranges::copy_if(hooks_, std::back_inserter(called), [&](const auto& hook) { return hook->when == when; });
  }
  for (const std::shared_ptr<Hook>& hook : called)
    if (!hook->removed.load(std::memory_order_relaxed)) hook->f(tensors);
}

void ModuleHooks::check_called(const Module& part, Location where) const {
  if (called_.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(mutex_);
  if (hooks_.empty()) return;
  reported_ = true;
  fail<Error>("Module", where,
              "a hook of {}, added at {}, would not run: the {} within it is called, but not the {} itself; let its "
              "operator() do its work in a function that it gives to call(…), or remove the hook",
              module_, to_string(hooks_[0]->where), part.type_name(), module_);
}

void ModuleHooks::warn_of_silence(const Hook& hook) const noexcept {
  warn([&] {
    return fmt::format(
        "a hook of {}, added at {}, never ran, because the module was not called: its operator() has to do its work in "
        "a function that it gives to call(…)",
        module_, to_string(hook.where));
  });
}

ModuleHook& ModuleHook::operator=(ModuleHook&& other) noexcept {
  if (this == &other) return *this;
  remove();
  hooks_ = std::move(other.hooks_);
  id_ = other.id_;
  return *this;
}

void ModuleHook::remove() noexcept {
  if (std::shared_ptr<ModuleHooks> hooks = hooks_.lock()) hooks->remove(id_);
  hooks_.reset();
}

ModuleHook Module::add_hook(TensorsHook f, ModuleHooks::When when, Location where) {
  if (!is_called())
    fail<Error>("Module", where, "a {} is never called itself, so that a hook on it would not run; hook its modules",
                type_name());
  if (!f) fail<Error>("Module", where, "the hook of {} is an empty function", type_name());
  if (!hooks_) hooks_ = std::make_shared<ModuleHooks>(type_name());
  return {hooks_, hooks_->add(std::move(f), when, context().call_site(where))};
}

ModuleHook Module::before_forward(TensorsHook f, Location where) {
  return add_hook(std::move(f), ModuleHooks::before_forward, where);
}
ModuleHook Module::after_forward(TensorsHook f, Location where) {
  return add_hook(std::move(f), ModuleHooks::after_forward, where);
}
ModuleHook Module::before_backward(TensorsHook f, Location where) {
  return add_hook(std::move(f), ModuleHooks::before_backward, where);
}
ModuleHook Module::after_backward(TensorsHook f, Location where) {
  return add_hook(std::move(f), ModuleHooks::after_backward, where);
}

bool Module::has_hooks() const { return hooks_ && !hooks_->empty(); }

void Module::check_hooks_around(Location where) const {
  for (const Module* outer = around_; outer; outer = outer->around_)
    if (outer->hooks_) outer->hooks_->check_called(*this, where);
}

ModuleCall::ModuleCall(const Module& module, Location where, const char* op)
    : module_(module.original()),
      outer_(static_cast<const ModuleCall*>(context().module_call)),
      caller_(where, op),
      before_(context().multiplications) {
  module_.check_not_moved_from(where);
  if (module_.hooks_) module_.hooks_->mark_called();
  module_.check_hooks_around(where);
  if (context().listener) observed.fetch_add(1, std::memory_order_relaxed);
  context().module_call = this;
}

std::uint64_t ModuleCall::observed_calls() { return observed.load(std::memory_order_relaxed); }

ModuleCall::ModuleCall(const Module& module, const char* op, const Arg& x) : ModuleCall(module, x.location(), op) {
  tensor_of(op, x);
}

ModuleCall::~ModuleCall() {
  context().module_call = outer_;
  module_.multiplications_.store(context().multiplications - before_, std::memory_order_relaxed);
}

std::string ModuleCall::module_path() const { return module_.path(); }

ModuleHooks* ModuleCall::hooks() const { return module_.hooks_.get(); }

void ModuleCall::enter(ModuleHooks& hooks, std::span<Tensor> inputs) {
  hooks.run(ModuleHooks::before_forward, inputs);
  if (!hooks.sees(ModuleHooks::after_backward)) return;
  std::vector<Tensor*> tensors;
  for (Tensor& input : inputs) tensors.push_back(&input);
  if (!observe(hooks, ModuleHooks::after_backward, tensors)) untracked_inputs_ = inputs.size();
}

void ModuleCall::leave(ModuleHooks& hooks, const std::vector<Tensor*>& results) const {
  if (hooks.sees(ModuleHooks::after_forward)) {
    std::vector<Tensor> seen;
    for (Tensor* result : results) seen.push_back(*result);
    hooks.run(ModuleHooks::after_forward, seen);
    for (std::size_t i = 0; i < results.size(); ++i) *results[i] = std::move(seen[i]);
  }
  // If no input gets a gradient, only the gradients of the results show that a backward runs.
  if (hooks.sees(ModuleHooks::before_backward) || untracked_inputs_ > 0)
    observe(hooks, ModuleHooks::before_backward, results, untracked_inputs_);
}

}  // namespace reel::nn
