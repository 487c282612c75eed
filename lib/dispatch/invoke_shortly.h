#pragma once

#include "../core/joint_body.h"
#include "../kernels/kernel_table.h"
#include "../record/record.h"
#include "invoke.h"

namespace reel::detail {

/// The dispatcher's inlined path for an elementwise op on contiguous operands: without an observer, no `Call` is built.
/// `run` calls the op's kernel.
template <class Run, class... Operands>
[[gnu::always_inline]] inline Tensor invoke_shortly(const OpInfo& op, const Location& where, Run run, const Tensor& x,
                                                    const Operands&... others) {
  Context& context = detail::context();
  Body& like = x.body();
  if (context.takes_slow_path()) [[unlikely]]
    return invoke(op, {&x, &others...}, {like, like.dtype}, where);
  const KernelTable& table = kernels(like.device);
  Body* body = allocate_like(context, like, like.dtype, op, where);
  Tensor output = Tensor::adopt(body);
  run(table, *body, like, others.body()...);
  if (context.has(Context::recording)) record(context, op, *body, where, like, others.body()...);
  return output;
}

/// Runs an op that overwrites its first operand, which has no other handle, while nothing records.
template <class Run>
[[gnu::always_inline]] inline void invoke_in_place(Context& context, const OpInfo& op, Tensor& x,
                                                   std::initializer_list<const Tensor*> others, Run run) {
  if (!context.has(Context::intercepted)) [[likely]]
    return run(x.body());
  Call call{op, {others.begin(), others.size()}, {}, {}, {&x, 1}, {}};
  invoke(call);
}

}  // namespace reel::detail
