#include <reel/ops/stop_gradient.h>

#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../record/tape_list.h"
#include "../registry.h"

namespace reel {

using namespace detail;

// y = x, sharing its elements; no gradient

constexpr OpInfo stop_gradient_op{
    .name = "stop_gradient",
    .forward =
        [](Call& call) {
          const Tensor& x = *call.inputs[0];
          call.outputs[0] = view_of(x, x.shape(), x.strides(), 0, call.where);
          Body& body = call.outputs[0].body();
          // If a custom op saves the result, it is treated as a constant.
          if (body.slot >= first_isolated_scope)
            body.slot |= TapeList::constant_mark;
          else if (x.is_parameter() || context().tapes->is_live(x.body()))
            set_cut(body, Origin::detached);
        },
};

Tensor stop_gradient(const Arg& x) {
  return invoke_view(stop_gradient_op, tensor_of("stop_gradient", x), x.location(), {});
}

OpList detail::stop_gradient_ops() {
  static constexpr const OpInfo* ops[] = {&stop_gradient_op};
  return ops;
}

}  // namespace reel
