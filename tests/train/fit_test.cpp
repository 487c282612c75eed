#include <algorithm>
#include <cmath>

#include <reel/reel.h>
#include <reel/train.h>

#include <fmt/format.h>

#include "catch.h"
#include "io/folder.h"

using namespace reel;
using namespace reel_test;

namespace {

// The old names, for one version.
static_assert(std::is_same_v<nn::Data, train::Data> && std::is_same_v<nn::FitOptions, train::FitOptions>);
static_assert(std::is_same_v<nn::Metric, train::Metric> && std::is_same_v<nn::Progress, train::Progress>);

Tensor drawn(const Shape& shape, std::uint64_t seed) {
  Generator generator(seed);
  return randn(shape, {.generator = &generator});
}

// y = 3 x₀ − 2 x₁ + 1
struct Line {
  Tensor x = drawn({64, 2}, 1);
  Tensor y = matmul(x, reshape(tensor({3.0f, -2.0f}), {2, 1})) + 1;
};

train::FitOptions quietly(int epochs) {
  train::FitOptions options;
  options.epochs = epochs;
  options.prints = false;
  return options;
}

// Counts its calls in training and in evaluation.
struct Watched : nn::Module {
  nn::Linear line{*this, "line", 2, 1};
  nn::Buffer calls{*this, "calls", zeros({}, {.dtype = i64})};
  mutable int trained = 0, evaluated = 0;

  Tensor operator()(const Tensor& x) const {
    ++(is_training() ? trained : evaluated);
    if (is_training()) add_(calls, 1);
    return line(x);
  }
};

}  // namespace

TEST_CASE("fit finds a line") {
  manual_seed(1);
  Line data;
  nn::Linear net(2, 1);
  optim::Adam adam(net.parameters(), {.learning_rate = 0.05});
  train::FitReport report = train::fit(net, mse_loss, adam, {data.x, data.y}, quietly(100));
  REQUIRE(report.epochs.size() == 100);
  CHECK(report.epochs.front().epoch == 1);
  CHECK(report.epochs.back().loss < 1e-4);
  CHECK(std::isnan(report.epochs.back().validation_loss));
  CHECK(net.weight.to_vector<float>()[0] == Approx(3).margin(0.01));
  CHECK(net.bias.to_vector<float>()[0] == Approx(1).margin(0.01));
}

TEST_CASE("fit makes the steps that a loop by hand makes") {
  Line data;
  nn::Linear net(2, 1), by_hand = nn::clone(net);
  optim::SGD sgd(net.parameters()), other(by_hand.parameters());
  train::FitOptions options = quietly(3);
  options.shuffle = false;
  options.batch_size = 24;
  train::FitReport report = train::fit(net, mse_loss, sgd, {data.x, data.y}, options);
  double last_epoch = 0;
  for (int epoch = 0; epoch < 3; ++epoch) {
    last_epoch = 0;
    for (std::int64_t start : {0, 24, 48}) {
      std::int64_t stop = std::min<std::int64_t>(start + 24, 64);
      Tape tape;
      Tensor loss = mse_loss(by_hand(slice(data.x, 0, start, stop)), slice(data.y, 0, start, stop));
      tape.backward(loss);
      other.step();
      other.zero_grad();
      last_epoch += loss.item() * static_cast<double>(stop - start) / 64;
    }
  }
  CHECK(net.weight.to_vector<float>() == by_hand.weight.to_vector<float>());
  CHECK(report.epochs.back().loss == Approx(last_epoch).epsilon(1e-12));
}

TEST_CASE("each epoch sees every example once, in another order if it shuffles") {
  Tensor x = reshape(to(arange(10), f32), {10, 1});
  std::vector<std::vector<float>> epochs(2);
  nn::Linear net(1, 1);
  optim::SGD sgd(net.parameters(), {.learning_rate = 0});
  Generator generator(3);
  train::FitOptions options = quietly(2);
  options.batch_size = 4;
  options.generator = &generator;
  std::vector<std::int64_t> sizes;
  int epoch = 0;
  options.after_epoch = [&](const train::EpochReport&) { return ++epoch < 2; };
  train::FitLoss loss = [&](const Tensor& prediction, const Tensor& y) {
    sizes.push_back(y.size(0));
    for (float value : y.to_vector<float>()) epochs[static_cast<std::size_t>(epoch)].push_back(value);
    return mean(prediction * 0);
  };
  train::fit(net, loss, sgd, {x, x}, options);
  CHECK(sizes == std::vector<std::int64_t>{4, 4, 2, 4, 4, 2});
  CHECK(epochs[0] != epochs[1]);
  for (std::vector<float>& seen : epochs) {
    CHECK(seen != x.to_vector<float>());
    std::sort(seen.begin(), seen.end());
    CHECK(seen == x.to_vector<float>());
  }
}

