#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.h"
#include "cuda/gpu.h"

namespace reel_test {

using namespace reel;

namespace {

enum class Kind : std::uint8_t { lstm, gru, tanh, relu };

struct Net {
  Kind kind;
  std::int64_t width, size;
  bool bidirectional;
  std::optional<DType> weight_dtype = {};
};

std::int64_t gates_of(Kind kind) { return kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1; }

// x, h, c, and W_x, W_h and b of each net.
std::vector<Tensor> draw(const Net& net, std::int64_t steps, std::int64_t batch, DType dtype) {
  std::int64_t nets = net.bidirectional ? 2 : 1, gates = gates_of(net.kind);
  RandomOptions options{.dtype = dtype};
  std::vector<Tensor> drawn{randn({steps, batch, net.width}, options), randn({nets, batch, net.size}, options),
                            randn({nets, batch, net.size}, options)};
  for (std::int64_t i = 0; i < nets; ++i) {
    drawn.push_back(randn({net.width, gates * net.size}, options) * 0.5);
    drawn.push_back(randn({net.size, gates * net.size}, options) * 0.5);
    drawn.push_back(randn({(net.kind == Kind::gru ? 4 : gates) * net.size}, options));
  }
  return drawn;
}

// y, h_n and, of lstm, c_n.
std::vector<Tensor> run(const Net& net, const std::vector<Tensor>& in, const Tensor& lengths) {
  std::vector<RecurrentWeights> weights;
  for (std::size_t i = 3; i < in.size(); i += 3) weights.push_back({in[i], in[i + 1], in[i + 2], net.weight_dtype});
  RecurrentOptions options{.lengths = lengths, .bidirectional = net.bidirectional};
  if (net.kind == Kind::lstm) {
    LSTMOutput found = lstm(in[0], {in[1], in[2]}, weights, options);
    return {found.output, found.h_n, found.c_n};
  }
  RNNOptions plain{.lengths = lengths,
                   .bidirectional = net.bidirectional,
                   .activation = net.kind == Kind::relu ? RNNActivation::relu : RNNActivation::tanh};
  RecurrentOutput found =
      net.kind == Kind::gru ? gru(in[0], in[1], weights, options) : rnn(in[0], in[1], weights, plain);
  return {found.output, found.h_n};
}

Tensor loss_of(const std::vector<Tensor>& outputs) {
  Tensor loss = zeros({}, {.dtype = outputs[0].dtype(), .device = outputs[0].device()});
  for (std::size_t i = 0; i < outputs.size(); ++i) loss = loss + sum(square(outputs[i]) * static_cast<double>(i + 1));
  return loss;
}

// The net's results, and the gradients of its loss by all inputs.
std::vector<Tensor> all_of(const Net& net, const std::vector<Tensor>& in, const Tensor& lengths) {
  Tape tape;
  for (const Tensor& input : in) tape.watch(input);
  std::vector<Tensor> found = run(net, in, lengths);
  std::vector<Tensor> gradients = tape.gradient(loss_of(found), in, {.unconnected = Unconnected::zeros});
  found.insert(found.end(), gradients.begin(), gradients.end());
  return found;
}

std::vector<Tensor> on(Device device, const std::vector<Tensor>& tensors) {
  std::vector<Tensor> moved;
  for (const Tensor& tensor : tensors) moved.push_back(to(tensor, device));
  return moved;
}

double distance(const Tensor& found, const Tensor& expected) {
  if (expected.numel() == 0) return 0;
  Tensor apart = max(abs(to(found, cpu) - expected)), scale = maximum(max(abs(expected)), 1.0);
  return to(apart / scale, f64).item<double>();
}

double bound(DType dtype) { return dtype == f64 ? 1e-10 : 1e-4; }

// The inputs, of which the weights are parameters.
std::vector<Tensor> with_parameters(std::vector<Tensor> in) {
  for (std::size_t i = 3; i < in.size(); ++i) in[i] = copy(in[i]).requires_grad();
  return in;
}

// Whether the net computes with the weights' present values: copies have no packed form yet.
bool is_current(const Net& net, const std::vector<Tensor>& in) {
  std::vector<Tensor> copies = in;
  for (std::size_t i = 3; i < in.size(); ++i) copies[i] = stop_gradient(copy(in[i]));
  std::vector<Tensor> found = run(net, in, {}), expected = run(net, copies, {});
  for (std::size_t i = 0; i < found.size(); ++i)
    if (to_string(found[i]) != to_string(expected[i])) return false;
  return true;
}

// The net's cell on each step in a loop.
std::vector<Tensor> run_steps(const Net& net, const std::vector<Tensor>& in) {
  RecurrentWeights weights{in[3], in[4], in[5], net.weight_dtype};
  LSTMState state{in[1](0), in[2](0)};
  std::vector<Tensor> outputs;
  for (std::int64_t t = 0; t < in[0].size(0); ++t) {
    if (net.kind == Kind::lstm)
      state = lstm_cell(in[0](t), state, weights);
    else
      state.h = net.kind == Kind::gru ? gru_cell(in[0](t), state.h, weights) : rnn_cell(in[0](t), state.h, weights);
    outputs.push_back(state.h);
  }
  return outputs;
}

// The results of the loop, and the gradients of its loss by all inputs.
std::vector<Tensor> all_of_steps(const Net& net, const std::vector<Tensor>& in) {
  Tape tape;
  for (const Tensor& input : in) tape.watch(input);
  std::vector<Tensor> found = run_steps(net, in);
  std::vector<Tensor> gradients = tape.gradient(loss_of(found), in, {.unconnected = Unconnected::zeros});
  found.insert(found.end(), gradients.begin(), gradients.end());
  return found;
}

constexpr Kind whole_kinds[] = {Kind::lstm, Kind::gru, Kind::tanh};

}  // namespace

TEST_CASE("layers give on a device what they give on the CPU, and so do their gradients") {
  if (lacks_device()) return;
  manual_seed(7);
  Tensor ragged = tensor({std::int64_t{3}, std::int64_t{5}, std::int64_t{1}, std::int64_t{4}});
  Tensor with_none = tensor({std::int64_t{3}, std::int64_t{0}, std::int64_t{5}, std::int64_t{4}});
  for (DType dtype : {f32, f64})
    for (Kind kind : {Kind::lstm, Kind::gru, Kind::tanh, Kind::relu})
      for (std::int64_t size : {7, 8})  // a library runs fused layers of some sizes only
        for (bool bidirectional : {false, true})
          for (const Tensor& lengths : {Tensor(), ragged, with_none}) {
            CAPTURE(name_of(dtype), static_cast<int>(kind), size, bidirectional, lengths.defined());
            Net net{kind, 6, size, bidirectional};
            std::vector<Tensor> in = draw(net, 5, 4, dtype);
            std::vector<Tensor> expected = all_of(net, in, lengths), found = all_of(net, on(gpu, in), lengths);
            for (std::size_t i = 0; i < expected.size(); ++i) {
              CAPTURE(i);
              CHECK(found[i].device() == gpu);
              CHECK(distance(found[i], expected[i]) < bound(dtype));
            }
          }
}

TEST_CASE("layers and cells round their weights on a device as on the CPU") {
  if (lacks_device()) return;
  manual_seed(9);
  Tensor ragged = tensor({std::int64_t{3}, std::int64_t{5}, std::int64_t{1}, std::int64_t{4}});
  auto check = [](const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);
      CHECK(distance(found[i], expected[i]) < 2e-5);
    }
  };
  for (DType weight_dtype : {bf16, f16})
    for (Kind kind : {Kind::lstm, Kind::gru, Kind::tanh})
      for (std::int64_t size : {7, 8}) {
        CAPTURE(name_of(weight_dtype), static_cast<int>(kind), size);
        Net net{kind, 6, size, false, weight_dtype}, plain{kind, 6, size, false};
        std::vector<Tensor> in = with_parameters(draw(net, 5, 4, f32)), there;
        for (const Tensor& one : on(gpu, in)) there.push_back(stop_gradient(one));
        there = with_parameters(there);
        for (const Tensor& lengths : {Tensor(), ragged}) check(all_of(net, there, lengths), all_of(net, in, lengths));
        check(all_of_steps(net, there), all_of_steps(net, in));
        // The packed form of the weights that are not rounded is another one.
        CHECK(distance(all_of(plain, there, {})[0], all_of(net, in, {})[0]) > 2e-5);
        check(all_of(net, there, {}), all_of(net, in, {}));
      }
}

