// small_ranks DIRECTORY STEPS [throws | check | catches]: a small training on all ranks that resumes from the checkpoints in
// DIRECTORY. Rank 0 prints "saved" after each save that has returned, and in the end the parameters.
// throws: the last rank multiplies tensors that do not fit. check: only tells by its exit status whether a checkpoint
// can be restored. catches: an interruption's status is returned, and does not pass as an exception.

#include <cstdio>
#include <string>
#include <vector>

#include <reel/data/loader.h>
#include <reel/dist.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>
#include <reel/train.h>

using namespace reel;

namespace {

struct Net : nn::Module {
  nn::Embedding rows{*this, "rows", 60, 8, {.row_gradient = true}};
  nn::Linear hidden{*this, "hidden", 8, 16};
  nn::Linear output{*this, "output", 16, 1};

  Tensor operator()(const Tensor& x) const { return output(tanh(hidden(rows(x)))); }
};

int train_on_ranks(const std::string& directory, std::int64_t steps, const std::string& mode) {
  train::Interruption interruption;
  dist::Group group;
  manual_seed(1);
  std::vector<std::int64_t> items;
  for (std::int64_t i = 0; i < 57; ++i) items.push_back(i);
  data::Loader loader(items,
                      {.batch_size = 8, .shuffle = true, .seed = 2, .shard = group.rank(), .shards = group.size()});
  Net net;
  optim::Adagrad adagrad(net.parameters(), {.learning_rate = 0.05});
  if (mode == "check") {
    train::Checkpoint check(directory, {{"model", net}, {"adagrad", adagrad}, {"loader", loader}}, {.read_only = true});
    return check.resume() ? 0 : 3;
  }
  dist::DataParallel parallel(group, net, adagrad, {.bucket_bytes = 256, .by_rows = {net.rows.table}});
  dist::Checkpoint checkpoint(group, directory, {{"model", net}, {"adagrad", adagrad}, {"loader", loader}},
                              {.keep_last = 2});
  checkpoint.resume();
  while (checkpoint.steps() < steps) {
    for (const std::vector<std::int64_t>& batch : loader) {
      if (checkpoint.steps() == steps) break;
      if (mode == "throws" && checkpoint.steps() == 5 && group.rank() == group.size() - 1)
        matmul(zeros({2, 3}), zeros({2, 3}));
      Tape tape;
      if (batch.empty()) {
        parallel.join();
      } else {
        Tensor target = to(reshape(tensor(batch), {std::ssize(batch), 1}), f32) / 57;
        parallel.backward(tape, mse_loss(net(tensor(batch)), target), batch.size());
      }
      adagrad.step();
      adagrad.zero_grad();
      checkpoint.after_step();
      if (checkpoint.steps() % 3 != 0) continue;
      checkpoint.save();
      std::puts("saved");
      std::fflush(stdout);
    }
  }
  parallel.check_replicas();
  for (const NamedTensor& one : net.named_parameters())
    for (float value : one.tensor.to_vector<float>()) std::printf("%.9g\n", static_cast<double>(value));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: small_ranks DIRECTORY STEPS [throws | check | catches]\n", stderr);
    return 2;
  }
  std::string mode = argc > 3 ? argv[3] : "";
  return dist::run([&] {
    try {
      return train_on_ranks(argv[1], std::stoll(argv[2]), mode);
    } catch (const train::Interrupted& interrupted) {
      if (mode != "catches") throw;
      return interrupted.exit_status();
    }
  });
}