TEST_CASE("fit trains and evaluates in turn, measures, and leaves the model as it was") {
  Line data;
  Watched net;
  net.eval();
  optim::SGD sgd(net.parameters(), {.learning_rate = 0.1});
  train::FitOptions options = quietly(5);
  options.validation = {data.x, data.y};
  options.metrics = {
      {"largest", [](const Tensor& prediction, const Tensor& y) { return max(abs(prediction - y)).item(); }}};
  train::FitReport report = train::fit(net, mse_loss, sgd, {data.x, data.y}, options);
  CHECK(net.trained == 5 * 2);
  CHECK(net.evaluated == 5 * 2);
  CHECK_FALSE(net.is_training());
  CHECK(report.epochs[4].validation_loss < report.epochs[0].validation_loss);
  CHECK(report.best == 5);
  REQUIRE(report.epochs[4].metrics.size() == 1);
  CHECK(report.epochs[4].validation_metrics[0] < report.epochs[0].metrics[0]);
  double exact = mse_loss(net(data.x), data.y).item();
  CHECK(report.epochs[4].validation_loss == Approx(exact).epsilon(1e-5));
}

TEST_CASE("parts that evaluate stay so while the rest trains, and every part is afterwards as it was") {
  struct Model : nn::Module {
    Watched frozen{}, trained{};
    Model() {
      frozen.join(*this, "frozen");
      trained.join(*this, "trained");
    }
    Tensor operator()(const Tensor& x) const { return frozen(x) + trained(x); }
  };
  Line data;
  Model net;
  net.frozen.eval();
  optim::SGD sgd(net.parameters(), {.learning_rate = 0.1});
  train::FitOptions options = quietly(2);
  options.validation = {data.x, data.y};
  train::fit(net, mse_loss, sgd, {data.x, data.y}, options);
  CHECK(net.frozen.trained == 0);
  CHECK(net.frozen.evaluated == 2 * 2 * 2);
  CHECK(net.trained.trained == 2 * 2);
  CHECK(net.trained.evaluated == 2 * 2);
  auto modes = [&] {
    return std::vector<bool>{net.is_training(), net.frozen.is_training(), net.trained.is_training()};
  };
  CHECK(modes() == std::vector<bool>{true, false, true});
  CHECK(net.trained.line.is_training());
  CHECK_FALSE(net.frozen.line.is_training());
  // A model that evaluates as a whole is trained as a whole.
  net.eval();
  net.trained.train();
  train::fit(net, mse_loss, sgd, {data.x, data.y}, options);
  CHECK(net.frozen.trained == 2 * 2);
  CHECK(modes() == std::vector<bool>{false, false, true});
}

TEST_CASE("early stopping gives the weights and buffers of the best epoch back") {
  Line data;
  Watched net;
  optim::SGD sgd(net.parameters(), {.learning_rate = 0.1});
  train::FitOptions options = quietly(50);
  options.patience = 2;
  options.validation = {data.x, data.y};
  std::vector<float> best;
  std::int64_t calls = 0;
  options.after_epoch = [&](const train::EpochReport& report) {
    if (report.epoch == 4) {
      best = net.line.weight.to_vector<float>();
      calls = net.calls.item<std::int64_t>();
      sgd.set_learning_rate(3);
    }
    return true;
  };
  Tensor handle = net.line.weight;
  train::FitReport report = train::fit(net, mse_loss, sgd, {data.x, data.y}, options);
  CHECK(report.best == 4);
  CHECK(report.epochs.size() == 6);
  CHECK(net.line.weight.to_vector<float>() == best);
  CHECK(net.calls.item<std::int64_t>() == calls);
  CHECK(handle.is(net.line.weight));
}

