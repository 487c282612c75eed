#include "on_device.h"

namespace reel_bench {

void synchronise(reel::Device device) {
  if (device.type == reel::Device::Type::cuda) to(reel::ones({1}, {.device = device}), reel::cpu);
}

TF32::TF32(bool allowed) : before_(allowed) {}
TF32::~TF32() = default;

}  // namespace reel_bench
