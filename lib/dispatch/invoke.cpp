#include "invoke.h"

#include <algorithm>
#include <new>

#include "../core/context.h"
#include "../core/device/device_module.h"
#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../record/tape_list.h"
#include "autocast.h"

namespace reel::detail {
namespace {

inline void run(Context& context, Call& call) {
  for (std::size_t i = 0; i < call.specs.size(); ++i)
    call.outputs[i] = allocate(context, call.specs[i], call.op.name, call.where);
  call.op.forward(call);
}

inline void run_and_record(Context& context, Call& call) {
  run(context, call);
  if (context.has(Context::recording)) context.tapes->record(context, call);
}

void run_or_intercept(Context& context, Call& call) {
  if (context.interceptor && context.has(Context::intercepted))
    context.interceptor->run(call);
  else
    run_and_record(context, call);
}

[[gnu::noinline]] void run_observed(Context& context, Call& call) {
  Location where = context.call_site(call.where);
  for (const Tensor* input : call.inputs) wait_for(*input, where);
  context.listener->starting(call, where);
  try {
    run_or_intercept(context, call);
  } catch (...) {
    if (context.listener) context.listener->failed(call);
    throw;
  }
  if (context.listener) context.listener->finished(call, where);
}

// A copy of a module shares what its members point to, so a pointer to a part leads to the tensors that were replaced.
void check_not_replaced(const Context& context, const Call& call) {
  if (context.differentiating) return;  // what was computed before
  for (const Tensor* input : call.inputs)
    if (std::ranges::binary_search(*context.replaced, &input->body()))
      fail<Error>(call.op.name, call.where,
                  "{}, made at {}, was replaced by functional_call, but the module reaches it through a pointer or a "
                  "reference to a part of itself; open nn::ReplacedParameters for the call instead",
                  describe(*input), to_string(input->made_at()));
}

[[gnu::noinline]] void run_slow_path(Context& context, Call& call) {
  context.tapes->scopes().apply_remote_ends(context);
  // An example of batch_map that nothing listens to.
  bool only_intercepted = (context.flags & Context::slow_path) == Context::intercepted && !context.listener;
  if (only_intercepted && context.interceptor) return context.interceptor->run(call);
  if (context.has(Context::autocasting) && !has_autocast_dtypes(context, call)) return invoke_autocast(context, call);
  if (context.has(Context::replacing)) check_not_replaced(context, call);
  // Errors that a device finds later name the op.
  ScopedValue<const Call*> running(context.running, &call);
  if (context.has(Context::on_device)) device_module().prepare(call);
  // The flag is off while a listener runs ops of its own.
  if (context.listener && context.has(Context::intercepted)) return run_observed(context, call);
  run_or_intercept(context, call);
}

}  // namespace

void run_and_record(Call& call) { run_and_record(context(), call); }

void invoke(Call& call) try {
  Context& context = detail::context();
  if (context.takes_slow_path() || (context.interceptor && (call.op.shares_weight || call.views_parameter())))
      [[unlikely]]
    return run_slow_path(context, call);
  run(context, call);
  if ((context.flags & (Context::recording | Context::on_device)) == 0) return;
  if (context.has(Context::recording)) context.tapes->record(context, call);
  // If this was the thread's first op on a device, it began before the module was prepared: its new queue has waited
  // for those of other threads, but they do not know yet which operands it uses.
  if (context.has(Context::on_device)) [[unlikely]]
    device_module().prepare(call);
} catch (const std::bad_alloc&) {
  fail_for_memory(call.op.name, call.where);
}

}  // namespace reel::detail