TEST_CASE("a layer on a device keeps nothing where nothing records") {
  if (lacks_device()) return;
  Net net{Kind::lstm, 6, 8, false};
  std::vector<Tensor> in = draw(net, 5, 4, f64), expected = run(net, in, {}), found = run(net, on(gpu, in), {});
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(distance(found[i], expected[i]) < bound(f64));
}

TEST_CASE("a tape that lives on differentiates a layer on a device twice with the same result") {
  if (lacks_device()) return;
  for (Kind kind : {Kind::lstm, Kind::gru, Kind::tanh}) {
    Net net{kind, 6, 8, false};
    std::vector<Tensor> in = on(gpu, draw(net, 5, 4, f32));
    Tape tape({.persistent = true});
    for (const Tensor& input : in) tape.watch(input);
    Tensor loss = loss_of(run(net, in, {}));
    std::vector<Tensor> first = tape.gradient(loss, in, {.unconnected = Unconnected::zeros});
    std::vector<Tensor> second = tape.gradient(loss, in, {.unconnected = Unconnected::zeros});
    for (std::size_t i = 0; i < first.size(); ++i) CHECK(to_string(second[i]) == to_string(first[i]));
  }
}

TEST_CASE("gradients of a layer's gradients are the same on a device") {
  if (lacks_device()) return;
  auto second_order = [](const Net& net, const std::vector<Tensor>& in) {
    Tape outer;
    for (const Tensor& input : in) outer.watch(input);
    std::vector<Tensor> inner = all_of(net, in, {});
    return outer.gradient(loss_of(inner), in, {.unconnected = Unconnected::zeros});
  };
  for (Kind kind : {Kind::lstm, Kind::gru, Kind::tanh}) {
    Net net{kind, 3, 4, false};
    std::vector<Tensor> in = draw(net, 3, 2, f64);
    std::vector<Tensor> expected = second_order(net, in), found = second_order(net, on(gpu, in));
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(distance(found[i], expected[i]) < 1e-8);
  }
}

