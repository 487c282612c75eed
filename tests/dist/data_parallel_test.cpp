#include <reel/dist/data_parallel.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>

#include <reel/data/loader.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>

#include "catch.h"
#include "ranks.h"

using namespace reel;
using namespace reel_test;

namespace {

constexpr std::int64_t vocabulary = 40, size = 6, classes = 4;

// Sentences of all lengths, whose ids and labels are equal on all ranks.
struct Sentence {
  std::vector<std::int64_t> ids, labels;
};

std::vector<Sentence> random_sentences(std::uint64_t seed, std::int64_t count) {
  std::mt19937_64 random(seed);
  auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
  };
  std::vector<Sentence> all(static_cast<std::size_t>(count));
  for (Sentence& one : all)
    for (std::int64_t length = 1 + below(7); length > 0; --length) {
      one.ids.push_back(below(vocabulary));
      one.labels.push_back(below(classes));
    }
  return all;
}

// Its control flow depends on the sentence: even ones do not use every parameter.
struct Net : nn::Module {
  nn::Embedding words{*this, "words", vocabulary, size, {.row_gradient = true}};
  nn::Embedding places{*this, "places", 8, size};
  nn::LSTM lstm{*this, "lstm", size, size};
  nn::Linear odd{*this, "odd", size, size};
  nn::Linear unused{*this, "unused", size, size};
  nn::Linear output{*this, "output", size, classes};
  nn::Parameter exact{*this, "exact", {classes}, nn::constant(0.5), {.dtype = f64}};

  // The sum of the losses of the words, and in `count` their number.
  Tensor loss(const std::vector<Sentence>& sentences, double& count) const {
    Tensor total;
    for (const Sentence& sentence : sentences) {
      std::int64_t length = std::ssize(sentence.ids);
      Tensor x = words(tensor(sentence.ids)) + places(arange(length));
      Tensor h = lstm(nn::Packed{x, {length}}).output.elements;
      if (length % 2 == 1) h = tanh(odd(h));
      Tensor logits = output(h) + to(exact, f32);
      Tensor one = cross_entropy(logits, tensor(sentence.labels), {.reduction = LossReduction::sum});
      total = total.defined() ? total + one : one;
      count += static_cast<double>(length);
    }
    return total;
  }
};

// The sentences that a rank gets in a step: about a third of the ranks have none.
std::vector<Sentence> part_of(const std::vector<Sentence>& all, std::uint64_t step, int rank, int ranks) {
  std::vector<Sentence> own;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (static_cast<int>((i * i + step) % static_cast<std::size_t>(ranks)) == rank) own.push_back(all[i]);
  return own;
}

std::vector<double> doubles(const Tensor& x) { return to(x, f64).to_vector<double>(); }

// The largest difference of two gradients, either of which may be undefined; infinite if only one is.
double difference(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return std::numeric_limits<double>::infinity();
  if (!a.defined()) return 0;
  return max(abs(to(a, f64) - to(b, f64))).item();
}

// Gradients as one process computes them of all sentences.
void backward_alone(const Net& net, const std::vector<Sentence>& all) {
  Tape tape;
  double count = 0;
  Tensor loss = net.loss(all, count);
  tape.backward(loss / count);
}

dist::Step backward_together(dist::DataParallel& parallel, const Net& net, const std::vector<Sentence>& own) {
  if (own.empty()) return parallel.join();
  Tape tape;
  double count = 0;
  Tensor loss = net.loss(own, count);
  return parallel.backward(tape, loss / count, count);
}

}  // namespace

TEST_CASE("gradients of ragged shards are those of one process, whatever the buckets") {
  dist::Group group;
  std::uint64_t seed = printed_seed();
  manual_seed(seed);
  for (std::size_t bucket_bytes : {std::size_t{1}, std::size_t{300}, std::size_t{4} << 20}) {
    Net net;
    optim::Adam adam(net.parameters());
    dist::DataParallel parallel(group, net, adam, {.bucket_bytes = bucket_bytes, .by_rows = {net.words.table}});
    Net alone = nn::clone(net);
    for (std::uint64_t step = 0; step < 6; ++step) {
      CAPTURE(bucket_bytes, step);
      std::vector<Sentence> all = random_sentences(seed + step, 7);
      backward_alone(alone, all);
      double count = 0, loss = alone.loss(all, count).item() / count;
      dist::Step done = backward_together(parallel, net, part_of(all, step, group.rank(), group.size()));
      CHECK(done.count == count);
      CHECK(done.loss == Approx(loss).epsilon(1e-5));
      std::vector<NamedTensor> own = net.named_parameters(), expected = alone.named_parameters();
      for (std::size_t i = 0; i < own.size(); ++i) {
        CAPTURE(own[i].name);
        CHECK(difference(own[i].tensor.grad(), expected[i].tensor.grad()) < 1e-6);
      }
      CHECK(net.words.table.row_grad().defined());
      CHECK_FALSE(net.unused.weight.grad().defined());
      // Odd steps accumulate into the gradients of the step before.
      if (step % 2 == 1) continue;
      net.zero_grad();
      alone.zero_grad();
    }
  }
}

