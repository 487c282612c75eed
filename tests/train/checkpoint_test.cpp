#include <cmath>
#include <optional>
#include <span>

#include <reel/io.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>
#include <reel/train/best_weights.h>
#include <reel/train/checkpoint.h>

#include "catch.h"
#include "io/folder.h"

using namespace reel;
using namespace reel_test;

namespace {

using Names = std::set<std::string>;

struct Net : nn::Module {
  nn::Linear hidden{*this, "hidden", 3, 4};
  nn::Linear output{*this, "output", 4, 1};
  nn::Buffer seen{*this, "seen", zeros({}, {.dtype = i64})};

  Tensor operator()(const Tensor& x) { return output(dropout(tanh(hidden(x)), {.probability = 0.3})); }
};

// A run with all that a step can depend on.
struct Run {
  Net net;
  optim::Adam adam{net.parameters(), {.learning_rate = 0.05}};
  optim::Scheduler schedule{adam, optim::step_decay({.every = 3, .factor = 0.5})};
  optim::Plateau plateau{adam, {.patience = 0}};
  optim::LossScaler scaler{{.scale = 8, .growth_interval = 3}};
  optim::MovingAverage average{net.parameters()};
  train::BestWeights best{net};
  nn::CarriedStates carried;
  Generator order{7};
  Tensor hidden;
  std::int64_t seen = 0;
  train::Checkpoint checkpoint;

  explicit Run(const std::string& path, const train::CheckpointOptions& options = {})
      : checkpoint(path,
                   {{"model", net},
                    {"adam", adam},
                    {"schedule", schedule},
                    {"plateau", plateau},
                    {"scaler", scaler},
                    {"average", average},
                    {"best", best},
                    {"carried", carried},
                    {"order", order},
                    {"hidden", hidden},
                    {"seen", seen}},
                   options) {}

  void step() {
    Tensor x = randn({5, 3}, {.generator = &order});
    {
      Tape tape;
      tape.backward(scaler.scale(mean(square(net(x) - 1))));
    }
    scaler.step(adam);
    scaler.update();
    adam.zero_grad();
    schedule.step();
    average.update();
    ++seen;
    hidden = x;
    std::int64_t id = seen % 2;
    carried.keep(std::span(&id, 1), ones({1, 1, 2}) * static_cast<double>(seen));
    if (seen % 4 == 0) plateau.step(0.0);
    best.offer(-std::abs(static_cast<double>(seen) - 5));
    NoRecord pause;
    fill_(net.seen, static_cast<double>(seen));
    checkpoint.after_step();
  }

  // Everything that could differ.
  std::vector<std::vector<double>> content() {
    std::vector<std::vector<double>> all;
    auto add = [&](const std::vector<NamedTensor>& tensors) {
      for (const NamedTensor& named : tensors) all.push_back(to(named.tensor, f64).to_vector<double>());
    };
    for (const auto& list : {net.named_parameters(), net.named_buffers(), adam.state(), schedule.state(),
                             plateau.state(), average.state(), best.state(), carried.state()})
      add(list);
    add({{"hidden", hidden}});
    all.push_back({static_cast<double>(seen), static_cast<double>(order.calls()),
                   static_cast<double>(default_generator().calls()), scaler.current_scale(),
                   static_cast<double>(scaler.growth_progress()), adam.learning_rate()});
    return all;
  }
};

std::vector<std::vector<double>> uninterrupted(int steps) {
  Folder folder;
  manual_seed(3);
  Run run(folder.file("run"));
  for (int i = 0; i < steps; ++i) run.step();
  return run.content();
}

// A module with one parameter of n elements.
struct One : nn::Module {
  explicit One(double value, std::int64_t n = 2) : weight{*this, "weight", {n}, nn::constant(value)} {}
  nn::Parameter weight;
  double value() const { return weight.to_vector<float>()[0]; }
  void set(double value) const {
    NoRecord pause;
    fill_(weight, value);
  }
};

void flip_a_byte(const std::string& path, std::size_t from_end) {
  std::string bytes = reel_test::bytes_of(path);
  bytes[bytes.size() - from_end] ^= 4;
  reel_test::put_bytes(path, bytes);
}

}  // namespace

