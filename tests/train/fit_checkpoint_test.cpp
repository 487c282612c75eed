#include <signal.h>

#include <chrono>
#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <reel/data/loader.h>
#include <reel/io.h>
#include <reel/logging/writer.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/train.h>

#include "catch.h"
#include "io/folder.h"
#include "train/fit_progress.h"

using namespace reel;
using namespace reel_test;

namespace {

struct Classifier : nn::Module {
  nn::Linear hidden{*this, "hidden", 2, 8};
  nn::BatchNorm1d norm{*this, "norm", 8};
  nn::Linear output{*this, "output", 8, 2};

  Tensor operator()(const Tensor& x) {
    Tensor h = tanh(norm(hidden(x)));
    return output(is_training() ? dropout(h, {.probability = 0.2}) : h);
  }
};

// The result of a call of fit.
struct Result {
  std::vector<double> weights, losses, validation_losses, accuracies;
  int best = 0;
  bool operator==(const Result&) const = default;
};

struct Crash : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Kind { memory, loader, range };

// Trains for some epochs of 5 steps. `in_step` is called in each step of this process; a folder is resumed from.
Result fitted(const std::string& folder, const std::function<void(int)>& in_step, Kind kind,
              train::FitOptions options) {
  manual_seed(1);
  Generator data(5), order(6);
  Tensor x = randn({18, 2}, {.generator = &data}), y = to(x(ellipsis, 0) > 0, i64);
  std::vector<std::int64_t> indices;
  std::vector<train::Batch> batches;
  for (std::int64_t i = 0; i < 18; ++i) indices.push_back(i);
  for (std::int64_t i = 0; i < 5; ++i) {
    auto part = slice(4 * i, std::min<std::int64_t>(4 * i + 4, 18));
    batches.push_back({x(part), y(part)});
  }
  auto collate = [&](std::vector<std::int64_t> chosen) {
    return train::Batch{index_select(x, 0, tensor(chosen)), index_select(y, 0, tensor(chosen))};
  };
  data::Loader loader(indices, collate, {.batch_size = 4, .shuffle = true, .seed = 3});
  Classifier model;
  optim::Adam adam(model.parameters(), {.learning_rate = 0.05});
  optim::Scheduler schedule(adam, optim::step_decay({.every = 7, .factor = 0.7}));
  std::optional<train::Checkpoint> checkpoint;
  if (!folder.empty()) {
    checkpoint.emplace(folder, train::CheckpointOptions{.every = 1});
    checkpoint->add("schedule", schedule);
    options.checkpoint = &*checkpoint;
  }
  int steps = 0;
  options.after_step = [&] {
    schedule.step();
    in_step(++steps);
  };
  options.batch_size = 4;
  if (kind == Kind::memory) options.generator = &order;
  options.validation = {x, y};
  options.metrics = {{"accuracy", train::accuracy}};
  options.prints = false;
  train::Data training = kind == Kind::memory   ? train::Data(x, y)
                         : kind == Kind::loader ? train::Data(loader)
                                                : train::Data(batches);
  // Halves overflow at the first scale of the loss, which the steps make smaller.
  auto loss = [&](const Tensor& p, const Tensor& y) {
    return cross_entropy(p, y) * (options.autocast == f16 ? 64 : 1);
  };
  train::FitReport report = train::fit(model, loss, adam, training, options);
  Result result;
  result.best = report.best;
  for (const auto& list : {model.named_parameters(), model.named_buffers(), adam.state(), schedule.state()})
    for (const NamedTensor& named : list)
      for (double value : to(named.tensor, f64).to_vector<double>()) result.weights.push_back(value);
  for (const train::EpochReport& epoch : report.epochs) {
    result.losses.push_back(epoch.loss);
    result.validation_losses.push_back(epoch.validation_loss);
    result.accuracies.push_back(epoch.metrics[0] + 10 * epoch.validation_metrics[0]);
  }
  return result;
}

Result fitted(Kind kind, const train::FitOptions& options) {
  return fitted(
      {}, [](int) {}, kind, options);
}

}  // namespace