TEST_CASE("a table's gradient comes by rows, also where all of its rows have one") {
  dist::Group group;
  nn::Embedding words(5, 2);
  optim::SGD sgd(words.parameters(), {.learning_rate = 0.1});
  dist::DataParallel parallel(group, words, sgd, {.by_rows = {words.table}});
  Tape tape;
  auto own = static_cast<double>(group.rank() + 1), count = 0.5 * group.size() * (group.size() + 1);
  Tensor weights = expand(unsqueeze(arange(0.0, 5.0), 1), {5, 2});
  parallel.backward(tape, sum(words.table * weights) / own, own);
  RowGradient gradient = words.table.row_grad();
  REQUIRE(gradient.defined());
  CHECK(gradient.rows.to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1, 2, 3, 4});
  CHECK(difference(gradient.values, weights * (group.size() / count)) < 1e-6);
}

TEST_CASE("replicas stay equal to the bit, and train as one process does, also if ranks have less data than others") {
  dist::Group group;
  std::uint64_t seed = printed_seed();
  manual_seed(seed + 100 * static_cast<std::uint64_t>(group.rank()));  // the parameters of rank 0 are taken over
  Net net;
  optim::Adagrad adagrad(net.parameters(), {.learning_rate = 0.05});
  dist::DataParallel parallel(group, net, adagrad, {.bucket_bytes = 500, .by_rows = {net.words.table}});
  Net alone = nn::clone(net);
  optim::Adagrad by_itself(alone.parameters(), {.learning_rate = 0.05});
  auto update = [](optim::Optimiser& optimiser) {
    optim::clip_grad_norm(optimiser.parameters(), 0.1);
    optimiser.step();
    optimiser.zero_grad();
  };
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    // Rank r has data for 2 + 3 r steps.
    auto data_of = [&](int rank, int step) {
      return step < 2 + 3 * rank
                 ? random_sentences(
                       seed + 1000 * epoch + 10U * static_cast<unsigned>(step) + static_cast<unsigned>(rank), 2)
                 : std::vector<Sentence>{};
    };
    for (int step = 0; step < 2 + 3 * group.rank(); ++step) {
      CHECK(backward_together(parallel, net, data_of(group.rank(), step)));
      update(adagrad);
    }
    int joined = 0;
    while (parallel.join()) {
      update(adagrad);
      ++joined;
    }
    CHECK(joined == 3 * (group.size() - 1 - group.rank()));
    parallel.check_replicas();
    for (int step = 0; step < 2 + 3 * (group.size() - 1); ++step) {
      std::vector<Sentence> all;
      for (int rank = 0; rank < group.size(); ++rank)
        for (Sentence& one : data_of(rank, step)) all.push_back(std::move(one));
      backward_alone(alone, all);
      update(by_itself);
    }
    std::vector<NamedTensor> own = net.named_parameters(), expected = alone.named_parameters();
    for (std::size_t i = 0; i < own.size(); ++i) {
      CAPTURE(epoch, own[i].name);
      CHECK(difference(own[i].tensor, expected[i].tensor) < 1e-4);
    }
  }
}

TEST_CASE("statistics of a batch norm are those of rank 0 on all ranks, and dropout differs from rank to rank") {
  dist::Group group;
  manual_seed(printed_seed());
  struct Normed : nn::Module {
    nn::BatchNorm1d norm{*this, "norm", 3};
    nn::Linear output{*this, "output", 3, 1};
  } net;
  optim::SGD sgd(net.parameters(), {.learning_rate = 0.1});
  dist::DataParallel parallel(group, net, sgd);
  for (int step = 0; step < 3; ++step) {
    Tape tape;
    parallel.backward(tape, mean(square(net.output(net.norm(randn({5, 3}) + group.rank())))), 5);
    sgd.step();
    sgd.zero_grad();
  }
  parallel.check_replicas();
  // Distinct streams: no two ranks draw the same numbers.
  Tensor drawn = group.all_gatherv(rand({1, 4}, {.dtype = f64}));
  for (int a = 0; a < group.size(); ++a)
    for (int b = 0; b < a; ++b) CHECK(doubles(drawn(a)) != doubles(drawn(b)));
}

TEST_CASE("a backward pass that throws leaves the gradients as they were") {
  dist::Group group;
  if (group.size() > 1) return;  // the other ranks would wait
  Net net;
  optim::SGD sgd(net.parameters(), {.learning_rate = 0.1});
  dist::DataParallel parallel(group, net, sgd);
  std::vector<Sentence> all = random_sentences(printed_seed(), 3);
  backward_together(parallel, net, all);
  std::vector<double> before = doubles(net.output.weight.grad());
  {
    Tape tape;
    double count = 0;
    Tensor loss = net.loss(all, count);
    tape.hook(net.lstm.parameters()[0], [](const Tensor&) { throw std::runtime_error("on purpose"); });
    CHECK(error_of<std::runtime_error>([&] { parallel.backward(tape, loss / count, count); }) == "on purpose");
  }
  CHECK(doubles(net.output.weight.grad()) == before);
  Tape tape;
  double count = 0;
  Tensor loss = net.loss(all, count);
  CHECK_THAT(error_of<Error>([&] { parallel.backward(tape, loss, 0); }),
             contains("the count is 0") && contains("data_parallel_test.cpp"));
}

