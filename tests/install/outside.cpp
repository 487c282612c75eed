#include <reel/reel.h>

#include <cstdio>

int main() {
  reel::Tensor x = reel::tensor({1.0, 2.0, 3.0});
  reel::Tape tape;
  tape.watch(x);
  reel::Tensor gradient = tape.gradient(reel::sum(x * x), x);
  std::puts(reel::to_string(gradient).c_str());
}
