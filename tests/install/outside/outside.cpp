#include <reel/reel.h>

#include <cstdio>

// Prints the versions of headers and library, a gradient, and why there is no GPU, a line each.
int main() {
  std::printf("%s %s\n", reel::version.string, reel::library_version().string);
  reel::Tensor x = reel::tensor({1.0, 2.0, 3.0});
  reel::Tape tape;
  tape.watch(x);
  reel::Tensor gradient = tape.gradient(reel::sum(x * x), x);
  std::puts(reel::to_string(gradient).c_str());
  std::puts(reel::cuda::why_not().c_str());
}