TEST_CASE("a run that is resumed, again and again, ends with the bits of an uninterrupted one") {
  auto expected = uninterrupted(12);
  for (bool asynchronous : {false, true}) {
    Folder folder;
    for (int goal : {2, 5, 6, 12}) {
      manual_seed(goal == 2 ? 3 : 99);
      Run run(folder.file("run"), {.every = 1, .asynchronous = asynchronous});
      CHECK(static_cast<bool>(run.checkpoint.resume()) == (goal != 2));
      while (run.checkpoint.steps() < goal) run.step();
      if (goal == 12) CHECK(run.content() == expected);
    }
  }
}

TEST_CASE("a snapshot names each tensor by its part and parameter, so that other programs can read it") {
  Folder folder;
  Run run(folder.file("run"));
  run.step();
  io::Contents contents = io::load(run.checkpoint.save());
  CHECK(contents.at("model.hidden.weight").to_vector<float>() == run.net.hidden.weight.to_vector<float>());
  CHECK(contents.at("adam.model.hidden.weight.mean").shape() == Shape{3, 4});
  CHECK(contents.at("average.model.output.bias.average").shape() == Shape{1});
  CHECK(contents.at("seen").item() == 1);
  CHECK(contents.metadata.at("format") == "reel");
  CHECK(contents.metadata.at("step") == "1");
}

TEST_CASE("values of a program are restored, whatever their type") {
  Folder folder;
  std::int8_t small = -3;
  std::uint64_t large = ~std::uint64_t{0};
  bool yes = true;
  float part = 0.1f;
  double infinite = -HUGE_VAL;
  std::string text = std::string("é\0", 3);
  std::vector<int> numbers{1, 2, 3};
  std::vector<bool> flags{true, false};
  std::vector<double> none;
  std::vector<std::string> words{"", "a b", "ü"};
  Tensor undefined, halves = to(tensor({1.f, 2.f}), bf16);
  auto open = [&](train::CheckpointOptions options) {
    return std::make_unique<train::Checkpoint>(folder.file("run"),
                                               std::initializer_list<train::CheckpointPart>{{"small", small},
                                                                                            {"large", large},
                                                                                            {"yes", yes},
                                                                                            {"part", part},
                                                                                            {"infinite", infinite},
                                                                                            {"text", text},
                                                                                            {"numbers", numbers},
                                                                                            {"flags", flags},
                                                                                            {"none", none},
                                                                                            {"words", words},
                                                                                            {"undefined", undefined},
                                                                                            {"halves", halves}},
                                               options);
  };
  open({})->save();
  small = 0, large = 0, yes = false, part = 0, infinite = 0;
  text = "other", numbers = {}, flags = {}, none = {1}, words = {"x"};
  undefined = ones({2}), halves = Tensor();
  CHECK(open({.read_only = true})->resume());
  CHECK(small == -3);
  CHECK(large == ~std::uint64_t{0});
  CHECK(yes);
  CHECK(part == 0.1f);
  CHECK(infinite == -HUGE_VAL);
  CHECK(text == std::string("é\0", 3));
  CHECK(numbers == std::vector<int>{1, 2, 3});
  CHECK(flags == std::vector<bool>{true, false});
  CHECK(none.empty());
  CHECK(words == std::vector<std::string>{"", "a b", "ü"});
  CHECK_FALSE(undefined.defined());
  CHECK(halves.dtype() == bf16);
  CHECK(to(halves, f32).to_vector<float>() == std::vector<float>{1, 2});
}

TEST_CASE("a number that its variable cannot hold is refused, and nothing has changed") {
  Folder folder;
  std::int64_t wide = 1000, first = 1;
  train::Checkpoint(folder.file("run"), {{"first", first}, {"wide", wide}}).save();
  std::int8_t narrow = 5;
  first = 2;
  train::Checkpoint checkpoint(folder.file("run"), {{"first", first}, {"wide", narrow}});
  CHECK_THAT(error_of<Error>([&] { checkpoint.resume(); }),
             contains("the saved number 1000 is out of the range of the variable, -128 to 127"));
  CHECK(narrow == 5);
  CHECK(first == 2);
}

