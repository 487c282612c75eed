#include <reel/reel.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "catch.h"
#include "folder.h"
#include "golden_folder.h"

// Files that a version has written, <kind>-<version>.safetensors, are read by every later one. Their contents are written
// down here, not computed by the library. `io_test '[write]'` writes those of the present version; see tests/README.md.

using namespace reel;
using reel_test::golden_folder;

namespace {

using Values = std::vector<double>;

Values values_of(const Tensor& x) { return to(x, f64).to_vector<double>(); }

void set(const Tensor& x, const Values& values) {
  NoRecord pause;
  copy_(x, reshape(to(tensor(values), x.dtype()), x.shape()));
}

// Compares named tensors with what they must hold; all names must be there and no other.
void check_tensors(const std::vector<NamedTensor>& found, const std::map<std::string, Values>& expected) {
  std::set<std::string> names, expected_names;
  for (const auto& [name, values] : expected) expected_names.insert(name);
  for (const NamedTensor& named : found) {
    names.insert(named.name);
    CAPTURE(named.name);
    auto place = expected.find(named.name);
    if (place == expected.end()) continue;
    Values values = values_of(named.tensor);
    REQUIRE(values.size() == place->second.size());
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == Approx(place->second[i]).epsilon(1e-6));
  }
  CHECK(names == expected_names);
}

Values text(std::string_view letters) { return Values(letters.begin(), letters.end()); }

// Every dtype.

// 0, −1/4, 1/2, −3/4, 1, −5/4, as each dtype can hold it.
double element(DType dtype, int i) {
  if (dtype == boolean) return i % 2;
  if (dtype == u8) return 50 * i;
  int sign = i % 2 ? -1 : 1;
  return dtype == i32 || dtype == i64 ? sign * i * 1000 : sign * i * 0.25;
}

constexpr DType dtypes[] = {f32, f64, bf16, f16, i32, i64, u8, boolean};

void write_dtypes(const std::string& path) {
  std::vector<NamedTensor> tensors;
  for (DType dtype : dtypes) {
    Values values;
    for (int i = 0; i < 6; ++i) values.push_back(element(dtype, i));
    tensors.push_back({name_of(dtype), to(tensor(values, {2, 3}), dtype)});
  }
  tensors.push_back({"empty", zeros({3, 0})});
  tensors.push_back({"number", full({}, 0.1, {.dtype = f64})});
  io::save(path, tensors, {{"written by", "a test, in Ünïcode"}});
}

void check_dtypes(const io::Contents& contents) {
  CHECK(contents.metadata == io::Metadata{{"written by", "a test, in Ünïcode"}});
  CHECK(contents.tensors.size() == std::size(dtypes) + 2);
  for (DType dtype : dtypes) {
    const Tensor& x = contents.at(name_of(dtype));
    CAPTURE(name_of(dtype));
    CHECK(x.dtype() == dtype);
    CHECK(x.shape() == Shape{2, 3});
    Values values = values_of(x);
    for (int i = 0; i < 6; ++i) CHECK(values[static_cast<std::size_t>(i)] == element(dtype, i));
  }
  CHECK(contents.at("empty").shape() == Shape{3, 0});
  CHECK(contents.at("number").item() == 0.1);
  CHECK(contents.at("number").shape() == Shape{});
}

// Every layer that has parameters or buffers.