TEST_CASE("models that differ from rank to rank are refused, and so are replicas that do") {
  dist::Group group;
  if (group.size() == 1) return;
  nn::Linear wide(3, 4 + group.rank());
  optim::SGD sgd(wide.parameters(), {.learning_rate = 0.1});
  CHECK_THAT(error_of<Error>([&] { dist::DataParallel(group, wide, sgd); }), contains("different parameters"));
  nn::Linear narrow(3, 4);
  optim::SGD other(narrow.parameters(), {.learning_rate = 0.1});
  dist::DataParallel parallel(group, narrow, other);
  parallel.check_replicas();
  if (group.rank() == group.size() - 1) narrow.bias.write<float>()[2] += 1;
  CHECK_THAT(error_of<Error>([&] { parallel.check_replicas(); }), contains("'bias'"));
  parallel.broadcast_model();
  parallel.check_replicas();
}

TEST_CASE("the loaders of all shards give the batches of one loader, also after a state of another number of shards") {
  std::vector<std::int64_t> items(103);
  for (std::size_t i = 0; i < items.size(); ++i) items[i] = static_cast<std::int64_t>(i);
  using Batches = std::vector<std::vector<std::int64_t>>;
  auto loader_of = [&](std::int64_t shard, std::int64_t shards) {
    return data::Loader(items, {.batch_size = 10, .shuffle = true, .seed = 3, .shard = shard, .shards = shards});
  };
  auto read = [](auto& loader, std::int64_t most) {
    Batches batches;
    for (const std::vector<std::int64_t>& batch : loader) {
      batches.push_back(batch);
      if (std::ssize(batches) == most) break;
    }
    return batches;
  };
  auto whole = loader_of(0, 1);
  Batches expected = read(whole, 100);
  for (std::int64_t shards : {1, 2, 3, 4, 7}) {
    Batches joined(expected.size());
    std::vector<NamedTensor> state;
    for (std::int64_t shard = 0; shard < shards; ++shard) {
      auto loader = loader_of(shard, shards);
      Batches own = read(loader, 4);
      state = loader.state();
      for (std::vector<std::int64_t>& batch : read(loader, 100)) own.push_back(batch);
      REQUIRE(own.size() == expected.size());
      for (std::size_t i = 0; i < own.size(); ++i) {
        CHECK(std::abs(std::ssize(own[i]) - std::ssize(expected[i]) / shards) <= 1);
        joined[i].insert(joined[i].end(), own[i].begin(), own[i].end());
      }
    }
    CHECK(joined == expected);
    auto resumed = loader_of(0, 1);
    resumed.load_state(state);
    CHECK(read(resumed, 100) == Batches(expected.begin() + 4, expected.end()));
  }
  CHECK_THAT(error_of<Error>([&] { loader_of(2, 2); }), contains("shard is 2"));
}

TEST_CASE("with lengths the loaders of all shards have about equal shares of each batch") {
  std::mt19937_64 random(printed_seed());
  std::lognormal_distribution<> distribution(3);
  std::vector<std::int64_t> items(400);
  for (std::int64_t& item : items) item = 1 + static_cast<std::int64_t>(distribution(random));
  auto loader_of = [&](std::int64_t shard, std::int64_t shards, bool by_length) {
    data::LoaderOptions<std::int64_t> options{.batch_size = 40, .shuffle = true, .seed = 3};
    if (by_length) options.lengths = items;
    options.bucket_batches = 1;
    options.shard = shard;
    options.shards = shards;
    return data::Loader(items, options);
  };
  for (std::int64_t shards : {2, 3, 4}) {
    std::vector<std::vector<std::int64_t>> joined(10), sums(10);
    for (std::int64_t shard = 0; shard < shards; ++shard) {
      std::size_t i = 0;
      for (auto loader = loader_of(shard, shards, true); const std::vector<std::int64_t>& part : loader) {
        joined[i].insert(joined[i].end(), part.begin(), part.end());
        sums[i++].push_back(std::accumulate(part.begin(), part.end(), std::int64_t{0}));
        CHECK(std::abs(std::ssize(part) - 40 / shards) <= 1);
      }
    }
    std::size_t i = 0;
    for (auto whole = loader_of(0, 1, false); std::vector<std::int64_t> batch : whole) {
      std::int64_t longest = *std::ranges::max_element(batch);
      CHECK(*std::ranges::max_element(sums[i]) - *std::ranges::min_element(sums[i]) <= 2 * longest);
      std::ranges::sort(batch);
      std::ranges::sort(joined[i]);
      CHECK(joined[i++] == batch);
    }
  }
  auto before = loader_of(0, 2, true), after = loader_of(0, 1, false);
  auto it = before.begin();
  ++it;
  after.load_state(before.state());
}
