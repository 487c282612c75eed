#include "invoke.h"

#include <new>

#include "../tape/tape_list.h"
#include "autocast.h"
#include "context.h"
#include "device_module.h"
#include "memory_error.h"

namespace reel::detail {
namespace {

// Names the op that runs, for what a device finds wrong with it later.
class Running {
 public:
  Running(Context& context, const Call& call) : context_(context), before_(context.running) { context.running = &call; }
  ~Running() { context_.running = before_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Context& context_;
  const Call* before_;
};

inline void run(Context& context, Call& call) {
  for (std::size_t i = 0; i < call.specs.size(); ++i)
    call.outputs[i] = allocate(context, call.specs[i], call.op.name, call.where);
  call.op.forward(call);
}

inline void run_and_record(Context& context, Call& call) {
  run(context, call);
  if (context.has(Context::recording)) context.tapes->record(context, call);
}

[[gnu::noinline]] void run_looked_at(Context& context, Call& call) {
  context.tapes->scopes().settle(context);
  if (context.has(Context::autocasting) && !is_suited(context, call)) return invoke_suited(context, call);
  Running running(context, call);
  if (context.has(Context::on_device)) device_module().prepare(call);
  if (context.lane)
    context.lane->run(call);
  else
    run_and_record(context, call);
  if (context.listener) context.listener->finished(call, context.resolve(call.where));
}

}  // namespace

bool Call::same_kind(const Call& other) const {
  return &op == &other.op && attribute_bytes.size() == other.attribute_bytes.size() &&
         (attribute_bytes.empty() ||
          std::memcmp(attribute_bytes.data(), other.attribute_bytes.data(), attribute_bytes.size()) == 0);
}

void run_and_record(Call& call) { run_and_record(context(), call); }

void invoke(Call& call) try {
  Context& context = detail::context();
  if (context.has(Context::looked_at)) [[unlikely]]
    return run_looked_at(context, call);
  run(context, call);
  if ((context.flags & (Context::recording | Context::on_device)) == 0) return;
  if (context.has(Context::recording)) context.tapes->record(context, call);
  // A thread's first op on a device, older than the module: its new queue has waited for the others, but they do not know
  // yet what it uses.
  if (context.has(Context::on_device)) [[unlikely]]
    device_module().prepare(call);
} catch (const std::bad_alloc&) {
  fail_for_memory(call.op.name, call.where);
}

}  // namespace reel::detail
