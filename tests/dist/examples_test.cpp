#include <reel/data/loader.h>
#include <reel/dist.h>
#include <reel/reel.h>
#include <reel/train.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "catch.h"
#include "io/folder.h"
#include "ranks.h"

// The examples in the headers of several processes, with the declarations that they use.

using namespace reel;

TEST_CASE("the examples of data parallel training train replicas that stay equal") {
  nn::Linear model(2, 2);
  optim::Adam adam(model.parameters(), {.learning_rate = 0.1});
  std::vector<std::int64_t> items(65);
  for (std::size_t i = 0; i < items.size(); ++i) items[i] = static_cast<std::int64_t>(i);
  auto collate = [](const std::vector<std::int64_t>& some) {
    Tensor x = to(reshape(tensor(some), {std::ssize(some), 1}), f32) / 64 + zeros({2});
    return train::Batch{x, to(x(ellipsis, 0) > 0.5, i64)};
  };
  std::vector<float> before = model.weight.to_vector<float>();
#include "examples/dist_data_parallel_1.h"
#include "examples/dist_data_parallel_2.h"
  parallel.check_replicas();
  CHECK(model.weight.to_vector<float>() != before);
}

TEST_CASE("the example of checkpoints resumes on all ranks what rank 0 has saved") {
  dist::Group group;
  // One folder for all ranks, which rank 0 removes.
  std::optional<reel_test::Folder> own;
  if (group.rank() == 0) own.emplace();
  std::string folder = own ? own->file("") : "";
  group.broadcast(folder);
  std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  auto run = [&] {
    nn::Linear model(1, 1);
    optim::Adam adam(model.parameters());
    std::vector<std::int64_t> items{1, 2, 3};
    data::Loader loader(items, {.shard = group.rank(), .shards = group.size()});
    int steps_here = 0;
    auto train_step = [&] { ++steps_here; };
#include "examples/dist_checkpoint_1.h"
    return steps_here;
  };
  CHECK(run() == 1000);
  CHECK(run() == 0);
  std::filesystem::current_path(before);
  group.barrier();
}

TEST_CASE("the example of a sharded table updates the rows that were looked up") {
  dist::Group group;
  nn::Linear output(64, 2);
  optim::SGD sgd(output.parameters(), {.learning_rate = 0.1});
  dist::DataParallel parallel(group, output, sgd);
  Tensor ids = tensor({1, 5, 99'999});
  auto loss = [&](const Tensor& x) { return cross_entropy(output(x), tensor({0, 1, 1})); };
#include "examples/dist_sharded_embedding_1.h"
  CHECK(words.count() == 100'000);
  NoRecord pause;
  CHECK(max(abs(words(ids) - x)).item() > 0);
}

TEST_CASE("the example of run returns the status of its body") {
  if (dist::Group().size() > 1) return;  // it would drop what the other ranks print
  int runs = 0;
  auto train_model = [&] { ++runs; };
  auto program = [&] {
#include "examples/dist_run_1.h"
  };
  CHECK(program() == 0);
  CHECK(runs == 1);
}