TEST_CASE("a validation loss that is no number is the worst there is") {
  Line data;
  nn::Linear net(2, 1);
  optim::SGD sgd(net.parameters(), {.learning_rate = 0.01});
  train::FitOptions options = quietly(6);
  options.patience = 3;
  options.validation = {data.x, data.y};
  int epoch = 1, losses = 0;
  options.after_epoch = [&](const train::EpochReport& report) { return epoch = report.epoch + 1; };
  train::FitLoss loss = [&](const Tensor& prediction, const Tensor& y) {
    Tensor error = mse_loss(prediction, y);
    bool validates = losses++ % 4 > 1;  // two batches of each
    return validates && (epoch == 1 || epoch == 3) ? error * std::nan("") : error;
  };
  train::FitReport report = train::fit(net, loss, sgd, {data.x, data.y}, options);
  CHECK(std::isnan(report.epochs[0].validation_loss));
  CHECK(report.epochs.size() == 6);
  CHECK(report.best == 6);
}

TEST_CASE("fit with a loss scaler leaves out steps, but goes on with no mean loss that is not finite") {
  Line data;
  nn::Linear net(2, 1);
  optim::SGD sgd(net.parameters());
  train::FitOptions options = quietly(3);
  options.autocast = f16;
  std::vector<float> before = net.weight.to_vector<float>();
  CHECK_THAT(error_of<Error>([&] {
               train::fit(
                   net, [](const Tensor& p, const Tensor&) { return sum(p) / 0.0; }, sgd, {data.x, data.y}, options);
             }),
             contains("in epoch 1; a lower learning rate"));
  CHECK(net.weight.to_vector<float>() == before);
}

TEST_CASE("an improvement that is too small does not count") {
  Line data;
  nn::Linear net(2, 1);
  optim::SGD sgd(net.parameters(), {.learning_rate = 1e-6});
  train::FitOptions options = quietly(50);
  options.patience = 3;
  options.least_improvement = 0.1;
  CHECK(train::fit(net, mse_loss, sgd, {data.x, data.y}, options).epochs.size() == 4);
}

TEST_CASE("the best epoch has the least loss, whatever an improvement is, and its weights come back") {
  struct OneWeight : nn::Module {
    nn::Parameter w{*this, "w", {1}, nn::constant(0)};
    Tensor operator()(const Tensor& x) const { return x * w; }
  };
  // Improvements are epochs 1 and 3; after three more the training ends.
  const std::vector<double> losses{1.0, 0.9, 0.8, 0.7, 0.66, 0.69, 0.1};
  for (int patience : {0, 3}) {
    OneWeight model;
    optim::SGD sgd(model.parameters(), {.learning_rate = 1});
    std::size_t epoch = 0;
    train::FitOptions options = quietly(6);
    options.patience = patience;
    options.least_improvement = 0.15;
    options.after_epoch = [&](const train::EpochReport&) { return ++epoch > 0; };
    Tensor x = ones({1, 1});
    // The weight becomes less by 1 in each epoch.
    train::FitLoss loss = [&](const Tensor& p, const Tensor&) {
      return sum(p) - stop_gradient(sum(p)) + losses[epoch];
    };
    train::FitReport report = train::fit(model, loss, sgd, {x, x}, options);
    CHECK(report.epochs.size() == 6);
    CHECK(report.best == 5);
    CHECK(model.w.item() == (patience > 0 ? -5 : -6));
    options.epochs = 7;
    epoch = 0;
    OneWeight again;
    optim::SGD other(again.parameters(), {.learning_rate = 1});
    train::FitLoss same = [&](const Tensor& p, const Tensor&) {
      return sum(p) - stop_gradient(sum(p)) + losses[epoch];
    };
    CHECK(train::fit(again, same, other, {x, x}, options).epochs.size() == (patience > 0 ? 6 : 7));
  }
}