TEST_CASE("an object whose state has no tensors is restored") {
  Folder folder;
  nn::CarriedStates carried;
  {
    train::Checkpoint checkpoint(folder.file("run"), {{"carried", carried}});
    checkpoint.save();
  }
  std::int64_t id = 3;
  carried.keep(std::span(&id, 1), ones({1, 1, 2}));
  train::Checkpoint checkpoint(folder.file("run"), {{"carried", carried}});
  CHECK(checkpoint.resume().step == 1);
  CHECK(carried.size() == 0);
}

TEST_CASE("in an empty directory nothing is resumed") {
  Folder folder;
  One model(1);
  train::Checkpoint checkpoint(folder.file("a/b/run"), {{"model", model}});
  CHECK_FALSE(checkpoint.resume());
  CHECK(checkpoint.latest().empty());
  CHECK(std::filesystem::is_directory(folder.file("a/b/run")));
}

TEST_CASE("the last snapshots are kept, and that of the best score") {
  Folder folder;
  One model(0);
  train::Checkpoint checkpoint(folder.file("run"), {{"model", model}}, {.keep_last = 2});
  for (double score : {1, 5, 2, 5, 3}) {
    model.set(score);
    checkpoint.save({.score = score});
  }
  Names names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.file("run")))
    names.insert(entry.path().filename().string());
  CHECK(names == Names{"best", "latest", "step-000000002.safetensors", "step-000000004.safetensors",
                       "step-000000005.safetensors"});
  CHECK(reel_test::bytes_of(folder.file("run/latest")) == "step-000000005.safetensors\n");
  CHECK(reel_test::bytes_of(folder.file("run/best")) == "step-000000002.safetensors\n");
  CHECK(checkpoint.best_score() == 5);
  train::Resumed resumed = checkpoint.resume({.best = true});
  CHECK(resumed.step == 2);
  CHECK(resumed.score == 5.0);
  CHECK(model.value() == 5);
  CHECK(checkpoint.resume().step == 5);
  CHECK(model.value() == 3);
  CHECK(checkpoint.best_score() == 5);
}

TEST_CASE("with a loss as the score the smallest one is best") {
  Folder folder;
  One model(0);
  train::Checkpoint checkpoint(folder.file("run"), {{"model", model}}, {.keep_last = 1, .larger_is_better = false});
  for (double loss : {3, 1, 2}) checkpoint.save({.score = loss});
  CHECK(reel_test::bytes_of(folder.file("run/best")) == "step-000000002.safetensors\n");
  CHECK_THAT(error_of<Error>([&] { checkpoint.save({.score = std::nan("")}); }), contains("the score is NaN"));
}

TEST_CASE("a damaged snapshot is named, and the newest whole one is restored in its place") {
  Folder folder;
  One model(0, 1000);
  std::optional<train::Checkpoint> checkpoint(std::in_place, folder.file("run"),
                                              std::initializer_list<train::CheckpointPart>{{"model", model}});
  for (double value : {1, 2, 3}) {
    model.set(value);
    checkpoint->save();
  }
  std::string first = folder.file("run/step-000000001.safetensors"),
              second = folder.file("run/step-000000002.safetensors"),
              third = folder.file("run/step-000000003.safetensors");
  // The first bytes are those of 64-bit elements, which precede the weights.
  flip_a_byte(third, 2000);
  CHECK(checkpoint->resume().step == 2);
  CHECK(model.value() == 2);
  std::string bytes = reel_test::bytes_of(second);
  reel_test::put_bytes(second, bytes.substr(0, bytes.size() / 2));
  CHECK(checkpoint->resume().file == first);
  CHECK(model.value() == 1);
  reel_test::put_bytes(folder.file("run/latest"), "nonsense");
  CHECK(checkpoint->resume().file == first);
  std::string whole = reel_test::bytes_of(first);
  // No single bit of a file can be flipped unnoticed, but in the spaces after the header.
  int unnoticed = 0;
  for (std::size_t at = 0; at < whole.size(); at += 97) {
    std::string broken = whole;
    broken[at] ^= 1;
    reel_test::put_bytes(first, broken);
    unnoticed += error_of<io::FileError>([&] { checkpoint->resume(); }).empty() && whole[at] != ' ';
  }
  CHECK(unnoticed == 0);
  CHECK(model.value() == 1);
  CHECK_THAT(error_of<io::FileError>([&] { checkpoint->resume(); }),
             contains("none of the snapshots in '" + folder.file("run") + "' can be restored; the latest: ") &&
                 contains("checkpoint_test.cpp:"));
}

