// small_training DIRECTORY WEIGHTS STEPS [asynchronous] [check]: a small training that resumes from the checkpoints in
// DIRECTORY, and saves its last weights and states to WEIGHTS. Prints "saved" after each save that has returned.
// check: only tells by its exit status whether a checkpoint can be restored.

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <reel/data/loader.h>
#include <reel/io.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>
#include <reel/train.h>

using namespace reel;

namespace {

constexpr std::int64_t save_every = 3, features = 16;

struct Net : nn::Module {
  nn::Linear hidden{*this, "hidden", features, 64};
  nn::BatchNorm1d norm{*this, "norm", 64};
  nn::Linear output{*this, "output", 64, 1};

  Tensor operator()(const Tensor& x) { return output(dropout(tanh(norm(hidden(x))), {.probability = 0.2})); }
};

// x (N, features) and y (N, 1).
train::Batch batch_of(const std::vector<std::int64_t>& items) {
  Tensor x = randn({std::ssize(items), features});
  return {x + tensor(std::vector<float>(items.begin(), items.end()))(ellipsis, newaxis) / 50,
          sum(x, {1}, {.keepdims = true})};
}

void add_state(std::vector<NamedTensor>& all, const std::string& name, const std::vector<NamedTensor>& state) {
  for (const NamedTensor& one : state) all.push_back({name + "." + one.name, one.tensor});
}

int run(const std::string& directory, const std::string& weights, std::int64_t steps, bool asynchronous,
        bool only_checks) {
  manual_seed(1);
  std::vector<std::int64_t> items;
  for (std::int64_t i = 0; i < 50; ++i) items.push_back(i);
  data::Loader loader(items, batch_of, {.batch_size = 8, .shuffle = true, .seed = 2, .workers = 2});
  Net net;
  optim::Adam adam(net.parameters(), {.learning_rate = 0.01});
  optim::Scheduler schedule(adam, optim::cosine({.steps = steps}));
  optim::MovingAverage average(net.parameters());
  double mean_loss = 0;
  train::Checkpoint checkpoint(directory,
                               {{"model", net},
                                {"adam", adam},
                                {"schedule", schedule},
                                {"average", average},
                                {"loader", loader},
                                {"mean_loss", mean_loss}},
                               {.keep_last = 2, .asynchronous = asynchronous, .read_only = only_checks});
  bool resumed = static_cast<bool>(checkpoint.resume());
  if (only_checks) return resumed ? 0 : 3;
  while (checkpoint.steps() < steps) {
    for (const train::Batch& batch : loader) {
      if (checkpoint.steps() == steps) break;
      Tape tape;
      Tensor loss = mse_loss(net(batch.x), batch.y);
      tape.backward(loss);
      adam.step();
      adam.zero_grad();
      schedule.step();
      average.update();
      mean_loss += 0.1 * (loss.item() - mean_loss);
      checkpoint.after_step();
      if (checkpoint.steps() % save_every != 0) continue;
      checkpoint.save();
      // In the background the snapshot before this one is complete.
      if (!checkpoint.latest().empty()) std::puts("saved");
      std::fflush(stdout);
    }
  }
  checkpoint.wait();
  std::vector<NamedTensor> all = net.named_parameters();
  for (const NamedTensor& buffer : net.named_buffers()) all.push_back(buffer);
  add_state(all, "adam", adam.state());
  add_state(all, "schedule", schedule.state());
  add_state(all, "average", average.state());
  all.push_back({"mean_loss", tensor({mean_loss})});
  io::save(weights, all);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  bool asynchronous = false, only_checks = false;
  for (int i = 4; i < argc; ++i) {
    asynchronous |= argv[i] == std::string("asynchronous");
    only_checks |= argv[i] == std::string("check");
  }
  if (argc < 4) {
    std::fputs("usage: small_training DIRECTORY WEIGHTS STEPS [asynchronous] [check]\n", stderr);
    return 2;
  }
  return run(argv[1], argv[2], std::stoll(argv[3]), asynchronous, only_checks);
} catch (const std::exception& error) {
  std::fprintf(stderr, "small_training: %s\n", error.what());
  return 1;
}