TEST_CASE("batches come from any range, and from a function") {
  Line data;
  std::vector<train::Batch> batches{{slice(data.x, 0, 0, 40), slice(data.y, 0, 0, 40)},
                                    {slice(data.x, 0, 40, 64), slice(data.y, 0, 40, 64)}};
  auto trained = [&](const train::Data& training) {
    manual_seed(4);
    nn::Linear net(2, 1);
    optim::SGD sgd(net.parameters());
    train::fit(net, mse_loss, sgd, training, quietly(3));
    return net.weight.to_vector<float>();
  };
  std::vector<float> of_range = trained(batches);
  std::size_t next = 0;
  auto function = [&]() -> std::optional<train::Batch> {
    if (next == batches.size()) {
      next = 0;
      return {};
    }
    return batches[next++];
  };
  CHECK(trained(function) == of_range);
  CHECK(trained(std::vector<train::Batch>(batches)) == of_range);
}

TEST_CASE("fit clips gradients, runs schedules, and trains with other optimisers' steps") {
  Line data;
  nn::Linear net(2, 1), like = nn::clone(net);
  train::FitOptions options = quietly(2);
  int steps = 0;
  options.after_step = [&] { ++steps; };
  options.clip_norm = 1e-3;
  optim::SGD sgd(net.parameters(), {.learning_rate = 1});
  train::fit(net, mse_loss, sgd, {data.x, data.y}, options);
  CHECK(steps == 4);
  CHECK(norm(net.weight - like.weight).item() <= 4e-3);
  optim::LBFGS lbfgs(net.parameters());
  options = quietly(5);
  options.batch_size = 64;
  CHECK(train::fit(net, mse_loss, lbfgs, {data.x, data.y}, options).epochs.back().loss < 1e-6);
}

TEST_CASE("fit trains in low precision") {
  DType low = GENERATE(bf16, f16);
  manual_seed(2);
  Line data;
  nn::Linear net(2, 1);
  optim::Adam adam(net.parameters(), {.learning_rate = 0.05});
  train::FitOptions options = quietly(60);
  options.autocast = low;
  train::FitReport report = train::fit(net, mse_loss, adam, {data.x, data.y}, options);
  CHECK(report.epochs.back().loss < 0.01);
  CHECK(net.weight.dtype() == f32);
}

TEST_CASE("fit logs each epoch at its last step, and steps where it is asked to") {
  Line data;
  nn::Linear net(2, 1);
  optim::Adam adam(net.parameters(), {.learning_rate = 0.05});
  reel_test::Folder folder;
  train::FitOptions options = quietly(2);
  options.batch_size = 20;
  options.validation = {data.x, data.y};
  options.metrics = {{"zero", [](const Tensor&, const Tensor&) { return 0.0; }}};
  options.log_steps = 3;
  train::FitReport report;
  {
    logging::Writer log(folder.file("run"), {.events = false, .csv = true});
    options.log = &log;
    report = train::fit(net, mse_loss, adam, {data.x, data.y}, options);
  }
  std::string csv = reel_test::bytes_of(folder.file("run/scalars.csv"));
  auto has = [&](int step, const std::string& run, const std::string& tag, const std::string& value) {
    std::string start = "\n" + std::to_string(step) + ",", end = "," + run + "," + tag + "," + value + "\n";
    for (std::size_t at = 0; (at = csv.find(start, at)) != csv.npos; ++at)
      if (csv.substr(csv.find('\n', at + 1) + 1 - end.size(), end.size()) == end) return true;
    return false;
  };
  for (int epoch : {1, 2}) {
    const train::EpochReport& now = report.epochs[static_cast<std::size_t>(epoch) - 1];
    CHECK(has(4 * epoch, "train", "loss", fmt::format("{}", now.loss)));
    CHECK(has(4 * epoch, "validation", "loss", fmt::format("{}", now.validation_loss)));
    CHECK(has(4 * epoch, "validation", "zero", "0"));
    CHECK(has(4 * epoch, "", "epoch", std::to_string(epoch)));
    CHECK(has(4 * epoch, "", "learning_rate", "0.05"));
    CHECK(has(3 * epoch, "", "step/learning_rate", "0.05"));
  }
  // The header, two steps of two lines, two epochs of seven lines.
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 19);
}