TEST_CASE("each byte of a snapshot's metadata is watched by its checksum") {
  Folder folder;
  One model(3);
  train::Checkpoint checkpoint(folder.file("run"), {{"model", model}});
  std::string path = checkpoint.save({.score = 0.25}), whole = reel_test::bytes_of(path);
  std::size_t begin = whole.find("__metadata__"), end = whole.find('}', begin);
  REQUIRE(begin != whole.npos);
  REQUIRE(end != whole.npos);
  model.set(0);
  for (std::size_t at = begin; at <= end; ++at)
    for (char bit : {1, 16}) {
      std::string broken = whole;
      broken[at] = static_cast<char>(broken[at] ^ bit);
      CAPTURE(at, whole.substr(at, 12));
      reel_test::put_bytes(path, broken);
      CHECK_FALSE(error_of<io::FileError>([&] { checkpoint.resume(); }).empty());
    }
  CHECK(model.value() == 0);
  reel_test::put_bytes(path, whole);
  CHECK(checkpoint.resume().score == 0.25);
  CHECK(model.value() == 3);
}

TEST_CASE("a run that went on from an earlier snapshot removes those of later steps") {
  Folder folder;
  One model(0);
  train::Checkpoint checkpoint(folder.file("run"), {{"model", model}}, {.keep_last = 2});
  for (int i = 0; i < 3; ++i) checkpoint.save();
  flip_a_byte(folder.file("run/step-000000003.safetensors"), 1);
  CHECK(checkpoint.resume().step == 2);
  checkpoint.save({.step = 2});
  CHECK_FALSE(std::filesystem::exists(folder.file("run/step-000000003.safetensors")));
  CHECK(checkpoint.resume().step == 2);
}

TEST_CASE("an optimiser's state follows the names of its parameters") {
  struct Old : nn::Module {
    nn::Parameter a{*this, "a", {2}, nn::constant(1)}, b{*this, "b", {3}, nn::constant(1)},
        gone{*this, "gone", {1}, nn::constant(1)};
  } old;
  struct New : nn::Module {
    nn::Parameter b{*this, "b", {3}, nn::constant(0)}, extra{*this, "extra", {4}, nn::constant(0)},
        a{*this, "a", {2}, nn::constant(0)};
  } now;
  Folder folder;
  optim::Adam adam(old.parameters()), fresh(now.parameters());
  optim::MovingAverage average(old.parameters()), fresh_average(now.parameters());
  for (int i = 1; i < 3; ++i) {
    Tape tape;
    tape.backward(sum(old.a) + (i == 2 ? 2 * sum(old.b) : 0 * sum(old.a)));
    adam.step();
    average.update();
  }
  train::Checkpoint(folder.file("run"), {{"model", old}, {"adam", adam}, {"average", average}}).save();
  train::Checkpoint checkpoint(folder.file("run"), {{"model", now}, {"adam", fresh}, {"average", fresh_average}});
  std::string said = error_of<io::MisfitError>([&] { checkpoint.resume(); });
  CHECK_THAT(said, contains("missing in the snapshot: model.extra (4,) f32"));
  CHECK_THAT(said, contains("not in the program: model.gone (1,) f32"));
  CHECK_THAT(said, contains("missing in the snapshot: adam, the state of model.extra"));
  CHECK_THAT(said, contains("not in the program: average, the state of model.gone"));
  CHECK(now.b.to_vector<float>()[0] == 0);
  train::Resumed resumed = checkpoint.resume({.partial = true});
  CHECK(resumed.missing.size() == 3);
  CHECK(resumed.unexpected.size() == 3);
  CHECK(now.a.to_vector<float>() == old.a.to_vector<float>());
  auto find = [](const std::vector<NamedTensor>& state, const std::string& name) {
    for (const NamedTensor& one : state)
      if (one.name == name) return one.tensor;
    return Tensor();
  };
  auto before = adam.state(), after = fresh.state();
  CHECK(find(after, "steps").to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 0, 2});
  CHECK(find(after, "0.mean").to_vector<float>() == find(before, "1.mean").to_vector<float>());
  CHECK(find(after, "2.mean").to_vector<float>() == find(before, "0.mean").to_vector<float>());
  CHECK(fresh_average.average(2).to_vector<float>() == average.average(0).to_vector<float>());
}