struct Layers : nn::Module {
  nn::Linear linear{*this, "linear", 2, 3};
  nn::Bilinear bilinear{*this, "bilinear", 2, 1, 2};
  nn::Embedding embedding{*this, "embedding", 3, 2};
  nn::EmbeddingBag bag{*this, "bag", 2, 2};
  nn::Conv1d convolution{*this, "convolution", 2, 2, 3};
  nn::ConvTransposed2d transposed{*this, "transposed", 1, 2, 2};
  nn::BatchNorm1d batch_norm{*this, "batch_norm", 2};
  nn::LayerNorm layer_norm{*this, "layer_norm", {2}};
  nn::GroupNorm group_norm{*this, "group_norm", 1, 2};
  nn::RMSNorm rms_norm{*this, "rms_norm", {2}};
  nn::LSTM lstm{*this, "lstm", 2, 2, {.layers = 2, .bidirectional = true}};
  nn::GRU gru{*this, "gru", 2, 2};
  nn::RNN rnn{*this, "rnn", 2, 2};
  nn::LSTMCell cell{*this, "cell", 1, 2, {.projection = 1, .layer_norm = true}};
  nn::MultiHeadAttention attention{*this, "attention", 2, 1};
  nn::BahdanauAttention bahdanau{*this, "bahdanau", 2, 1, 2};
  nn::LuongAttention luong{*this, "luong", 2, 1};
  nn::TransformerDecoderLayer decoder{*this, "decoder", 2, 1, {.feed_forward = 2}};
  nn::ChildSumTreeLSTM child_sum{*this, "child_sum", 1, 2};
  nn::NaryTreeLSTM nary{*this, "nary", 1, 2, 2};
  nn::SPINN spinn{*this, "spinn", 1, {.tracker_size = 1}};
  nn::MixtureOfExperts<nn::Linear> mixture{*this, "mixture", 1, 2, {.k = 1}, 1, 2};
  nn::CRF crf{*this, "crf", 2};
};

std::vector<NamedTensor> all_tensors(const nn::Module& module) {
  std::vector<NamedTensor> all = module.named_parameters();
  for (const NamedTensor& buffer : module.named_buffers()) all.push_back(buffer);
  return all;
}

// A number for each name, and for each element one that is larger.
Values numbers_for(const NamedTensor& named) {
  int sum = 0;
  for (char c : named.name) sum = (3 * sum + c) % 97;
  bool is_integer = named.tensor.dtype() == i64;
  Values values;
  for (int i = 0; i < named.tensor.numel(); ++i) values.push_back(sum + (is_integer ? i : i / 64.0));
  return values;
}

void write_layers(const std::string& path) {
  Layers layers;
  for (const NamedTensor& named : all_tensors(layers)) set(named.tensor, numbers_for(named));
  io::save(path, layers, {{"epoch", "3"}});
}

void check_layers(const io::Contents& contents) {
  CHECK(contents.metadata == io::Metadata{{"epoch", "3"}, {"format", "reel"}});
  Layers layers;
  io::load_into(layers, contents);
  for (const NamedTensor& named : all_tensors(layers)) {
    CAPTURE(named.name);
    CHECK(values_of(named.tensor) == numbers_for(named));
  }
}

// Layers as PyTorch saves them.

struct FromPyTorch : nn::Module {
  nn::Linear fc{*this, "fc", 2, 3};
  nn::LSTM lstm{*this, "lstm", 3, 1};
};

// (rows, columns) of row + column / 8.
Tensor grid(int rows, int columns) {
  Values values;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) values.push_back(i + j / 8.0);
  return to(tensor(values, {rows, columns}), f32);
}

void write_pytorch(const std::string& path) {
  io::save(path, {{"fc.weight", grid(3, 2)},
                  {"fc.bias", reshape(grid(3, 1), {3})},
                  {"lstm.weight_ih_l0", grid(4, 3)},
                  {"lstm.weight_hh_l0", grid(4, 1)},
                  {"lstm.bias_ih_l0", reshape(grid(4, 1), {4})},
                  {"lstm.bias_hh_l0", full({4}, 0.5f)}});
}

void check_pytorch(const io::Contents& contents) {
  FromPyTorch model;
  io::load_into(model, contents, {.from_pytorch = true});
  CHECK(values_of(model.fc.weight) == Values{0, 1, 2, 0.125, 1.125, 2.125});
  CHECK(values_of(model.fc.bias) == Values{0, 1, 2});
  const nn::LSTMCell& net = model.lstm.nets[0];
  CHECK(values_of(net.W_x) == Values{0, 1, 2, 3, 0.125, 1.125, 2.125, 3.125, 0.25, 1.25, 2.25, 3.25});
  CHECK(values_of(net.W_h) == Values{0, 1, 2, 3});
  CHECK(values_of(net.bias) == Values{0.5, 1.5, 2.5, 3.5});
}

// Optimisers after two steps on parameters (2) f32 and () f64 with gradients of 2, at a rate of 1/4.

using MakeOptimiser = std::function<std::unique_ptr<optim::Optimiser>(const std::vector<Tensor>&)>;

template <class Optimiser, class Options>
MakeOptimiser maker(Options options) {
  return [options](const std::vector<Tensor>& parameters) {
    return std::make_unique<Optimiser>(std::vector<Tensor>(parameters), options);
  };
}

