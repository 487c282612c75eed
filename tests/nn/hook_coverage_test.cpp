// Hooks of all kinds on every module of the library and on every module within it: each runs when the module runs, by
// any of its functions, or is refused with the reason.

#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>

#include <array>
#include <list>
#include <string>
#include <vector>

#include "catch.h"

using namespace reel;
using reel_test::contains;

namespace {

constexpr const char* kinds[] = {"before_forward", "after_forward", "before_backward", "after_backward"};

struct Watched {
  std::string name;
  std::array<int, 4> fired{};
  std::vector<nn::ModuleHook> hooks;
};

// Adds hooks to the module and to all within it. Checks the reason of those that are refused, and omits them.
std::list<Watched> watch_all(nn::Module& module) {
  std::list<Watched> all;
  module.for_each_module([&](nn::Module& part) {
    Watched& watched = all.emplace_back(Watched{part.type_name(), {}, {}});
    auto count = [&](int kind) { return [&watched, kind](std::span<Tensor>) { ++watched.fired[kind]; }; };
    try {
      watched.hooks.push_back(part.before_forward(count(0)));
      watched.hooks.push_back(part.after_forward(count(1)));
      watched.hooks.push_back(part.before_backward(count(2)));
      watched.hooks.push_back(part.after_backward(count(3)));
    } catch (const Error& error) {
      CHECK(watched.hooks.empty());
      CHECK_THAT(error.what(), contains(watched.name + " is never called"));
      CHECK(watched.name.starts_with("ModuleList"));
      all.pop_back();
    }
  });
  return all;
}

void check_fired(const std::list<Watched>& all, std::size_t kind_count) {
  for (const Watched& watched : all)
    for (std::size_t kind = 0; kind < kind_count; ++kind) {
      CAPTURE(watched.name, kinds[kind]);
      CHECK(watched.fired[kind] > 0);
    }
}

// Runs the module, run() → a tensor, and a backward.
template <class Run>
void check_fires(const std::string& name, nn::Module& module, Run run) {
  CAPTURE(name);
  manual_seed(1);
  std::list<Watched> all = watch_all(module);
  Tape tape;
  tape.backward(sum(to(run(), f32)));
  check_fired(all, 4);
}

Tensor input(const Shape& shape) { return randn(shape).requires_grad(); }

template <class Layer>
void check_layer(Layer layer, const Shape& shape) {
  check_fires(layer.type_name(), layer, [&] { return layer(input(shape)); });
}

LSTMState state(std::int64_t batch, std::int64_t size) { return {input({batch, size}), input({batch, size})}; }

nn::Packed packed(std::int64_t size) { return {input({5, size}), {3, 2}}; }

}  // namespace

TEST_CASE("hooks of every layer of one tensor fire") {
  const Shape row{4, 6}, line{2, 6, 8}, image{2, 6, 8, 8}, volume{2, 6, 8, 8, 8};
  check_layer(nn::ReLU(), row);
  check_layer(nn::Sigmoid(), row);
  check_layer(nn::Tanh(), row);
  check_layer(nn::SiLU(), row);
  check_layer(nn::SELU(), row);
  check_layer(nn::LeakyReLU(), row);
  check_layer(nn::GELU(), row);
  check_layer(nn::ELU(), row);
  check_layer(nn::Softplus(), row);
  check_layer(nn::Hardtanh(), row);
  check_layer(nn::Mish(), row);
  check_layer(nn::Hardswish(), row);
  check_layer(nn::Hardsigmoid(), row);
  check_layer(nn::LogSigmoid(), row);
  check_layer(nn::Softsign(), row);
  check_layer(nn::CELU(), row);
  check_layer(nn::Softshrink(), row);
  check_layer(nn::Hardshrink(), row);
  check_layer(nn::Softmax(), row);
  check_layer(nn::LogSoftmax(), row);
  check_layer(nn::GLU(), row);
  check_layer(nn::PReLU(), row);
  check_layer(nn::Dropout(), row);
  check_layer(nn::Dropout2d(), image);
  check_layer(nn::AlphaDropout(), row);
  check_layer(nn::VariationalDropout(), line);
  check_layer(nn::Linear(6, 3), row);
  check_layer(nn::LayerNorm({6}), row);
  check_layer(nn::RMSNorm({6}), row);
  check_layer(nn::GroupNorm(2, 6), row);
  check_layer(nn::BatchNorm1d(6), row);
  check_layer(nn::BatchNorm2d(6), image);
  check_layer(nn::BatchNorm3d(6), volume);
  check_layer(nn::InstanceNorm1d(6), line);
  check_layer(nn::InstanceNorm2d(6), image);
  check_layer(nn::InstanceNorm3d(6), volume);
  check_layer(nn::Conv1d(6, 2, 3), line);
  check_layer(nn::Conv2d(6, 2, 3), image);
  check_layer(nn::Conv3d(6, 2, 3), volume);
  check_layer(nn::ConvTransposed1d(6, 2, 3), line);
  check_layer(nn::ConvTransposed2d(6, 2, 3), image);
  check_layer(nn::ConvTransposed3d(6, 2, 3), volume);
  check_layer(nn::MaxPool1d(2), line);
  check_layer(nn::MaxPool2d(2), image);
  check_layer(nn::MaxPool3d(2), volume);
  check_layer(nn::AvgPool1d(2), line);
  check_layer(nn::AvgPool2d(2), image);
  check_layer(nn::AvgPool3d(2), volume);
  check_layer(nn::AdaptiveMaxPool1d(2), line);
  check_layer(nn::AdaptiveMaxPool2d(2), image);
  check_layer(nn::AdaptiveMaxPool3d(2), volume);
  check_layer(nn::AdaptiveAvgPool1d(2), line);
  check_layer(nn::AdaptiveAvgPool2d(2), image);
  check_layer(nn::AdaptiveAvgPool3d(2), volume);
  check_layer(nn::Sequential(nn::Linear(6, 4), relu, nn::Sequential(nn::Linear(4, 2))), row);
  check_layer(nn::TransformerEncoderLayer(6, 2, {.feed_forward = 8}), {2, 3, 6});
}

