#pragma once

#include "../../../core/target.h"
#include "../../../kernels/normalise.h"

namespace reel::detail::inline REEL_TARGET {

void normalise_channels(const View& y, const View& mean, const View& variance, const View& x, const View& weight,
                        const View& bias, const ChannelForm& form);
void normalise_channels_gradient(const View& dx, const View& dweight, const View& dbias, const View& d, const View& x,
                                 const View& weight, const View& mean, const View& variance, const ChannelForm& form);

}  // namespace reel::detail::inline REEL_TARGET
