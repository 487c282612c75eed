#include <torch/optim/adam.h>

#include <reel/reel.h>

#include <memory>

#include "cases.h"
#include "operands.h"

namespace reel_bench {

namespace {

constexpr std::int64_t element_count = 10'000'000;

// Parameters of one size, with fixed gradients.
struct Parameters {
  std::vector<reel::Tensor> ours;
  std::vector<at::Tensor> theirs;

  explicit Parameters(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      Pair values = numbers({element_count / count}), gradients = numbers({element_count / count}, -0.5, 0.5);
      values.theirs.requires_grad_(true);
      values.theirs.mutable_grad() = gradients.theirs;
      theirs.push_back(values.theirs);
      values.ours.requires_grad();
      values.ours.set_grad(gradients.ours);
      ours.push_back(values.ours);
    }
  }
};

PeerEntry adam_case(std::int64_t count) {
  std::string name = "Adam, 1e7 f32 in " + std::to_string(count) + " tensors";
  return {"optim", name, [=] {
            TorchRecords parameters_that_have_gradients;
            Parameters parameters(count);
            auto ours = std::make_shared<reel::optim::Adam>(parameters.ours);
            auto theirs = std::make_shared<torch::optim::Adam>(parameters.theirs, torch::optim::AdamOptions());
            return PeerCase{"optim", name,
                            // w, its gradient, m and v are read, all but the gradient written.
                            7.0 * 4 * element_count, "GB/s", [=] { ours->step(); },
                            [=] {
                              TorchRecords as_in_training;
                              theirs->step();
                            }};
          }};
}

}  // namespace

std::vector<PeerEntry> optim_cases() { return {adam_case(100), adam_case(10'000)}; }

}  // namespace reel_bench
