#include "on_device.h"

namespace reel_bench {

void synchronise(reel::Device device) {
  if (device != reel::cpu) reel::cuda::synchronize(device);
}

TF32::TF32(bool allowed) : before_(reel::cuda::tf32_is_allowed()) { reel::cuda::allow_tf32(allowed); }
TF32::~TF32() { reel::cuda::allow_tf32(before_); }

}  // namespace reel_bench
