#pragma once

#include "invoke.h"
#include "joint_body.h"
#include "kernel_table.h"

namespace reel::detail {

/// Records an op that has run. It has no attributes, keeps no shapes, and gives what has its inputs' shape and dtype.
void record(Context& context, const OpInfo& op, Body& output, const Location& where, Body& x);
void record(Context& context, const OpInfo& op, Body& output, const Location& where, Body& a, Body& b);

/// The door's short way, for such an op on contiguous operands: where nobody looks, nothing is laid out to be seen.
/// `run` calls the op's kernel.
template <class Run, class... Operands>
[[gnu::always_inline]] inline Tensor invoke_shortly(const OpInfo& op, const Location& where, Run run, const Tensor& x,
                                                    const Operands&... others) {
  Context& context = detail::context();
  Body& like = x.body();
  if (context.has(Context::looked_at)) [[unlikely]]
    return invoke(op, {&x, &others...}, {like, like.dtype}, where);
  const KernelTable& table = kernels(like.device);
  Body* body = allocate_like(context, like, like.dtype, op, where);
  Tensor output = Tensor::adopt(body);
  run(table, *body, like, others.body()...);
  if (context.has(Context::recording)) record(context, op, *body, where, like, others.body()...);
  return output;
}

/// The same for an op that overwrites its first operand, which nobody else sees, while nothing records.
template <class Run>
[[gnu::always_inline]] inline void invoke_in_place(Context& context, const OpInfo& op, Tensor& x,
                                                   std::initializer_list<const Tensor*> others, Run run) {
  if (!context.has(Context::intercepted)) [[likely]]
    return run(x.body());
  Call call{op, {others.begin(), others.size()}, {}, {}, {&x, 1}, {}};
  invoke(call);
}

}  // namespace reel::detail