TEST_CASE("accuracy is the share of right guesses") {
  Tensor logits = reshape(tensor({1.0, 2.0, 5.0, 0.0, -1.0, -2.0}), {3, 2});
  CHECK(train::accuracy(logits, tensor<std::int64_t>({1, 0, 1})) == Approx(2.0 / 3));
  CHECK(train::accuracy(transpose(reshape(logits, {1, 3, 2}), 1, 2),
                        reshape(tensor<std::int32_t>({1, 0, 0}), {1, 3})) == 1);
  CHECK(train::accuracy(tensor({2.0, -1.0, 0.5, 3.0}), tensor({1.0, 0.0, 0.0, 1.0})) == 0.75);
  CHECK_THAT(error_of<ShapeError>([&] {
               train::accuracy(logits, tensor<std::int64_t>({1, 0}));
             }),
             contains("train::accuracy") && contains("(3, 2)"));
  CHECK_THAT(error_of<Error>([] { train::accuracy({}, {}); }), contains("undefined"));
}

TEST_CASE("fit says what is wrong, with the caller's line, and leaves the model training as it was") {
  Line data;
  nn::Linear net(2, 1);
  net.eval();
  optim::SGD sgd(net.parameters());
  auto said = [&](const train::Data& training, const train::FitOptions& options,
                  const train::FitLoss& loss = mse_loss) {
    std::string text = error_of<Error>([&] { train::fit(net, loss, sgd, training, options); });
    CHECK_FALSE(net.is_training());
    return text;
  };
  train::Data good(data.x, data.y);
  CHECK_THAT(said({}, quietly(1)),
             contains("train::fit: there is nothing to train on; at ") && contains("fit_test.cpp:"));
  CHECK_THAT(said(std::vector<train::Batch>{}, quietly(1)), contains("epoch 1 has no examples"));
  train::FitOptions options = quietly(1);
  options.batch_size = 0;
  CHECK_THAT(said(good, options), contains("the batch size 0"));
  options = quietly(-1);
  CHECK_THAT(said(good, options), contains("-1 epochs"));
  options = quietly(1);
  options.patience = -1;
  CHECK_THAT(said(good, options), contains("the patience -1"));
  options = quietly(1);
  options.least_improvement = -1;
  CHECK_THAT(said(good, options), contains("the least improvement -1"));
  options = quietly(1);
  options.clip_norm = 0;
  CHECK_THAT(said(good, options), contains("the largest norm 0"));
  options = quietly(1);
  options.validation = std::vector<train::Batch>{};
  CHECK_THAT(said(good, options), contains("no examples to validate on"));
  options = quietly(1);
  options.autocast = i64;
  CHECK_THAT(said(good, options), contains("autocast: takes bf16 or f16"));
  CHECK_THAT(said(good, quietly(1), [](const Tensor& p, const Tensor&) { return sum(p) / 0.0; }),
             contains("in epoch 1; a lower learning rate"));
  CHECK_THAT(error_of<ShapeError>([&] { train::Data(data.x, slice(data.y, 0, 1)); }),
             contains("have not as many examples"));
  CHECK_THAT(error_of<ShapeError>([&] { train::Data(data.x, ones({})); }), contains("y is a single number"));
  CHECK_THAT(error_of<Error>([&] { train::Data(Tensor(), data.y); }), contains("x is an undefined tensor"));
}

namespace {

// Two inputs, one of them sequences of several lengths; the target is the sum of both.
struct Question {
  nn::Packed words;
  Tensor offset, answer;
};

struct Adding : nn::Module {
  nn::Linear words{*this, "words", 2, 1}, offset{*this, "offset", 1, 1};

  Tensor operator()(const nn::Packed& x, const Tensor& y) const { return words(nn::masked_mean(x)) + offset(y); }
};

std::vector<Question> questions() {
  std::vector<Question> batches;
  for (int i = 0; i < 8; ++i) {
    auto seed = static_cast<std::uint64_t>(10 * i);
    std::vector<Tensor> sequences;
    for (int k = 0; k <= 2 + i % 3; ++k)
      sequences.push_back(drawn({1 + (i + k) % 4, 2}, seed + 1 + static_cast<std::uint64_t>(k)));
    nn::Packed words = nn::pack(sequences);
    Tensor offset = drawn({static_cast<std::int64_t>(sequences.size()), 1}, seed);
    batches.push_back({words, offset, matmul(nn::masked_mean(words), reshape(tensor({3.0f, -2.0f}), {2, 1})) + offset});
  }
  return batches;
}

}  // namespace

