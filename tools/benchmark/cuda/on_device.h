#pragma once

#include <reel/reel.h>

namespace reel_bench {

/// Waits for all that there is left for a device to do.
void synchronise(reel::Device device);

/// While it lives, products of f32 may round their operands to TF32.
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
