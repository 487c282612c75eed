#include <reel/reel.h>

#include <cstdio>
#include <string>

// Prints the versions of headers and library, a gradient, why there is no GPU, and an array that was in a compressed file beside
// the program, a line each.
int main(int, char** arguments) {
  std::printf("%s %s\n", reel::version.string, reel::library_version().string);
  reel::Tensor x = reel::tensor({1.0, 2.0, 3.0});
  reel::Tape tape;
  tape.watch(x);
  reel::Tensor gradient = tape.gradient(reel::sum(x * x), x);
  std::puts(reel::to_string(gradient).c_str());
  std::puts(reel::cuda::why_not().c_str());
  std::string path = std::string(arguments[0]) + ".npz";
  reel::io::save_npz(path, {{"gradient", gradient}}, {.compress = true});
  std::puts(reel::to_string(reel::io::load_npz(path).at("gradient")).c_str());
}
