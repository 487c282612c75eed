#pragma once

#include "../../../lib/kernels/loss.h"

namespace reel::detail::inline REEL_TARGET {

bool ctc_loss(const View& losses, const View& alphas, const View& logs, const CtcTargets& given, CtcFault& fault);
void ctc_loss_gradient(const View& out, const View& gradient, const View& logs, const View& alphas,
                       const CtcTargets& given);

}  // namespace reel::detail::inline REEL_TARGET