TEST_CASE("lengths of sequences on a device may lie there or on the CPU") {
  if (lacks_device()) return;
  Net net{Kind::gru, 6, 8, true};
  Tensor lengths = tensor({3, 5, 1, 4});
  std::vector<Tensor> in = on(gpu, draw(net, 5, 4, f64));
  std::vector<Tensor> here = run(net, in, lengths), there = run(net, in, to(lengths, gpu));
  for (std::size_t i = 0; i < here.size(); ++i) CHECK(to_string(there[i]) == to_string(here[i]));
}

TEST_CASE("a layer on a device computes with the present values of its parameters, however they have changed") {
  if (lacks_device()) return;
  manual_seed(11);
  for (Kind kind : whole_kinds)
    for (bool bidirectional : {false, true}) {
      CAPTURE(static_cast<int>(kind), bidirectional);
      Net net{kind, 6, 8, bidirectional};
      std::vector<Tensor> in = with_parameters(on(gpu, draw(net, 5, 4, f32)));
      std::vector<Tensor> parameters(in.begin() + 3, in.end());
      CHECK(is_current(net, in));
      for (Tensor& parameter : parameters) {
        NoRecord pause;
        mul_(parameter, 0.5);
        CHECK(is_current(net, in));
        copy_(parameter, randn(parameter.shape(), {.device = gpu}));
        CHECK(is_current(net, in));
      }
      optim::SGD sgd(parameters, {.learning_rate = 0.1});
      for (int i = 0; i < 3; ++i) {
        sgd.zero_grad();
        Tape tape;
        tape.backward(loss_of(run(net, in, {})));
        sgd.step();
        CHECK(is_current(net, in));
      }
      std::thread other([&] {
        NoRecord pause;
        mul_(parameters[1], 2.0);
        CHECK(is_current(net, in));
      });
      other.join();
      CHECK(is_current(net, in));
      parameters[0].requires_grad(false);
      CHECK(is_current(net, in));
      add_(parameters[0], 1.0);
      CHECK(is_current(net, in));
    }
}

TEST_CASE("parts of one parameter are packed by themselves, and memory that another parameter gets is packed anew") {
  if (lacks_device()) return;
  Net net{Kind::lstm, 8, 8, false};
  std::vector<Tensor> in = with_parameters(on(gpu, draw(net, 5, 4, f32)));
  Tensor both = randn({16, 32}, {.device = gpu}).requires_grad();
  for (int i = 0; i < 3; ++i) {
    in[3] = slice(both, 0, 0, 8);
    in[4] = slice(both, 0, 8, 16);
    CHECK(is_current(net, in));
    std::swap(in[3], in[4]);
    CHECK(is_current(net, in));
    in[3] = slice(both, 0, 4, 12);
    CHECK(is_current(net, in));
  }
  Tensor wide = randn({32, 8}, {.device = gpu}).requires_grad();
  for (int i = 0; i < 2; ++i) {
    in[3] = transpose(wide);
    CHECK(is_current(net, in));
    in[3] = reshape(wide, {8, 32});
    CHECK(is_current(net, in));
  }
  for (int i = 0; i < 20; ++i) {
    in[3] = Tensor();
    in[3] = randn({8, 32}, {.device = gpu}).requires_grad();
    CHECK(is_current(net, in));
  }
}