TEST_CASE("hooks of layers of indices fire, though no gradient flows back to an index") {
  nn::Embedding embedding(5, 3);
  nn::EmbeddingBag bag(5, 3);
  Tensor indices = tensor(std::vector<std::int64_t>{0, 3, 3, 1});
  check_fires("Embedding", embedding, [&] { return embedding(indices); });
  check_fires("EmbeddingBag", bag, [&] { return bag(reshape(indices, {2, 2})); });
}

TEST_CASE("hooks of attention and of the projections within it fire") {
  nn::MultiHeadAttention heads(6, 2);
  Tensor x = input({2, 3, 6});
  check_fires("MultiHeadAttention", heads, [&] { return heads(x); });
  std::list<Watched> all = watch_all(heads);
  Tape tape;
  tape.backward(sum(square(heads.weights(x, x))));
  for (const Watched& watched : all) {
    CAPTURE(watched.name);
    bool projects = &watched == &all.front() || &watched == &*std::next(all.begin()) ||
                    &watched == &*std::next(all.begin(), 2);  // the queries' and the keys'
    for (int fired : watched.fired) CHECK((fired > 0) == projects);
  }
  nn::BahdanauAttention additive(6, 4, 5);
  check_fires("BahdanauAttention", additive, [&] { return additive(input({2, 3, 6}), input({2, 4, 4})).context; });
  for (nn::LuongScore score : {nn::LuongScore::dot, nn::LuongScore::general, nn::LuongScore::concat}) {
    nn::LuongAttention luong(6, 6, {.score = score});
    check_fires("LuongAttention", luong, [&] { return luong(input({2, 3, 6}), input({2, 4, 6})).context; });
  }
  nn::TransformerDecoderLayer decoder(6, 2, {.feed_forward = 8});
  check_fires("TransformerDecoderLayer", decoder, [&] { return decoder(x, input({2, 4, 6})); });
}

TEST_CASE("hooks of cells fire, also step by step from projected inputs") {
  nn::LSTMCell lstm(4, 3), wide(4, 3, {.projection = 2, .layer_norm = true});
  nn::GRUCell gru(4, 3);
  nn::RNNCell rnn(4, 3);
  check_fires("LSTMCell", lstm, [&] { return lstm(input({2, 4}), state(2, 3)).h; });
  check_fires("LSTMCell::step", lstm, [&] { return lstm.step(lstm.project(input({2, 4})), state(2, 3)).h; });
  check_fires("LSTMCell of all options", wide, [&] { return wide(input({2, 4}), {input({2, 2}), input({2, 3})}).h; });
  check_fires("GRUCell", gru, [&] { return gru(input({2, 4}), input({2, 3})); });
  check_fires("RNNCell", rnn, [&] { return rnn(input({2, 4}), input({2, 3})); });
}

TEST_CASE("hooks of the cells within recurrent layers fire at each step") {
  for (bool both : {false, true}) {
    nn::LSTM lstm(4, 3, {.layers = 2, .bidirectional = both}),
        wide(4, 3, {.layers = 2, .bidirectional = both, .projection = 2, .layer_norm = true});
    nn::GRU gru(4, 3, {.layers = 2, .bidirectional = both});
    nn::RNN rnn(4, 3, {.layers = 2, .bidirectional = both});
    CAPTURE(both);
    check_fires("LSTM", lstm, [&] { return lstm(input({5, 2, 4})).output; });
    check_fires("LSTM of all options", wide, [&] { return wide(input({5, 2, 4})).output; });
    check_fires("GRU", gru, [&] { return gru(input({5, 2, 4})).output; });
    check_fires("RNN", rnn, [&] { return rnn(input({5, 2, 4})).output; });
    check_fires("LSTM, packed", lstm, [&] { return lstm(packed(4)).output.elements; });
    check_fires("GRU, packed", gru, [&] { return gru(packed(4)).output.elements; });
    check_fires("RNN, packed", rnn, [&] { return rnn(packed(4)).output.elements; });
  }
}

