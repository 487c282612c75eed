// Fits a line on all processes that mpirun starts, each with points of its own, as one process would fit it to all points:
//
//     make ranks && mpirun -np 2 ./ranks

#include <reel/dist.h>
#include <reel/reel.h>

#include <cstdio>

using namespace reel;

int main() {
  return dist::run([] {
    dist::Group group;
    nn::Linear line(1, 1);
    optim::Adam adam(line.parameters(), {.learning_rate = 0.1});
    dist::DataParallel parallel(group, line, adam);  // now all ranks have the first one's weights
    Tensor x = rand({64, 1}), y = 3 * x - 1;
    for (int step = 0; step < 500; ++step) {
      Tape tape;
      parallel.backward(tape, mean(square(line(x) - y)), 64);
      adam.step();
      adam.zero_grad();
    }
    std::printf("%d ranks: y = %.2f x %+.2f\n", group.size(), line.weight.item(), line.bias.item());
    return 0;
  });
}