std::vector<Tensor> parameters() { return {ones({2}).requires_grad(), ones({}, {.dtype = f64}).requires_grad()}; }

void write_optimiser(const MakeOptimiser& make, const std::string& path) {
  auto optimiser = make(parameters());
  for (int step = 0; step < 2; ++step) {
    for (const Tensor& w : optimiser->parameters()) w.set_grad(full(w.shape(), 2, {.dtype = w.dtype()}));
    optimiser->step();
  }
  io::save(path, optimiser->state());
}

// The state of an optimiser of which each parameter keeps one number per element.
std::map<std::string, Values> state_of(const char* name, const std::map<std::string, double>& kept,
                                       std::map<std::string, Values> others = {}) {
  std::map<std::string, Values> state{
      {"optimiser", text(name)}, {"steps", {2, 2}}, {"learning_rate", {0.25}}, {"momentum", {0.5}}};
  for (const auto& [kept_name, value] : kept) {
    state["0." + kept_name] = {value, value};
    state["1." + kept_name] = {value};
  }
  state.merge(others);
  return state;
}

void check_optimiser(const MakeOptimiser& make, const std::map<std::string, Values>& expected,
                     const io::Contents& contents) {
  check_tensors(contents.tensors, expected);
  auto optimiser = make(parameters());
  optimiser->set_learning_rate(3);
  optimiser->load_state(contents.tensors);
  CHECK(optimiser->learning_rate() == 0.25);
  check_tensors(optimiser->state(), expected);
}

// a of Adadelta, with ρ = 1/2 and ε = 1.
double step_square() {
  double s = 0, a = 0;
  for (int step = 0; step < 2; ++step) {
    s = 0.5 * s + 0.5 * 4;
    double d = std::sqrt(a + 1) / std::sqrt(s + 1) * 2;
    a = 0.5 * a + 0.5 * d * d;
  }
  return a;
}

// μ₁ μ₂ of NAdam, with β₁ = 1/2 and ψ = 1.
double momentum_product() { return 0.5 * (1 - 0.96 / 2) * 0.5 * (1 - 0.96 * 0.96 / 2); }

std::map<std::string, Values> without_momentum(std::map<std::string, Values> state) {
  state.erase("momentum");
  return state;
}

struct OptimiserKind {
  MakeOptimiser make;
  std::map<std::string, Values> state;
};

std::map<std::string, OptimiserKind> optimisers() {
  using namespace optim;
  constexpr double rate = 0.25;
  return {
      {"sgd", {maker<SGD>(SGDOptions{.learning_rate = rate, .momentum = 0.5}), state_of("SGD", {{"velocity", 3}})}},
      {"adam",
       {maker<Adam>(AdamOptions{.learning_rate = rate, .beta1 = 0.5, .beta2 = 0.5, .amsgrad = true}),
        state_of("Adam", {{"mean", 1.5}, {"square", 3}, {"largest_square", 3}})}},
      {"adamw",
       {maker<AdamW>(AdamWOptions{.learning_rate = rate, .beta1 = 0.5, .beta2 = 0.5}),
        state_of("AdamW", {{"mean", 1.5}, {"square", 3}})}},
      {"nadam",
       {maker<NAdam>(NAdamOptions{.learning_rate = rate, .beta1 = 0.5, .beta2 = 0.5, .momentum_decay = 1}),
        state_of("NAdam", {{"mean", 1.5}, {"square", 3}},
                 {{"momentum_product", {momentum_product(), momentum_product()}}})}},
      {"radam",
       {maker<RAdam>(RAdamOptions{.learning_rate = rate, .beta1 = 0.5, .beta2 = 0.5}),
        state_of("RAdam", {{"mean", 1.5}, {"square", 3}})}},
      {"adamax",
       {maker<Adamax>(AdamaxOptions{.learning_rate = rate, .beta1 = 0.5, .beta2 = 0.5, .epsilon = 0.5}),
        state_of("Adamax", {{"mean", 1.5}, {"largest", 2.5}})}},
      {"lion",
       {maker<Lion>(LionOptions{.learning_rate = rate, .beta1 = 0.5, .beta2 = 0.5}),
        state_of("Lion", {{"mean", 1.5}})}},
      {"rmsprop",
       {maker<RMSprop>(
            RMSpropOptions{.learning_rate = rate, .alpha = 0.5, .epsilon = 0, .momentum = 0.5, .centred = true}),
        // The first step divides 2 by √(2 − 1²), the second by √(3 − 1.5²).
        state_of("RMSprop", {{"square", 3}, {"mean", 1.5}, {"velocity", 1 + 2 / std::sqrt(0.75)}})}},
      {"adagrad",
       {maker<Adagrad>(AdagradOptions{.learning_rate = rate, .initial_sum = 1}),
        without_momentum(state_of("Adagrad", {{"sum", 9}}))}},
      {"adadelta",
       {maker<Adadelta>(AdadeltaOptions{.learning_rate = rate, .rho = 0.5, .epsilon = 1}),
        without_momentum(state_of("Adadelta", {{"square", 3}, {"step_square", step_square()}}))}},
  };
}