TEST_CASE("a fit that is cut off in any step, and resumed, ends with the bits of an uninterrupted one") {
  for (Kind kind : {Kind::memory, Kind::loader, Kind::range})
    for (const train::FitOptions& options : {train::FitOptions{.epochs = 3},
                                             {.epochs = 6, .first_epoch = 4},
                                             {.epochs = 20, .patience = 2},
                                             {.epochs = 4, .autocast = f16}}) {
      Result expected = fitted(kind, options);
      for (int lasts : {1, 4, 5}) {
        Folder folder;
        Result result;
        bool ended = false;
        int processes = 0;
        for (; !ended && processes < 200; ++processes) {
          try {
            result = fitted(
                folder.file("run"),
                [&](int step) {
                  if (step > lasts) throw Crash("cut off");
                },
                kind, options);
            ended = true;
          } catch (const Crash&) {
          }
        }
        CHECK(result == expected);
        CHECK(processes > 2);
      }
    }
}

TEST_CASE("a fit whose training has ended gives its report again, and goes on where more epochs are wanted") {
  Folder folder;
  std::string path = folder.file("run");
  auto none = [](int) {};
  Result first = fitted(path, none, Kind::memory, {.epochs = 2});
  CHECK(fitted(path, [](int) { throw Crash("a step"); }, Kind::memory, {.epochs = 2}) == first);
  CHECK(fitted(path, none, Kind::memory, {.epochs = 4}) == fitted(Kind::memory, {.epochs = 4}));
}

TEST_CASE("a fit that after_epoch has ended goes on with the bits of one that it has not") {
  Folder folder;
  std::string path = folder.file("run");
  auto none = [](int) {};
  for (int last : {1, 3}) {
    train::FitOptions options{.epochs = 4};
    options.after_epoch = [&](const train::EpochReport& epoch) { return epoch.epoch < last; };
    CHECK(std::ssize(fitted(path, none, Kind::memory, options).losses) == last);
  }
  CHECK(fitted(path, none, Kind::memory, {.epochs = 4}) == fitted(Kind::memory, {.epochs = 4}));
}

TEST_CASE("a fit refuses a position that it cannot have, and one within an epoch of other batches") {
  nn::Linear model(1, 1);
  train::Data training(ones({6, 1}), ones({6, 1}));
  const train::FitOptions options{.epochs = 3, .batch_size = 2};
  nn::FitProgress progress(model, training, options);
  std::vector<NamedTensor> state = progress.state({});
  REQUIRE(state[0].name == "position");
  const auto position = state[0].tensor.to_vector<std::int64_t>();
  enum { in_epoch, in_batches, in_best = 3, in_steps, in_batch_size = 7, in_size };
  struct Change {
    std::size_t place;
    std::int64_t value;
  };
  auto refusal = [&](std::initializer_list<Change> changes) {
    std::vector<std::int64_t> changed = position;
    for (const Change& change : changes) changed[change.place] = change.value;
    std::vector<NamedTensor> given = state;
    given[0].tensor = tensor(changed);
    return error_of<Error>([&] { progress.load(given, {}); });
  };
  for (Change change :
       {Change{in_epoch, 0}, {in_epoch, 2}, {in_batches, -1}, {in_best, -1}, {in_best, 1}, {in_best, 2}}) {
    CAPTURE(change.place, change.value);
    CHECK_THAT(refusal({change}), contains("'position' is not one of a training of 0 epochs from epoch 1"));
  }
  // Between two epochs the batches may become others.
  for (Change change : {Change{in_batch_size, 3}, {in_size, 7}}) {
    CHECK(refusal({change}).empty());
    CHECK_THAT(refusal({{in_batches, 1}, change}), contains("the state is within an epoch of"));
  }
  CHECK(refusal({{in_batches, 1}, {in_steps, 5}}).empty());
  CHECK(progress.batches == 1);
  CHECK(progress.steps == 5);
}