TEST_CASE("parameters that a snapshot lacks start afresh, those of groups and of a product of momenta, too") {
  struct Old : nn::Module {
    nn::Parameter a{*this, "a", {2}, nn::constant(1)}, b{*this, "b", {3}, nn::constant(1)};
  } old;
  struct New : nn::Module {
    nn::Parameter b{*this, "b", {3}, nn::constant(1)}, extra{*this, "extra", {1}, nn::constant(1)},
        a{*this, "a", {2}, nn::constant(1)};
  } now;
  Folder folder;
  auto step = [](auto& module, optim::Optimiser& optimiser) {
    Tape tape;
    Tensor loss = 0 * sum(module.a);
    for (const Tensor& parameter : module.parameters()) loss = loss + sum(square(parameter));
    tape.backward(loss);
    optimiser.step();
    optimiser.zero_grad();
  };
  optim::NAdam nadam({old.a}), resumed({now.a});
  nadam.add_group({old.b}, {.learning_rate = 0.5});
  resumed.add_group({now.extra, now.b}, {});
  for (int i = 0; i < 3; ++i) step(old, nadam);
  train::Checkpoint(folder.file("run"), {{"model", old}, {"nadam", nadam}}).save();
  train::Checkpoint checkpoint(folder.file("run"), {{"model", now}, {"nadam", resumed}});
  CHECK(checkpoint.resume({.partial = true}).missing.size() == 2);
  auto list = [](const optim::Optimiser& optimiser, const std::string& name) {
    for (const NamedTensor& one : optimiser.state())
      if (one.name == name) return to(one.tensor, f64).to_vector<double>();
    return std::vector<double>{};
  };
  std::vector<double> product = list(nadam, "momentum_product");
  REQUIRE(product.size() == 2);
  CHECK(product[0] < 1);
  CHECK(list(resumed, "steps") == std::vector<double>{3, 0, 3});
  CHECK(list(resumed, "momentum_product") == std::vector<double>{product[0], 1, product[1]});
  CHECK(list(resumed, "groups") == std::vector<double>{0, 1, 1});
  // Without a state of its own, the parameter moves as that of a new optimiser does.
  One fresh(1, 1);
  optim::NAdam first(fresh.parameters(), {.learning_rate = 0.5});
  {
    Tape tape;
    tape.backward(sum(square(fresh.weight)));
    first.step();
  }
  step(now, resumed);
  CHECK(now.extra.to_vector<float>() == fresh.weight.to_vector<float>());
}

TEST_CASE("a state that an object refuses leaves all others as they were") {
  Folder folder;
  One model(1);
  Generator order(1);
  {
    optim::SGD sgd(model.parameters(), {.momentum = 0.9});
    train::Checkpoint(folder.file("run"), {{"order", order}, {"optimiser", sgd}, {"model", model}}).save();
  }
  optim::Adam adam(model.parameters(), {.learning_rate = 0.25});
  model.set(5);
  order.set_calls(8);
  train::Checkpoint checkpoint(folder.file("run"), {{"order", order}, {"optimiser", adam}, {"model", model}});
  CHECK_THAT(error_of<Error>([&] { checkpoint.resume(); }), contains("Adam: the state is one of SGD"));
  CHECK(model.value() == 5);
  CHECK(order.calls() == 8);
  CHECK(adam.learning_rate() == 0.25);
  CHECK(checkpoint.resume({.partial = true}).different.size() == 1);
  CHECK(model.value() == 1);
  CHECK(order.calls() == 0);
}