// Groups whose rates a plateau has reduced, after two steps.

struct Grouped {
  std::vector<Tensor> w = parameters();
  optim::Adam adam{{w[0]}, {.learning_rate = 0.25, .beta1 = 0.5, .beta2 = 0.5}};

  Grouped() { adam.add_group({w[1]}, {.learning_rate = 0.5, .beta1 = 0.25, .beta2 = 0.5}); }
};

void write_groups(const std::string& path) {
  Grouped grouped;
  optim::Plateau plateau(grouped.adam, {.factor = 0.5, .patience = 0});
  for (int step = 0; step < 2; ++step) {
    for (const Tensor& w : grouped.w) w.set_grad(full(w.shape(), 2, {.dtype = w.dtype()}));
    grouped.adam.step();
    plateau.step(1);
  }
  io::save(path, grouped.adam.state());
}

void check_groups(const io::Contents& contents) {
  std::map<std::string, Values> expected{
      {"optimiser", text("Adam")}, {"steps", {2, 2}},         {"groups", {0, 1}},     {"learning_rate", {0.25, 0.5}},
      {"rate_factor", {0.5, 0.5}}, {"momentum", {0.5, 0.25}}, {"0.mean", {1.5, 1.5}}, {"0.square", {3, 3}},
      {"1.mean", {1.875}},         {"1.square", {3}}};
  check_tensors(contents.tensors, expected);
  Grouped grouped;
  grouped.adam.load_state(contents.tensors);
  CHECK(grouped.adam.learning_rate(0) == 0.125);
  CHECK(grouped.adam.learning_rate(1) == 0.25);
  check_tensors(grouped.adam.state(), expected);
}

// LBFGS after two iterations on w² / 2 from 2: half a step to 1, where the curvature 1 is known, and Newton's to 0.

struct Parabola {
  Tensor w = tensor({2.0}).requires_grad();
  optim::LBFGS lbfgs{{w}, {.max_iterations = 1, .line_search = false}};
};

void write_lbfgs(const std::string& path) {
  Parabola parabola;
  for (int step = 0; step < 2; ++step)
    parabola.lbfgs.step([&] {
      Tape tape;
      Tensor loss = sum(square(parabola.w)) / 2;
      tape.backward(loss);
      return loss.item();
    });
  io::save(path, parabola.lbfgs.state());
}

void check_lbfgs(const io::Contents& contents) {
  std::map<std::string, Values> expected{{"optimiser", text("LBFGS")},
                                         {"iterations", {2}},
                                         {"learning_rate", {1}},
                                         {"length", {1}},
                                         {"scale", {1}},
                                         {"direction", {-1}},
                                         {"gradient", {1}},
                                         {"position_changes", {-1}},
                                         {"gradient_changes", {-1}}};
  check_tensors(contents.tensors, expected);
  Parabola parabola;
  parabola.lbfgs.load_state(contents.tensors);
  check_tensors(parabola.lbfgs.state(), expected);
}

// Schedulers and other objects that go with an optimiser.

struct Scheduled {
  optim::SGD sgd{parameters(), {.learning_rate = 0.5}};
  optim::Scheduler scheduler{sgd, [](double base, std::int64_t step) { return base / (1.0 + step); }};
};

