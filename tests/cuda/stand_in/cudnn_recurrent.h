#pragma once

namespace reel_test::stand_in {

#pragma GCC visibility push(default)
/// Whether persistent kernels of recurrent layers refuse forward, or backward, passes from now on, as cuDNN does for layers
/// that do not fit a GPU.
void refuse_persistent(bool forward, bool backward);
#pragma GCC visibility pop

}  // namespace reel_test::stand_in
