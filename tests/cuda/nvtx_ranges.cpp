// Runs a few ops in a profile with ranges of NVIDIA's profilers, one of which throws.

#include <cstdio>

#include <reel/debug/profile.h>
#include <reel/reel.h>

using namespace reel;

int main() {
  Tensor x = ones({2}).requires_grad();
  {
    debug::Profile profile({.nvtx = true});
    Tape tape;
    Tensor y = sum(exp(x));
    try {
      static_cast<void>(matmul(x, ones({3})));
    } catch (const ShapeError&) {
      // as it should
    }
    tape.backward(y);
  }
  static_cast<void>(tanh(x));
  std::puts("done");
}