void write_scheduler(const std::string& path) {
  Scheduled scheduled;
  for (int step = 0; step < 3; ++step) scheduled.scheduler.step();
  io::save(path, scheduled.scheduler.state());
}

void check_scheduler(const io::Contents& contents) {
  check_tensors(contents.tensors, {{"step", {3}}, {"base", {0.5}}});
  Scheduled scheduled;
  scheduled.scheduler.load_state(contents.tensors);
  CHECK(scheduled.sgd.learning_rate() == 0.125);
}

void write_plateau(const std::string& path) {
  optim::SGD sgd(parameters());
  optim::Plateau plateau(sgd, {.patience = 1, .cooldown = 3});
  for (double metric : {2.0, 1.0, 1.5, 1.5, 1.5}) plateau.step(metric);
  io::save(path, plateau.state());
}

void check_plateau(const io::Contents& contents) {
  std::map<std::string, Values> expected{{"best", {1}}, {"bad_steps", {0}}, {"cooldown", {2}}};
  check_tensors(contents.tensors, expected);
  optim::SGD sgd(parameters());
  optim::Plateau plateau(sgd);
  plateau.load_state(contents.tensors);
  check_tensors(plateau.state(), expected);
}

void write_average(const std::string& path) {
  std::vector<Tensor> w = parameters();
  optim::MovingAverage average(w, {.decay = 0.5});
  for (double value : {5.0, 9.0}) {
    set(w[0], {value, -value});
    set(w[1], {2 * value});
    average.update();
  }
  io::save(path, average.state());
}

void check_average(const io::Contents& contents) {
  // From 1, half of the way to 5 and then half of the way to 9, and in the same way for the others.
  std::map<std::string, Values> expected{{"steps", {2}}, {"0.average", {6, -5.5}}, {"1.average", {11.75}}};
  check_tensors(contents.tensors, expected);
  optim::MovingAverage average(parameters());
  average.load_state(contents.tensors);
  check_tensors(average.state(), expected);
}

// A kind of file: what writes it, and what checks that it holds what is written down here.
struct Kind {
  std::function<void(const std::string& path)> write;
  std::function<void(const io::Contents& contents)> check;
  const char* since = "0.1.0";  // the version that wrote it first
};

std::map<std::string, Kind> kinds() {
  std::map<std::string, Kind> all{
      {"dtypes", {write_dtypes, check_dtypes}},    {"layers", {write_layers, check_layers}},
      {"pytorch", {write_pytorch, check_pytorch}}, {"groups", {write_groups, check_groups}},
      {"lbfgs", {write_lbfgs, check_lbfgs}},       {"scheduler", {write_scheduler, check_scheduler}},
      {"plateau", {write_plateau, check_plateau}}, {"moving_average", {write_average, check_average}}};
  for (const auto& [name, optimiser] : optimisers())
    all[name] = {[make = optimiser.make](const std::string& path) { write_optimiser(make, path); },
                 [optimiser = optimiser](const io::Contents& contents) {
                   check_optimiser(optimiser.make, optimiser.state, contents);
                 }};
  return all;
}

}  // namespace

TEST_CASE("every file that an earlier version has written is read, and holds what it held") {
  std::map<std::string, Kind> known = kinds();
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder)) {
    std::string name = entry.path().filename().string();
    CAPTURE(name);
    auto kind = known.find(name.substr(0, name.find('-')));
    REQUIRE(kind != known.end());
    kind->second.check(io::load(entry.path().string()));
  }
  for (const auto& [name, kind] : known) {
    CAPTURE(name);
    CHECK(std::filesystem::exists(fmt::format("{}/{}-{}.safetensors", golden_folder, name, kind.since)));
  }
}

// REEL_WRITE_GOLDEN=1 in the environment adds the files of this version that are not there yet.
TEST_CASE("the files that this version writes hold what is written down") {
  reel_test::Folder own;
  bool keeps = std::getenv("REEL_WRITE_GOLDEN") != nullptr;
  for (const auto& [name, kind] : kinds()) {
    CAPTURE(name);
    std::string file = fmt::format("{}-{}.safetensors", name, version.string);
    std::filesystem::path kept = std::filesystem::path(golden_folder) / file;
    std::string path = keeps && !std::filesystem::exists(kept) ? kept.string() : own.file(file);
    kind.write(path);
    kind.check(io::load(path));
  }
}
