#pragma once

#include <reel/reel.h>

namespace reel_bench {

/// Waits until all work queued on a device is done.
void synchronise(reel::Device device);

/// Allows f32 products to round their operands to TF32 during its lifetime.
class TF32 {
 public:
  explicit TF32(bool allowed);
  ~TF32();
  TF32(const TF32&) = delete;
  TF32& operator=(const TF32&) = delete;

 private:
  bool before_;
};

}  // namespace reel_bench