TEST_CASE("a layer without a bias does not use what was packed with one") {
  if (lacks_device()) return;
  Net net{Kind::gru, 6, 8, false};
  std::vector<Tensor> in = with_parameters(on(gpu, draw(net, 5, 4, f32))), without = in;
  without.back() = zeros(in.back().shape(), {.device = gpu});
  std::vector<RecurrentWeights> weights{{in[3], in[4], Tensor()}};
  auto run_without = [&] { return gru(in[0], in[1], weights).output; };
  std::string expected = to_string(run(net, without, {})[0]), with = to_string(run(net, in, {})[0]);
  for (int i = 0; i < 2; ++i) {
    CHECK(to_string(run_without()) == expected);
    CHECK(to_string(run(net, in, {})[0]) == with);
  }
}

TEST_CASE("a recorded training packs the weights of each replay, and what runs beside it packs its own") {
  if (lacks_device()) return;
  auto trained = [](bool replays) {
    manual_seed(5);
    Net net{Kind::lstm, 6, 8, false};
    std::vector<Tensor> in = with_parameters(on(gpu, draw(net, 5, 4, f32)));
    std::vector<Tensor> parameters(in.begin() + 3, in.end());
    optim::Adam adam(parameters, {.learning_rate = 0.05});
    auto step = [&](std::span<const Tensor> given) {
      adam.zero_grad();
      Tape tape;
      std::vector<Tensor> now = in;
      now[0] = given[0];
      Tensor loss = loss_of(run(net, now, {})) + loss_of(run(net, now, {}));
      tape.backward(loss);
      adam.step();
      return loss;
    };
    cuda::Graph graph(step, {in[0]});
    std::vector<float> losses;
    for (int i = 0; i < 6; ++i) {
      CHECK(is_current(net, in));
      losses.push_back((replays ? graph({in[0]}) : step(std::vector<Tensor>{in[0]})).item<float>());
      CHECK(is_current(net, in));
      if (i < 4) continue;
      NoRecord pause;
      mul_(parameters[0], 0.5);  // the next replay sees it
    }
    return losses;
  };
  CHECK(trained(true) == trained(false));
}

TEST_CASE("weights that are loaded replace what was packed") {
  if (lacks_device()) return;
  std::string path =
      std::filesystem::temp_directory_path() / ("reel_packed_" + std::to_string(getpid()) + ".safetensors");
  nn::LSTM layer(6, 8);
  layer.to(gpu);
  Tensor x = randn({5, 4, 6}, {.device = gpu});
  auto run_layer = [&] { return to_string(layer(x).output); };
  std::string before = run_layer();
  io::save(path, layer);
  {
    NoRecord pause;
    for (Tensor parameter : layer.parameters()) mul_(parameter, 0.5);
  }
  CHECK(run_layer() != before);
  io::load_into(layer, path);
  CHECK(run_layer() == before);
  std::filesystem::remove(path);
}

TEST_CASE("gradients of parameters, of one order or two, use the weights of their forward pass") {
  if (lacks_device()) return;
  manual_seed(13);
  for (Kind kind : whole_kinds) {
    Net net{kind, 3, 4, false};
    std::vector<Tensor> drawn = draw(net, 3, 2, f64);
    auto gradients = [&](Device device) {
      std::vector<Tensor> in = with_parameters(on(device, drawn)), found;
      for (int i = 0; i < 2; ++i) {
        {
          Tape outer;
          for (int k = 0; k < 3; ++k) outer.watch(in[static_cast<std::size_t>(k)]);
          Tensor loss = loss_of(run(net, in, {}));
          std::vector<Tensor> inner;
          {
            Tape tape;
            for (int k = 0; k < 3; ++k) tape.watch(in[static_cast<std::size_t>(k)]);
            inner = tape.gradient(loss_of(run(net, in, {})), in, {.unconnected = Unconnected::zeros});
          }
          std::vector<Tensor> second = outer.gradient(loss + loss_of(inner), in, {.unconnected = Unconnected::zeros});
          found.insert(found.end(), inner.begin(), inner.end());
          found.insert(found.end(), second.begin(), second.end());
        }
        NoRecord pause;
        for (std::size_t k = 3; k < in.size(); ++k) mul_(in[k], 0.75);
      }
      return found;
    };
    std::vector<Tensor> expected = gradients(cpu), found = gradients(gpu);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(distance(found[i], expected[i]) < 1e-8);
  }
}

TEST_CASE("weights that have changed count from the next run of a layer on") {
  if (lacks_device()) return;
  Net net{Kind::lstm, 6, 8, false};
  std::vector<Tensor> in = draw(net, 5, 4, f64), there = on(gpu, in);
  run(net, there, {});
  mul_(there[3], 0.5);
  in[3] = in[3] * 0.5;
  CHECK(distance(run(net, there, {})[0], run(net, in, {})[0]) < bound(f64));
}

}  // namespace reel_test
