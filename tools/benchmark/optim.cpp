#include <reel/reel.h>

#include <chrono>
#include <memory>

#include "cases.h"

namespace reel_bench {

namespace {

using namespace reel;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t element_count = 10'000'000;

// Instructions are counted inside of the function that is named measured_…
[[gnu::noinline]] void measured_step(optim::Optimiser& optimiser) { optimiser.step(); }

std::function<double()> adam(std::int64_t count) {
  auto optimiser = std::make_shared<std::unique_ptr<optim::Adam>>();
  return [=] {
    if (!*optimiser) {
      std::vector<Tensor> parameters;
      for (std::int64_t i = 0; i < count; ++i) {
        parameters.push_back(rand({element_count / count}).requires_grad());
        parameters.back().set_grad(rand({element_count / count}) - 0.5);
      }
      *optimiser = std::make_unique<optim::Adam>(parameters);
    }
    auto start = Clock::now();
    measured_step(**optimiser);
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  };
}

}  // namespace

// The memory bandwidth of one thread differs between machines; that many small tensors cost little more
// does not. --peer has the goal against libtorch.
std::vector<Case> optim() {
  return {{"optim", "adam_100_tensors", element_count, 0, adam(100)},
          {"optim", "adam_10000_tensors", element_count, 2.5, adam(10'000), "adam_100_tensors"}};
}

}  // namespace reel_bench