TEST_CASE("what a fit has come to is restored whole, and a state with more is refused") {
  nn::Linear model(1, 1);
  train::Data training(ones({6, 1}), ones({6, 1}));
  const train::FitOptions options{.epochs = 3, .batch_size = 2};
  nn::FitProgress from(model, training, options), to(model, training, options);
  from.batches = 2;
  from.steps = 7;
  from.seconds = 12.5;
  from.least = 0.25;
  from.sums.assign(from.sums.size(), 3);
  from.order = Generator(8);
  from.order.set_calls(9);
  std::vector<NamedTensor> state = from.state({});
  to.load({}, {});  // a snapshot without a fit
  CHECK(to.steps == 0);
  to.load(state, {});
  CHECK(to.epoch == from.epoch);
  CHECK(to.batches == 2);
  CHECK(to.steps == 7);
  CHECK(to.seconds == 12.5);
  CHECK(to.least == 0.25);
  CHECK(to.sums == from.sums);
  CHECK(to.order.seed() == 8);
  CHECK(to.order.calls() == 9);
  state.push_back({"speed", ones({1})});
  CHECK_THAT(error_of<Error>([&] { to.load(state, {}); }), contains("'speed' is not known"));
}

TEST_CASE("the log of a fit that is cut off and resumed has each step once") {
  Folder folder;
  train::FitOptions options{.epochs = 2, .log_steps = 1};
  for (int process = 0; process < 4; ++process) {
    logging::Writer log(folder.file("log"), {.csv = true});
    options.log = &log;
    try {
      fitted(
          folder.file("run"),
          [](int step) {
            if (step > 3) throw Crash("cut off");
          },
          Kind::memory, options);
    } catch (const Crash&) {
      log.scalar("step/loss", 0, 1000);  // of a step that was not saved
    }
  }
  std::string csv = reel_test::bytes_of(folder.file("log/scalars.csv")), steps;
  for (std::size_t start = 0, end; (end = csv.find('\n', start)) != csv.npos; start = end + 1)
    if (std::string line = csv.substr(start, end - start); line.find(",step/loss,") != line.npos)
      steps += line.substr(0, line.find(',')) + " ";
  CHECK(steps == "1 2 3 4 5 6 7 8 9 10 ");
}

TEST_CASE("a signal ends a fit after its step, saved, and the earlier handlers are back") {
  Folder folder;
  std::string path = folder.file("run");
  Result expected = fitted(Kind::memory, {.epochs = 3});
  static int received = 0;
  auto before = signal(SIGTERM, [](int) { ++received; });
  int caught = 0;
  try {
    fitted(path,
           [](int step) {
             if (step == 8) raise(SIGTERM);
           },
           Kind::memory, {.epochs = 3});
  } catch (const train::Interrupted& interrupted) {
    caught = interrupted.exit_status();
  }
  CHECK(caught == 143);
  CHECK(received == 0);
  raise(SIGTERM);
  CHECK(received == 1);
  signal(SIGTERM, before);
  CHECK(std::filesystem::exists(path + "/step-000000008.safetensors"));
  int steps = 0;
  CHECK(fitted(path, [&](int) { ++steps; }, Kind::memory, {.epochs = 3}) == expected);
  CHECK(steps == 7);
}

