#include "hooks.h"

#include <algorithm>
#include <utility>

#include <reel/tape.h>

#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../core/storage.h"
#include "../ops/registry.h"
#include "backward_pass.h"
#include "custom.h"
#include "differentiation.h"
#include "owned.h"

namespace reel {

using namespace detail;

namespace {

// A hook is user code: its ops report their own call sites, and belong to no op's gradient.
class OwnCode {
 public:
  explicit OwnCode(Context& context)
      : lines_(context, Context::caller_named, false), op_(context.differentiating, nullptr) {}

 private:
  FlagScope lines_;
  ScopedValue<const OpInfo*> op_;
};

template <class E>
[[noreturn]] void refuse_form(const char* caller, const Tensor& gradient, const SlotForm& form, std::string_view of,
                              Location where) {
  fail<E>(caller, where, "the hook gave {} on {} for the gradient of {}, which is {} {} on {}; give one that fits",
          describe(gradient), to_string(gradient.device()), of, to_string(form.shape()), name_of(form.dtype),
          to_string(form.device));
}

// Throws: ShapeError, DTypeError, DeviceError unless a hook's gradient has the shape, dtype and device of the slot.
void check_form(const char* caller, const Tensor& gradient, const SlotForm& form, std::string_view of, Location where) {
  if (form.matches(gradient.body())) return;
  if (gradient.shape() != form.shape()) refuse_form<ShapeError>(caller, gradient, form, of, where);
  if (gradient.dtype() != form.dtype) refuse_form<DTypeError>(caller, gradient, form, of, where);
  refuse_form<DeviceError>(caller, gradient, form, of, where);
}

// Checks that a hook does not overwrite the gradient that it gets: other gradients may share its elements.
class Unchanged {
 public:
  explicit Unchanged(const Tensor& gradient) : gradient_(gradient), version_(version()) {}
  void check(const char* caller, Location where) const {
    if (version() != version_)
      fail<TapeError>(caller, where,
                      "the hook overwrote the gradient {} that it was given, at {}, and others may share its elements; "
                      "return a new tensor instead",
                      describe(gradient_), to_string(gradient_.body().storage->last_overwrite()));
  }

 private:
  std::uint32_t version() const { return gradient_.body().storage->version.load(std::memory_order_relaxed); }