namespace {

// The results of a layer for ragged sequences, with a counting hook on each of its cells and without.
template <class Layer, class Outputs>
void check_hooked_layer(const char* name, const Layer& layer, int calls, Outputs outputs) {
  CAPTURE(name);
  nn::Packed x = packed(4);
  std::vector<Tensor> plain = outputs(layer(x));
  int seen = 0;
  std::vector<nn::ModuleHook> hooks;
  for (auto& cell : const_cast<Layer&>(layer).nets)
    hooks.push_back(cell.before_forward([&](std::span<Tensor>) { ++seen; }));
  std::vector<Tensor> hooked = outputs(layer(x));
  CHECK(seen == calls);
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(max(abs(plain[i] - hooked[i])).item() < 1e-6);
}

}  // namespace

TEST_CASE("a recurrent layer gives the same with hooks on its cells, which see each step once") {
  manual_seed(1);
  // Two nets, of two directions, over sequences of 3 and 2 elements.
  auto with_memory = [](const auto& result) {
    return std::vector<Tensor>{result.output.elements, result.h_n, result.c_n};
  };
  auto without = [](const auto& result) { return std::vector<Tensor>{result.output.elements, result.h_n}; };
  check_hooked_layer("LSTM", nn::LSTM(4, 3, {.bidirectional = true}), 6, with_memory);
  check_hooked_layer("LSTM of all options",
                     nn::LSTM(4, 3, {.bidirectional = true, .projection = 2, .layer_norm = true}), 6, with_memory);
  check_hooked_layer("GRU", nn::GRU(4, 3, {.bidirectional = true}), 6, without);
  check_hooked_layer("RNN", nn::RNN(4, 3, {.bidirectional = true}), 6, without);
}

TEST_CASE("hooks of trees, of bilinear layers and of mixtures fire") {
  nn::ChildSumTreeLSTM sum_tree(4, 3);
  nn::NaryTreeLSTM nary_tree(4, 3, 2);
  for (auto* tree : {&sum_tree}) {
    check_fires("ChildSumTreeLSTM", *tree, [&] { return (*tree)(input({2, 4}), {state(2, 3), state(2, 3)}).h; });
    check_fires("ChildSumTreeLSTM without an input", *tree, [&] { return (*tree)(nn::no_input, {state(2, 3)}).h; });
  }
  check_fires("NaryTreeLSTM", nary_tree, [&] { return nary_tree(input({2, 4}), {state(2, 3), state(2, 3)}).h; });
  nn::Bilinear bilinear(3, 4, 2);
  check_fires("Bilinear", bilinear, [&] { return bilinear(input({2, 3}), input({2, 4})); });
  nn::NoisyTopKGate gate(4, 3);
  check_fires("NoisyTopKGate", gate, [&] {
    nn::Gates gates = gate(input({5, 4}));
    return sum(square(gates.weights)) + gates.balance_loss;
  });
  nn::MixtureOfExperts<nn::Linear> mixture(4, 2, {.k = 2}, 4, 3);
  check_fires("MixtureOfExperts", mixture, [&] {
    nn::MixtureOutput result = mixture(input({5, 4}));
    return sum(result.output) + result.balance_loss;
  });
}

TEST_CASE("hooks of a parser-interpreter and of its parts fire") {
  using enum nn::Transition;
  nn::SPINN spinn(3, {.tracker_size = 2});
  const std::vector<std::vector<nn::Transition>> transitions{{shift, shift, reduce, shift, reduce},
                                                             {shift, shift, reduce}};
  check_fires("SPINN", spinn, [&] {
    nn::SPINNOutput result = spinn(packed(6), transitions);
    return sum(result.root.h) + sum(square(result.logits)) + sum(square(result.nodes));
  });
  nn::SPINNReduce reducer(3, {.tracker_size = 2});
  check_fires("SPINNReduce", reducer, [&] { return reducer(state(2, 3), state(2, 3), input({2, 2})).h; });
  nn::SPINNTracker tracker(3, {.tracker_size = 2});
  check_fires("SPINNTracker", tracker, [&] {
    return sum(tracker.transition(tracker(input({2, 3}), input({2, 3}), input({2, 3}), state(2, 2)).h));
  });
}

TEST_CASE("hooks of a conditional random field fire in each of its functions") {
  nn::CRF crf(3);
  nn::Packed emissions = packed(3);
  Tensor tags = tensor(std::vector<std::int64_t>{0, 2, 1, 1, 0});
  check_fires("CRF", crf, [&] { return crf(emissions, tags); });
  check_fires("CRF::log_partition", crf, [&] { return crf.log_partition(emissions); });
  // Nothing is recorded while it decodes.
  std::list<Watched> all = watch_all(crf);
  std::size_t inputs = 0, results = 0;
  auto before = crf.before_forward([&](std::span<Tensor> tensors) { inputs = tensors.size(); });
  auto after = crf.after_forward([&](std::span<Tensor> tensors) { results = tensors.size(); });
  crf.decode(emissions);
  check_fired(all, 2);
  CHECK(inputs == 2);
  CHECK(results == 2);
}