TEST_CASE("a fit whose loader notices a signal is saved before the batch, and goes on with its bits") {
  manual_seed(4);
  Tensor x = randn({12, 1}), y = x * 2;
  std::vector<std::int64_t> indices{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  bool is_signalled = false;
  auto collate = [&](const std::vector<std::int64_t>& chosen) {
    if (is_signalled && chosen[0] == 6) raise(SIGTERM);
    train::check_interruption();
    return train::Batch{index_select(x, 0, tensor(chosen)), index_select(y, 0, tensor(chosen))};
  };
  auto fitted_weight = [&](const std::string& folder, int workers) {
    manual_seed(2);
    data::Loader loader(indices, collate, {.batch_size = 2, .workers = workers});
    nn::Linear model(1, 1);
    optim::Adam adam(model.parameters(), {.learning_rate = 0.1});
    train::Checkpoint checkpoint(folder, train::CheckpointOptions{.every = 100});
    train::fit(model, mse_loss, adam, train::Data(loader), {.epochs = 2, .checkpoint = &checkpoint, .prints = false});
    return model.weight.item();
  };
  for (int workers : {0, 2}) {
    Folder folder;
    double expected = fitted_weight(folder.file("whole"), workers);
    is_signalled = true;
    CHECK_THROWS_AS(fitted_weight(folder.file("run"), workers), train::Interrupted);
    is_signalled = false;
    CHECK(folder.names() == std::set<std::string>{"run", "whole"});
    if (workers == 0) CHECK(std::filesystem::exists(folder.file("run/step-000000003.safetensors")));
    CHECK(fitted_weight(folder.file("run"), workers) == expected);
  }
}

TEST_CASE("a program may resume by itself before it calls fit, with all that fit trains") {
  Folder folder;
  Tensor x = ones({4, 1}), y = ones({4, 1});
  auto fit_once = [&](bool resumes, int epochs) {
    manual_seed(2);
    nn::Linear model(1, 1);
    optim::SGD sgd(model.parameters(), {.learning_rate = 0.1});
    train::Checkpoint checkpoint(folder.file("run"), {{"model", model}, {"sgd", sgd}});
    if (resumes) CHECK(checkpoint.resume());
    return train::fit(model, mse_loss, sgd, {x, y}, {.epochs = epochs, .checkpoint = &checkpoint, .prints = false})
        .epochs.size();
  };
  CHECK(fit_once(false, 2) == 2);
  CHECK(fit_once(true, 5) == 5);
  nn::Linear model(1, 1), other(1, 1);
  optim::SGD sgd(model.parameters());
  train::Checkpoint checkpoint(folder.file("other"), {{"other", other}});
  checkpoint.resume();
  CHECK_THAT(error_of<Error>([&] {
               train::fit(model, mse_loss, sgd, {x, y}, {.checkpoint = &checkpoint, .prints = false});
             }),
             contains("'model' has to be added before the first resume() or save()"));
}

TEST_CASE("a fit that could not resume leaves nothing behind, and a later one goes on from what was restored") {
  Folder folder;
  Tensor x = ones({4, 1}), y = ones({4, 1});
  {
    nn::Linear model(1, 2);
    train::Checkpoint checkpoint(folder.file("run"), {{"model", model}});
    checkpoint.save();
  }
  nn::Linear model(1, 1);
  optim::SGD sgd(model.parameters(), {.learning_rate = 0.1});
  train::Checkpoint checkpoint(folder.file("run"), {{"model", model}, {"sgd", sgd}});
  auto fit_epochs = [&](int epochs) {
    return train::fit(model, mse_loss, sgd, {x, y}, {.epochs = epochs, .checkpoint = &checkpoint, .prints = false})
        .epochs.size();
  };
  CHECK_THROWS_AS(fit_epochs(2), io::MisfitError);
  CHECK(checkpoint.resume({.partial = true}));
  for (const NamedTensor& named : io::load(checkpoint.save()).tensors) CHECK_FALSE(named.name.starts_with("fit."));
  CHECK(fit_epochs(2) == 2);
  CHECK(fit_epochs(3) == 3);
}

TEST_CASE("the seconds of an epoch that is cut off and resumed are those of all its parts") {
  using namespace std::chrono_literals;
  Folder folder;
  double seconds = 0;
  train::FitOptions options{.epochs = 1};
  options.after_epoch = [&](const train::EpochReport& epoch) {
    seconds = epoch.seconds;
    return true;
  };
  auto cut_off = [](int step) {
    if (step == 1) std::this_thread::sleep_for(300ms);
    if (step == 3) throw Crash("a step");
  };
  CHECK_THROWS_AS(fitted(folder.file("run"), cut_off, Kind::memory, options), Crash);
  fitted(
      folder.file("run"), [](int) {}, Kind::memory, options);
  CHECK(seconds >= 0.3);
}