  const Tensor& gradient_;
  std::uint32_t version_;
};

// The gradient that a hook returns may be on the tape that is being differentiated; it stays recorded only if an outer
// tape records.
Tensor plain(Tensor gradient, Location where) {
  const Body& body = gradient.body();
  bool recorded = body.requires_grad || !is_untracked(body);
  if (recorded && !is_recording()) return stop_gradient({gradient, where});
  return gradient;
}

}  // namespace

namespace detail {

void Hooks::add(const Tensor& x, std::uint32_t slot, std::uint64_t epoch, GradientHook call, Location where) {
  tensor_hooks_.push_back({x.is_parameter() ? x : Tensor{}, slot, epoch, std::move(call), where});
}

void Hooks::begin(const TapeList& list, const Tape& tape) {
  std::erase_if(tensor_hooks_,
                [&](const TensorHook& hook) { return !hook.parameter.defined() && hook.epoch != list.epoch(); });
  waiting_.clear();
  traced.clear();
  for (std::size_t i = 0; i < tensor_hooks_.size(); ++i) {
    const TensorHook& hook = tensor_hooks_[i];
    if (std::uint32_t slot = hook.parameter.defined() ? list.slot_of(hook.parameter.body()) : hook.slot)
      waiting_.push_back({slot, false, i});
  }
  for (const TapeList::Trace& trace : list.traces()) {
    if (!trace.belongs_to(&tape)) continue;
    waiting_.push_back({trace.slot, true, traced.size()});
    traced.push_back({trace.where, {}, trace.truncated});
  }
  std::ranges::stable_sort(waiting_, {}, &Waiting::slot);
  slots_.clear();
  for (const Waiting& waiting : waiting_) slots_.push_back(waiting.slot);
}

void Hooks::complete(BackwardPass& pass, std::uint32_t slot) {
  auto all = std::ranges::equal_range(waiting_, slot, {}, &Waiting::slot);
  if (all.empty()) return;
  Tensor gradient = pass.take_gradient(slot);
  if (!gradient.defined()) return;
  for (const Waiting& waiting : all) {
    gradient = owned(std::move(gradient));
    if (waiting.trace) {
      traced[waiting.number].gradient = plain(gradient, traced[waiting.number].where);
      continue;
    }
    const TensorHook& hook = tensor_hooks_[waiting.number];
    Unchanged unchanged(gradient);
    OwnCode own(context());
    Tensor returned = hook.call(gradient);
    unchanged.check("hook", hook.where);
    if (!returned.defined() || returned.is(gradient)) continue;
    const SlotForm& form = *pass.list().slot(slot).form;
    check_form("hook", returned, form, "the hooked tensor", hook.where);
    gradient = plain(std::move(returned), hook.where);
  }
  pass.replace(slot, std::move(gradient));
}

bool Hooks::sees(const OpInfo& op) const {
  return std::ranges::any_of(op_hooks_, [&](const OpKindHook& hook) { return hook.op == op.name; });
}

void Hooks::pass(const TapeList& list, const Entry& entry, std::span<Tensor> outputs, std::span<Tensor> inputs) const {
  for (const OpKindHook& hook : op_hooks_) {
    if (hook.op != entry.op->name) continue;
    for (std::span<Tensor> gradients : {outputs, inputs})
      for (Tensor& gradient : gradients)
        if (gradient.defined()) gradient = owned(std::move(gradient));
    std::vector<Tensor> before(inputs.begin(), inputs.end());
    std::vector<Unchanged> unchanged;
    for (const Tensor& gradient : outputs)
      if (gradient.defined()) unchanged.emplace_back(gradient);
    for (const Tensor& gradient : before)
      if (gradient.defined()) unchanged.emplace_back(gradient);
    OwnCode own(context());
    hook.call({entry.op->name, entry.where(), outputs, inputs});
    for (const Unchanged& gradient : unchanged) gradient.check("hook_op", hook.where);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (std::uint32_t slot = entry.input_slots()[i]; slot && inputs[i].defined()) {
        check_form("hook_op", inputs[i], *list.slot(slot).form, fmt::format("input {} of {}", i, entry.op->name),
                   hook.where);
        inputs[i] = plain(std::move(inputs[i]), hook.where);
      }
  }
}

void check_recorded(const char* caller, std::string_view name, Location where) {
  if (is_composed(name))
    fail<Error>(caller, where, "{} is composed of other ops and leaves no entry of its own; hook those", name);
  if (const OpInfo* op = find_op(name)) {
    if (!op->gradient) fail<Error>(caller, where, "{} has no gradient, so a tape never holds one", name);
    if (op->name != name) fail<Error>(caller, where, "{} is recorded as {}; hook that", name, op->name);
    return;
  }
  if (name == "checkpoint" || is_custom_op(name)) return;
  fail<Error>(caller, where,
              "there is no op named '{}'; debug::ops() lists all, and a custom one is known when it has run", name);
}

}  // namespace detail

void Tape::add_hook(const Arg& x, GradientHook f) {
  with_memory_error("hook", x.location(), [&] {
    TapeList& list = usable("hook", x.location());
    const Tensor& tensor = tensor_of("hook", x);
    wait_for(tensor, x.location());
    check_floating("hook", tensor, x.location());
    if (!f) fail<Error>("hook", x.location(), "the function for the gradient of {} is empty", describe(tensor));
    std::uint32_t slot = tensor.is_parameter() ? 0 : tracked_slot("hook", tensor, x.location());
    hooks().add(tensor, slot, list.epoch(), std::move(f), context().call_site(x.location()));
  });
}

void Tape::hook_op(std::string_view op, OpHook f, Location where) {
  with_memory_error("hook_op", where, [&] {
    TapeList& list = usable("hook_op", where);
    if (!f) fail<Error>("hook_op", where, "the function for the gradients of {} is empty", op);
    check_recorded("hook_op", op, where);
    list.hook(op, this);
    hooks().add(op, std::move(f), context().call_site(where));
  });
}

void Tape::trace(const Arg& h) {
  with_memory_error("trace", h.location(), [&] {
    TapeList& list = usable("trace", h.location());
    const Tensor& tensor = tensor_of("trace", h);
    wait_for(tensor, h.location());
    check_floating("trace", tensor, h.location());
    std::uint32_t slot =
        tensor.is_parameter() ? list.track("trace", tensor, h.location()) : tracked_slot("trace", tensor, h.location());
    list.trace({slot, context().call_site(h.location()), false, this});
  });
}

std::vector<Traced> Tape::traced() const {
  std::vector<Traced> found = hooks_ ? hooks_->traced : std::vector<Traced>{};
  for (Traced& trace : found) {
    if (!trace.gradient.defined()) continue;
    // An outer tape that recorded the gradient may have finished.
    bool is_live = list_.is_live(trace.gradient.body());
    Tensor kept = is_live ? trace.gradient : stop_gradient({trace.gradient, trace.where});
    trace.gradient = copy({kept, trace.where});
  }
  return found;
}

std::uint32_t Tape::tracked_slot(const char* function, const Tensor& x, Location where) const {
  std::uint32_t slot = list_.tracked_slot(function, x, where);
  check_unused(function, x, where);
  list_.check_own(function, x, where);
  return slot;
}

Hooks& Tape::hooks() {
  if (!hooks_) hooks_ = std::make_unique<Hooks>();
  return *hooks_;
}

Tensor truncate(const Arg& h) {
  return with_memory_error("truncate", h.location(), [&] {
    check_floating("truncate", tensor_of("truncate", h), h.location());
    Context& context = detail::context();
    Tensor cut = stop_gradient(h);
    if (context.has(Context::recording) && !context.tapes->only_collects_uses) {
      TapeList& list = *context.tapes;
      Location where = context.call_site(h.location());
      list.trace({list.track("truncate", cut, where), where, true, nullptr});
    }
    return cut;
  });
}

}  // namespace reel