TEST_CASE("what a checkpoint cannot hold is refused with a sentence") {
  Folder folder;
  One model(1), other(2);
  optim::SGD sgd(other.parameters());
  std::string path = folder.file("run");
  auto said = [&](auto f) { return error_of<Error>(f); };
  CHECK_THAT(said([&] {
               train::Checkpoint(path, {{"model", model}, {"sgd", sgd}}).save();
             }),
             contains("'sgd' has a tensor 0, (2,) f32, that no module or tensor of the checkpoint has"));
  CHECK_THAT(said([&] { train::Checkpoint(path, {{"model", model}, {"model", other}}); }), contains("two parts named"));
  CHECK_THAT(said([&] {
               train::Checkpoint(path, {{"a.b", model}});
             }),
             contains("'a.b' of a part is not one of letters"));
  CHECK_THAT(said([&] { train::Checkpoint(path, {{"fit", model}}); }), contains("'fit' is reserved"));
  CHECK_THAT(said([&] { train::Checkpoint(path, {.keep_last = -1}); }), contains("keep_last -1"));
  CHECK_THAT(said([&] { train::Checkpoint("", train::CheckpointOptions()); }),
             contains("the path of the directory is empty"));
  CHECK_THAT(said([&] {
               train::Checkpoint(path, {{"model", model}}, {.read_only = true}).save();
             }),
             contains("read_only"));
  train::Checkpoint checkpoint(path, {{"model", model}});
  checkpoint.save();
  CHECK_THAT(said([&] { checkpoint.add("other", other); }), contains("before the first resume() or save()"));
  CHECK_THAT(said([&] { checkpoint.save({.step = -1}); }), contains("step -1"));
}

TEST_CASE("a run does not write over the snapshots of another one") {
  Folder folder;
  One model(1);
  train::Checkpoint(folder.file("run"), {{"model", model}}).save();
  train::Checkpoint checkpoint(folder.file("run"), {{"model", model}});
  for (auto f : {+[](train::Checkpoint& c) { c.save(); }, +[](train::Checkpoint& c) { c.after_step(); }})
    CHECK_THAT(error_of<Error>([&] { f(checkpoint); }), contains("has the snapshots of another run; resume()"));
  CHECK_THAT(error_of<io::FileError>([&] { train::Checkpoint second(folder.file("run")); }),
             contains("is in use by another Checkpoint"));
  CHECK(checkpoint.resume());
  checkpoint.save();
}

TEST_CASE("a save in the background holds the values of the time of the call") {
  Folder folder;
  One model(1, 300'000);
  train::Checkpoint checkpoint(folder.file("run"), {{"model", model}}, {.asynchronous = true});
  for (double value : {1, 2, 3}) {
    model.set(value);
    checkpoint.save();
    model.set(-1);
  }
  checkpoint.wait();
  CHECK(checkpoint.latest() == folder.file("run/step-000000003.safetensors"));
  checkpoint.resume();
  CHECK(model.value() == 3);
}

TEST_CASE("the name of the best snapshot is that of a snapshot, to its end, or refused") {
  Folder folder;
  One model(3);
  train::Checkpoint checkpoint(folder.file("run"), {{"model", model}});
  checkpoint.save({.score = 1});
  const std::string whole = "step-000000001.safetensors";
  for (const std::string& text :
       {std::string(), std::string("\n"), whole, whole + "x", whole + "\n\n", " " + whole + "\n", "x" + whole + "\n",
        std::string("step-1.safetensors\n"), std::string("step-.safetensors\n"), std::string("step-safetensors\n")}) {
    CAPTURE(text);
    reel_test::put_bytes(folder.file("run/best"), text);
    CHECK_THAT(error_of<io::FileError>([&] { checkpoint.resume({.best = true}); }),
               contains("/best' names no snapshot"));
  }
  reel_test::put_bytes(folder.file("run/best"), whole + "\n");
  CHECK(checkpoint.resume({.best = true}).step == 1);
}

TEST_CASE("a refused state leaves the rate that a program set after its schedule did") {
  Folder folder;
  One model(1);
  optim::SGD sgd(model.parameters(), {.learning_rate = 0.5});
  optim::Scheduler schedule(sgd, optim::step_decay({.every = 1, .factor = 0.5}));
  std::int64_t wide = 1000;
  train::Checkpoint(folder.file("run"), {{"model", model}, {"schedule", schedule}, {"count", wide}, {"sgd", sgd}})
      .save();
  schedule.step();
  sgd.set_learning_rate(0.125);
  std::int8_t narrow = 5;
  train::Checkpoint checkpoint(folder.file("run"),
                               {{"model", model}, {"schedule", schedule}, {"count", narrow}, {"sgd", sgd}});
  CHECK_THAT(error_of<Error>([&] { checkpoint.resume(); }), contains("out of the range of the variable"));
  CHECK(sgd.learning_rate() == 0.125);
  schedule.step();
  CHECK(sgd.learning_rate() == 0.125);
}