TEST_CASE("fit takes batches of any type: several inputs, and sequences of several lengths") {
  manual_seed(1);
  std::vector<Question> batches = questions();
  Adding model;
  optim::Adam adam(model.parameters(), {.learning_rate = 0.05});
  auto step = [&](const Question& question) {
    return mse_loss(model(question.words, question.offset), question.answer);
  };
  train::FitReport report = train::fit(model, step, adam, batches, quietly(60));
  REQUIRE(report.epochs.size() == 60);
  CHECK(report.epochs.back().loss < 1e-4);
  CHECK(model.words.weight.to_vector<float>()[0] == Approx(3).margin(0.02));
}

TEST_CASE("a step of fit that gives predictions and targets has metrics, weighted by its examples") {
  std::vector<Question> batches = questions();
  Adding model;
  optim::SGD sgd(model.parameters(), {.learning_rate = 0});
  auto step = [&](const Question& question) {
    Tensor prediction = model(question.words, question.offset);
    return train::FitStep{mse_loss(prediction, question.answer), prediction, question.answer};
  };
  train::FitOptions options = quietly(1);
  options.validation = batches;
  options.metrics = {{"error", [](const Tensor& p, const Tensor& y) { return mean(abs(p - y)).item(); }}};
  train::FitReport report = train::fit(model, step, sgd, batches, options);
  double squares = 0, errors = 0, examples = 0;
  for (const Question& question : batches) {
    Tensor difference = model(question.words, question.offset) - question.answer;
    squares += sum(square(difference)).item();
    errors += sum(abs(difference)).item();
    examples += static_cast<double>(difference.numel());
  }
  CHECK(report.epochs[0].loss == Approx(squares / examples));
  CHECK(report.epochs[0].validation_loss == Approx(squares / examples));
  CHECK(report.epochs[0].metrics[0] == Approx(errors / examples));
  CHECK(report.epochs[0].validation_metrics[0] == Approx(errors / examples));

  auto without = [&](const Question& question) { return step(question).loss; };
  CHECK_THAT(error_of<Error>([&] { train::fit(model, without, sgd, batches, options); }),
             contains("train::fit: the metric 'error' needs a prediction and targets; return a train::FitStep"));
  options.validation = train::Data(ones({2, 2}), ones({2, 1}));
  CHECK_THAT(error_of<Error>([&] { train::fit(model, step, sgd, batches, options); }),
             contains("the validation data give batches of type Batch, and the step takes Question"));
  CHECK_THAT(error_of<Error>([&] { train::Data(batches).for_each(1, nullptr, [](const train::Batch&) {}); }),
             contains("train::Data: its batches are of another type than train::Batch"));
}

TEST_CASE("a training goes on from a first epoch with its numbers, patience and best epoch") {
  manual_seed(1);
  Line data;
  nn::Linear net(2, 1);
  optim::SGD sgd(net.parameters(), {.learning_rate = 0.1});
  train::FitOptions options = quietly(5);
  options.first_epoch = 3;
  train::FitReport report = train::fit(net, mse_loss, sgd, {data.x, data.y}, options);
  REQUIRE(report.epochs.size() == 3);
  CHECK(report.epochs[0].epoch == 3);
  CHECK(report.epochs[2].epoch == 5);
  CHECK(report.best == 5);

  // With a learning rate of 0 no epoch after the first is better.
  optim::SGD none(net.parameters(), {.learning_rate = 0});
  options.epochs = 100;
  options.first_epoch = 50;
  options.patience = 2;
  options.shuffle = false;  // equal sums, to the bit
  report = train::fit(net, mse_loss, none, {data.x, data.y}, options);
  CHECK(report.epochs.size() == 3);
  CHECK(report.best == 50);

  options.first_epoch = 101;
  CHECK(train::fit(net, mse_loss, none, {data.x, data.y}, options).epochs.empty());
  options.first_epoch = 0;
  CHECK_THAT(error_of<Error>([&] {
               train::fit(net, mse_loss, none, {data.x, data.y}, options);
             }),
             contains("train::fit: the first epoch 0 is not 1 or more"));
}
