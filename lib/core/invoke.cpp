#include "invoke.h"

#include "../tape/tape_list.h"
#include "autocast.h"
#include "context.h"

namespace reel::detail {
namespace {

inline void run_and_record(Context& context, Call& call) {
  for (std::size_t i = 0; i < call.specs.size(); ++i)
    call.outputs[i] = allocate(context, call.specs[i], call.op.name, call.where);
  call.op.forward(call);
  if (context.has(Context::recording)) context.tapes->record(context, call);
}

[[gnu::noinline]] void run_looked_at(Context& context, Call& call) {
  if (context.has(Context::autocasting) && !is_suited(context, call)) return invoke_suited(context, call);
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

void invoke(Call& call) {
  Context& context = detail::context();
  if (context.has(Context::looked_at)) [[unlikely]]
    return run_looked_at(context, call);
  run_and_record(context, call);
}

}  // namespace reel::detail
