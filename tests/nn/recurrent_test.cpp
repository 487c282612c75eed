#include <reel/autocast.h>
#include <reel/debug/gradcheck.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>

#include "catch.h"
#include "checks.h"

using namespace reel;
using namespace reel_test;

namespace {

// A module's options have no value for what it does not do.
template <class Options>
concept Projects = requires { Options{.projection = 2}; } || requires { Options{.projection{2}}; };
template <class Options>
concept Stacks = requires { Options{.layers = 2}; };
template <class Options>
concept Activates = requires { Options{.activation = RNNActivation::relu}; };
static_assert(Projects<nn::LSTMOptions> && Projects<nn::LSTMCellOptions>);
static_assert(!Projects<nn::GRUOptions> && !Projects<nn::GRUCellOptions> && !Projects<nn::RNNLayerOptions>);
static_assert(Stacks<nn::GRUOptions> && !Stacks<nn::GRUCellOptions> && !Stacks<nn::LSTMCellOptions>);
static_assert(Activates<nn::RNNCellOptions> && Activates<nn::RNNLayerOptions> && !Activates<nn::LSTMOptions>);

nn::Packed ragged(std::int64_t width) { return {draw({10, width}), {3, 0, 1, 4, 2}}; }

// Each layer as h, with c behind it where there is one: (output, h_n, c_n) of Packed, and of one sequence (T, 1, I).
struct Result {
  Tensor output, h, c;
};

template <class Layer>
Result run(const Layer& layer, const nn::Packed& x, const LSTMState& state) {
  if constexpr (std::is_same_v<Layer, nn::LSTM>) {
    nn::PackedLSTMOutput result = layer(x, state);
    return {result.output.elements, result.h_n, result.c_n};
  } else {
    nn::PackedRecurrentOutput result = layer(x, state.h);
    return {result.output.elements, result.h_n, {}};
  }
}

template <class Layer>
Result run(const Layer& layer, const Tensor& x, const LSTMState& state, const Tensor& lengths = {}) {
  if constexpr (std::is_same_v<Layer, nn::LSTM>) {
    LSTMOutput result = layer(x, state, lengths);
    return {result.output, result.h_n, result.c_n};
  } else {
    RecurrentOutput result = layer(x, state.h, lengths);
    return {result.output, result.h_n, {}};
  }
}

Tensor all_of(const Result& result) {
  Tensor both = concat({flatten(sin(result.output)), flatten(cos(result.h))});
  return result.c.defined() ? concat({both, flatten(result.c)}) : both;
}

// Runs each sequence by itself and concatenates the results.
template <class Layer>
Result run_each(const Layer& layer, const nn::Packed& x, const LSTMState& state) {
  std::vector<Tensor> outputs, h, c;
  std::vector<Tensor> sequences = x.sequences();
  for (std::int64_t b = 0; b < x.size(); ++b) {
    LSTMState own{slice(state.h, 1, b, b + 1), state.c.defined() ? slice(state.c, 1, b, b + 1) : Tensor()};
    Result result = run(layer, unsqueeze(sequences[static_cast<std::size_t>(b)], 1), own);
    outputs.push_back(squeeze(result.output, 1));
    h.push_back(result.h);
    c.push_back(result.c);
  }
  return {concat(outputs), concat(h, 1), state.c.defined() ? concat(c, 1) : Tensor()};
}

template <class Layer>
void check_ragged(const Layer& layer, const LSTMState& state) {
  nn::Packed x = ragged(3);
  Tape tape({.persistent = true});
  tape.watch(x.elements);
  std::vector<Tensor> sources = layer.parameters();
  sources.push_back(x.elements);
  auto gradients_of = [&](const Result& result) { return tape.gradient(sum(all_of(result)), sources); };

  Result together = run(layer, x, state), each = run_each(layer, x, state);
  check_close(together.output, each.output);
  check_close(together.h, each.h);
  if (state.c.defined()) check_close(together.c, each.c);
  std::vector<Tensor> gradients = gradients_of(together);

  std::vector<Tensor> expected = gradients_of(each);
  for (std::size_t i = 0; i < sources.size(); ++i) check_close(gradients[i], expected[i], 1e-11);

  Tensor lengths = tensor(x.lengths);
  Result padded = run(layer, x.padded({.value = 99}), state, lengths);
  check_close(nn::pack(padded.output, lengths).elements, each.output);
  CHECK(sum(abs(padded.output)).item() == Approx(sum(abs(each.output)).item()));
  check_close(padded.h, each.h);
}

}  // namespace

TEST_CASE("LSTM layers compute what lstm does with the weights of their nets") {
  manual_seed(1);
  nn::LSTM layer(3, 4, {.layers = 2, .bidirectional = true, .dtype = f64});
  std::vector<RecurrentWeights> weights;
  for (const nn::LSTMCell& net : layer.nets) weights.push_back(net.weights());
  Tensor x = draw({5, 2, 3});
  LSTMState state{draw({4, 2, 4}), draw({4, 2, 4})};
  LSTMOutput expected = lstm(x, state, weights, {.bidirectional = true}), found = layer(x, state);
  check_close(found.output, expected.output);
  check_close(found.h_n, expected.h_n);
  check_close(found.c_n, expected.c_n);
  check_close(layer(x).output, lstm(x, {}, weights, {.bidirectional = true}).output);
  CHECK(layer.named_parameters()[3].name == "nets.1.W_x");
  CHECK(layer.parameter_count() == 2 * (3 * 16 + 4 * 16 + 16) + 2 * (8 * 16 + 4 * 16 + 16));
}

TEST_CASE("ragged batches give what each sequence gives alone, and its gradients") {
  manual_seed(2);
  auto states = [](std::int64_t nets, std::int64_t h, std::int64_t c) {
    return LSTMState{draw({nets, 5, h}), draw({nets, 5, c})};
  };
  check_ragged(nn::LSTM(3, 4, {.dtype = f64}), states(1, 4, 4));
  check_ragged(nn::LSTM(3, 4, {.layers = 2, .bidirectional = true, .dtype = f64}), states(4, 4, 4));
  check_ragged(nn::LSTM(3, 4, {.layers = 2, .bidirectional = true, .projection = 2, .dtype = f64}), states(4, 2, 4));
  check_ragged(nn::LSTM(3, 4, {.layers = 2, .bidirectional = true, .layer_norm = true, .dtype = f64}), states(4, 4, 4));
  check_ragged(nn::LSTM(3, 4, {.projection = 3, .layer_norm = true, .dtype = f64}), states(1, 3, 4));
  check_ragged(nn::GRU(3, 4, {.layers = 2, .bidirectional = true, .dtype = f64}), {draw({4, 5, 4}), {}});
  check_ragged(nn::RNN(3, 4, {.layers = 2, .bidirectional = true, .dtype = f64}), {draw({4, 5, 4}), {}});
  check_ragged(nn::RNN(3, 4, {.activation = RNNActivation::relu, .dtype = f64}), {draw({1, 5, 4}), {}});
}

TEST_CASE("a batch of nothing but empty sequences keeps its states") {
  nn::LSTM layer(3, 4, {.bidirectional = true});
  LSTMState state{randn({2, 2, 4}), randn({2, 2, 4})};
  nn::PackedLSTMOutput result = layer(nn::Packed{zeros({0, 3}), {0, 0}}, state);
  CHECK(result.output.elements.shape() == Shape{0, 8});
  CHECK(result.h_n.to_vector<float>() == state.h.to_vector<float>());
  CHECK(layer(zeros({0, 2, 3}), state).output.shape() == Shape{0, 2, 8});
  CHECK(sum(abs(layer(ones({2, 2, 3}), state, tensor<std::int64_t>({0, 0})).output)).item() == 0);
}

TEST_CASE("an LSTM with a projection carries a narrower h") {
  manual_seed(3);
  nn::LSTMCell cell(3, 5, {.projection = 2, .dtype = f64});
  CHECK(cell.W_h.shape() == Shape{2, 20});
  CHECK(cell.W_r.shape() == Shape{5, 2});
  LSTMState state{draw({4, 2}), draw({4, 5})};
  Tensor x = draw({4, 3});
  std::vector<Tensor> a = split(matmul(x, cell.W_x) + matmul(state.h, cell.W_h) + cell.bias, 5, 1);
  Tensor c = sigmoid(a[1]) * state.c + sigmoid(a[0]) * tanh(a[2]);
  LSTMState next = cell(x, state);
  check_close(next.c, c);
  check_close(next.h, matmul(sigmoid(a[3]) * tanh(c), cell.W_r));
  CHECK(cell.initial_state(4).h.shape() == Shape{4, 2});
  CHECK(cell.initial_state(4).c.shape() == Shape{4, 5});
}

TEST_CASE("an LSTM with layer norms normalises both parts of its gates, and its memory where it is shown") {
  manual_seed(4);
  nn::LSTMCell cell(3, 5, {.layer_norm = true, .dtype = f64});
  cell.scale_x = draw({20});
  cell.scale_h = draw({20});
  cell.scale_c = draw({5});
  cell.shift_c = draw({5});
  auto norm = [](const Tensor& x) {
    Tensor centred = x - mean(x, -1, {.keepdims = true});
    return centred / sqrt(mean(square(centred), -1, {.keepdims = true}) + 1e-5);
  };
  LSTMState state{draw({4, 5}), draw({4, 5})};
  Tensor x = draw({4, 3});
  std::vector<Tensor> a = split(
      norm(matmul(x, cell.W_x)) * cell.scale_x + norm(matmul(state.h, cell.W_h)) * cell.scale_h + cell.bias, 5, 1);
  Tensor c = sigmoid(a[1]) * state.c + sigmoid(a[0]) * tanh(a[2]);
  LSTMState next = cell(x, state);
  check_close(next.c, c);
  check_close(next.h, sigmoid(a[3]) * tanh(norm(c) * cell.scale_c + cell.shift_c));
  CHECK(cell.parameters().size() == 7);
}

TEST_CASE("GRUCell and RNNCell compute a step of their layers") {
  manual_seed(5);
  Tensor x = draw({4, 3}), h = draw({4, 5});
  nn::GRUCell gru(3, 5, {.dtype = f64});
  check_close(gru(x, h), gru_cell(x, h, gru.weights()));
  check_close(unsqueeze(gru(x, gru.initial_state(4)), 0), reel::gru(unsqueeze(x, 0), {}, gru.weights()).h_n);
  nn::RNNCell rnn(3, 5, {.activation = RNNActivation::relu, .dtype = f64});
  check_close(rnn(x, h), relu(matmul(x, rnn.W_x) + matmul(h, rnn.W_h) + rnn.bias));
  CHECK(rnn.initial_state(2).shape() == Shape{2, 5});
}

TEST_CASE("gradients through cells and layers that are no single op agree with differences, to second order") {
  manual_seed(6);
  nn::LSTM layer(2, 3, {.bidirectional = true, .projection = 2, .layer_norm = true, .dtype = f64});
  auto f = [&](std::span<const Tensor> in) {
    nn::PackedLSTMOutput result = layer({in[0], {2, 0, 1}}, {in[1], in[2]});
    return all_of({result.output.elements, result.h_n, result.c_n});
  };
  std::vector<Tensor> inputs{draw({3, 2}), draw({2, 3, 2}), draw({2, 3, 3})};
  auto report = debug::gradcheck(f, inputs);
  INFO(report.text);
  CHECK(report);
  auto second = debug::gradgradcheck(f, inputs);
  INFO(second.text);
  CHECK(second);
}

TEST_CASE("input and recurrent matrices have initialisers of their own, applied to each gate") {
  manual_seed(7);
  auto check_orthogonal = [](const Tensor& block) {
    check_close(matmul(transpose(block), block), eye(block.size(1)), 1e-5);
  };
  nn::LSTM lstm(6, 4,
                {.forget_bias = 1,
                 .input_initialiser = nn::constant(0.5),
                 .recurrent_initialiser = nn::orthogonal(),
                 .bias_initialiser = nn::constant(0)});
  for (const Tensor& block : split(lstm.nets[0].W_h, 4, 1)) check_orthogonal(block);
  check_close(lstm.nets[0].W_x, full({6, 16}, 0.5));
  check_close(lstm.nets[0].bias, concat({zeros({4}), ones({4}), zeros({8})}));
  nn::GRU gru(6, 4, {.recurrent_initialiser = nn::orthogonal()});
  for (const Tensor& block : split(gru.nets[0].W_h, 4, 1)) check_orthogonal(block);
  nn::RNN rnn(6, 4, {.recurrent_initialiser = nn::identity()});
  check_close(rnn.nets[0].W_h, eye(4));
  CHECK(max(abs(rnn.nets[0].W_x)).item() <= 0.5);
}

TEST_CASE("the same generator makes the same layer") {
  Generator first(3), second(3);
  nn::GRU one(3, 4, {.layers = 2, .generator = &first}), same(3, 4, {.layers = 2, .generator = &second});
  for (std::size_t i = 0; i < one.parameters().size(); ++i)
    CHECK(one.parameters()[i].to_vector<float>() == same.parameters()[i].to_vector<float>());
}

TEST_CASE("dropout stands between layers, and only while training") {
  manual_seed(8);
  nn::GRU layer(3, 4, {.layers = 2, .dropout = 1});
  nn::Packed x{randn({6, 3}), {2, 4}};
  Tensor dropped = layer(x).output.elements;
  // The upper net's inputs are zeros, so the first step is equal for both sequences.
  Tensor expected = reel::gru(zeros({1, 1, 4}), {}, layer.nets[1].weights()).output;
  check_close(slice(dropped, 0, 0, 1), squeeze(expected, 0), 1e-6);
  check_close(slice(dropped, 0, 2, 3), squeeze(expected, 0), 1e-6);
  layer.eval();
  nn::GRU plain = nn::clone(layer);
  plain.train(false);
  Tensor used = layer(x).output.elements;
  check_close(used, plain(x).output.elements, 1e-6);
  CHECK(max(abs(used - dropped)).item() > 1e-3);

  // A single layer has no dropout.
  nn::LSTM single(3, 4, {.dropout = 1});
  CHECK(max(abs(single(x).output.elements)).item() > 0);
}

TEST_CASE("variational dropout takes one mask for all steps of a sequence") {
  manual_seed(9);
  // The lower net outputs 1s and the upper one is the identity.
  nn::RNN layer(1, 50, {.layers = 2, .dropout = 0.5, .variational = true, .activation = RNNActivation::relu});
  layer.nets[0].W_x = zeros({1, 50});
  layer.nets[0].W_h = zeros({50, 50});
  layer.nets[0].bias = ones({50});
  layer.nets[1].W_x = eye(50);
  layer.nets[1].W_h = zeros({50, 50});
  layer.nets[1].bias = zeros({50});
  std::vector<Tensor> sequences = layer(nn::Packed{zeros({7, 1}), {2, 0, 4, 1}}).output.sequences();
  for (std::size_t b : {0u, 2u})
    for (std::int64_t t = 0; t < sequences[b].size(0); ++t)
      check_close(select(sequences[b], 0, t), select(sequences[b], 0, 0));
  CHECK(max(abs(select(sequences[0], 0, 0) - select(sequences[2], 0, 0))).item() == 2);
  CHECK(max(abs(select(sequences[0], 0, 0) - select(sequences[3], 0, 0))).item() == 2);
  double kept = mean(concat(sequences)).item();
  CHECK(kept == Approx(1).margin(0.3));
}

TEST_CASE("states of long sequences are carried from minibatch to minibatch by their numbers") {
  manual_seed(10);
  nn::LSTM layer(2, 3, {.layers = 2, .dtype = f64});
  Tensor x = draw({6, 3, 2});
  LSTMOutput whole = layer(x);

  nn::CarriedStates carried;
  std::vector<std::int64_t> all{10, 20, 30}, reversed{30, 10};
  CHECK_FALSE(carried.of(all).h.defined());
  LSTMOutput first, second;
  {
    Tape tape;
    first = layer(slice(x, 0, 0, 2), carried.of(all));
    carried.keep(all, {first.h_n, first.c_n});
    tape.backward(sum(first.output));
  }
  CHECK(carried.size() == 3);
  check_close(select(carried.of(all).h, 1, 1), stop_gradient(select(first.h_n, 1, 1)));
  // Sequence 20 is absent, the others change their order. The kept states are detached from the finished tape.
  Tensor order = tensor<std::int64_t>({2, 0});
  {
    Tape tape;
    second = layer(index_select(slice(x, 0, 2, 5), 1, order), carried.of(reversed));
    carried.keep(reversed, {second.h_n, second.c_n});
    tape.backward(sum(second.output));
  }
  check_close(second.output, index_select(slice(whole.output, 0, 2, 5), 1, order));

  carried.reset(10);
  CHECK(carried.size() == 2);
  LSTMState after = carried.of(all);
  CHECK(max(abs(select(after.h, 1, 0))).item() == 0);
  CHECK(max(abs(select(after.c, 1, 0))).item() == 0);
  check_close(select(after.c, 1, 2), select(second.c_n, 1, 0));
  carried.reset();
  CHECK_FALSE(carried.h_of(all).defined());

  nn::GRU gru(2, 3);
  carried.keep(reversed, gru(ones({1, 2, 2})).h_n);
  CHECK(carried.h_of(all).shape() == Shape{1, 3, 3});
  CHECK_FALSE(carried.of(all).c.defined());
}

TEST_CASE("carried states refuse what does not fit") {
  nn::CarriedStates carried;
  std::vector<std::int64_t> twice{1, 2, 1}, two{1, 2};
  CHECK_THAT(error_of<Error>([&] { carried.keep(twice, zeros({1, 3, 2})); }), contains("the sequence 1 comes twice"));
  CHECK_THAT(error_of<ShapeError>([&] {
               carried.keep(two, zeros({1, 3, 2}));
             }),
             contains("the states (1, 3, 2) f32 are not (nets, 2, H)"));
  CHECK_THAT(error_of<Error>([&] { carried.keep(two, Tensor()); }), contains("h is an undefined tensor"));
}

TEST_CASE("recurrent layers run in half precision") {
  nn::LSTM layer(3, 4, {.layers = 2, .bidirectional = true, .dtype = bf16});
  nn::LSTM projected(3, 4, {.projection = 2, .layer_norm = true, .dtype = bf16});
  nn::Packed x{randn({5, 3}, {.dtype = bf16}), {3, 2}};
  CHECK(layer(x).output.elements.dtype() == bf16);
  CHECK(layer(x).c_n.dtype() == bf16);
  CHECK(projected(x).h_n.dtype() == bf16);
}

TEST_CASE("recurrent layers take low precision within an autocast scope, and hold their state in f32") {
  manual_seed(11);
  nn::LSTM plain(3, 4, {.layers = 2, .bidirectional = true}), other(3, 4, {.projection = 2, .layer_norm = true});
  nn::GRU gru(3, 4);
  Tensor x = randn({5, 2, 3});
  Tensor expected = plain(x).output, also = other(x).output;
  auto scope = autocast(bf16);
  LSTMOutput result = plain(to(x, bf16), {randn({4, 2, 4}), randn({4, 2, 4}, {.dtype = bf16})});
  CHECK(result.output.dtype() == f32);
  CHECK(result.c_n.dtype() == f32);
  CHECK(max(abs(plain(x).output - expected)).item() < 0.02);
  CHECK(max(abs(other(to(x, bf16)).output - also)).item() < 0.1);
  CHECK(gru(nn::Packed{randn({5, 3}, {.dtype = bf16}), {2, 3}}).output.elements.dtype() == f32);
}

TEST_CASE("hooks see what goes into a recurrent layer and what comes out") {
  nn::LSTM layer(2, 3);
  std::vector<Shape> seen;
  auto before = layer.before_forward([&](std::span<Tensor> tensors) { seen.push_back(tensors[0].shape()); });
  auto after = layer.after_forward([&](std::span<Tensor> tensors) {
    for (const Tensor& tensor : tensors) seen.push_back(tensor.shape());
  });
  layer(nn::Packed{ones({3, 2}), {1, 2}});
  CHECK(seen == std::vector<Shape>{{3, 2}, {3, 3}, {1, 2, 3}, {1, 2, 3}});
  // Three steps are computed, and none for padding.
  CHECK(layer.last_flops() == 2 * 3 * (2 * 12 + 3 * 12));
  seen.clear();
  layer(ones({4, 1, 2}));
  CHECK(seen == std::vector<Shape>{{4, 1, 2}, {4, 1, 3}, {1, 1, 3}, {1, 1, 3}});
}

TEST_CASE("no operation is spent on padding") {
  for (std::int64_t layers : {1, 2}) {
    nn::LSTM lstm(2, 3, {.layers = layers, .bidirectional = true}),
        projected(2, 3, {.layers = layers, .projection = 2});
    nn::GRU gru(2, 3, {.layers = layers});
    std::vector<std::int64_t> lengths{1, 0, 50, 2};
    auto check = [&](const auto& layer) {
      layer(nn::Packed{ones({53, 2}), lengths});
      double packed = layer.last_flops();
      layer(ones({50, 4, 2}), {}, tensor(lengths));
      CHECK(layer.last_flops() == packed);
      layer(ones({53, 1, 2}));
      CHECK(layer.last_flops() == packed);
    };
    check(lstm);
    check(gru);
    check(projected);
  }
}

TEST_CASE("recurrent layers name the caller's line and what does not fit") {
  nn::LSTM layer(2, 3);
  int line = __LINE__ + 1;
  CHECK(error_of<ShapeError>([&] {
          layer(ones({4, 1, 5}));
        }) == "LSTM: the input (4, 1, 5) f32 is not (T, B, 2); at " + to_string(Location{__FILE__, line}));
  line = __LINE__ + 1;
  CHECK(error_of<ShapeError>([&] {
          layer(nn::Packed{ones({4, 5}), {4}});
        }) == "LSTM: the elements (4, 5) f32 are not (N, 2); at " + to_string(Location{__FILE__, line}));
  CHECK_THAT(error_of<ShapeError>([&] { layer(nn::Packed{ones({4, 2}), {3}}); }), contains("LSTM: elements (4, 2)"));
  CHECK_THAT(error_of<Error>([&] { layer(Tensor()); }), contains("LSTM: an operand is an undefined tensor"));
  CHECK_THAT(error_of<ShapeError>([&] { layer(ones({4, 1, 2}), {zeros({1, 2, 3}), {}}); }), contains("h (1, 2, 3)"));
  CHECK_THAT(error_of<ShapeError>([&] { layer(ones({4, 1, 2}), {{}, zeros({2, 1, 3})}); }), contains("c (2, 1, 3)"));
  CHECK_THAT(error_of<DTypeError>([&] { layer(ones({4, 1, 2}, {.dtype = f64})); }), contains("LSTM: W_h"));
  CHECK_THAT(error_of<IndexError>([&] {
               layer(ones({4, 1, 2}), {}, tensor<std::int64_t>({5}));
             }),
             contains("LSTM: the length 5 is not in [0, 4]"));
  CHECK_THAT(error_of<ShapeError>([] { nn::LSTM(2, 3, {.layers = 0}); }), contains("there cannot be 0 layers"));
  CHECK_THAT(error_of<Error>([] { nn::GRU(2, 3, {.dropout = 1.5}); }), contains("GRU: the dropout 1.5"));
  CHECK_THAT(error_of<ShapeError>([] { nn::RNN(2, 0); }), contains("not input 2, hidden 0"));
  CHECK_THAT(error_of<ShapeError>([] { nn::LSTM(2, 3, {.projection = 3}); }), contains("a projection to 3"));
  nn::GRUCell cell(2, 3);
  CHECK_THAT(error_of<ShapeError>([&] {
               cell(ones({4, 2}), ones({3, 3}));
             }),
             contains("GRUCell: takes x (B, 2) with h (B, 3), not (4, 2) with (3, 3)"));
  CHECK_THAT(error_of<ShapeError>([] { nn::RNNCell(2, 3)(ones({4, 2}), Tensor()); }), contains("with undefined"));
}

TEST_CASE("LSTM layers name the input as it was given, whatever its steps run through") {
  for (const nn::LSTM& layer :
       {nn::LSTM(2, 4), nn::LSTM(2, 4, {.projection = 3}), nn::LSTM(2, 4, {.layer_norm = true})}) {
    Tensor x = ones({3, 2, 2});
    CHECK_THAT(error_of<ShapeError>([&] {
                 layer(x, {zeros({1, 5, 4}), {}});
               }),
               contains("h (1, 5, 4)") && contains("(3, 2, 2)"));
    CHECK_THAT(error_of<DTypeError>([&] {
                 layer(x, {{}, zeros({1, 2, 4}, {.dtype = f64})});
               }),
               contains("c (1, 2, 4) f64"));
    CHECK_THAT(error_of<DTypeError>([&] { layer(to(x, i64)); }), contains("(3, 2, 2) i64"));
    CHECK_THAT(error_of<DTypeError>([&] { layer(to(x, f64)); }),
               contains("LSTM: W_h") && contains("input's dtype f64"));
    CHECK_THAT(error_of<DTypeError>([&] {
                 layer(nn::Packed{ones({5, 2}, {.dtype = f64}), {2, 3}});
               }),
               contains("LSTM: W_h") && contains("input's dtype f64"));
  }
}

TEST_CASE("a minibatch whose sequences all have length 0 gives parameters a gradient of zeros") {
  auto check = [](const nn::Module& layer, auto loss_of) {
    Tape tape;
    tape.backward(loss_of());
    for (const NamedTensor& parameter : layer.named_parameters()) {
      INFO(parameter.name);
      REQUIRE(parameter.tensor.grad().defined());
      CHECK(count_nonzero(parameter.tensor.grad()).item<std::int64_t>() == 0);
    }
  };
  Tensor padded = draw({4, 2, 3}), none = tensor({0, 0}), no_steps = draw({0, 2, 3});
  nn::Packed packed{draw({0, 3}), {0, 0}};
  for (nn::LSTMOptions options : {nn::LSTMOptions{.dtype = f64},
                                  {.layers = 2, .bidirectional = true, .dtype = f64},
                                  {.projection = 2, .dtype = f64}}) {
    nn::LSTM layer(3, 5, options);
    check(layer, [&] { return sum(layer(padded, {}, none).output); });
    check(layer, [&] { return sum(layer(packed).output.elements); });
    check(layer, [&] { return sum(layer(packed).h_n); });
    check(layer, [&] { return sum(layer(no_steps).c_n); });
  }
  nn::GRU gru(3, 5, {.dtype = f64});
  check(gru, [&] { return sum(gru(padded, {}, none).h_n); });
  nn::RNN rnn(3, 5, {.dtype = f64});
  check(rnn, [&] { return sum(rnn(packed).output.elements); });
  nn::CRF crf(3, {.dtype = f64});
  check(crf, [&] { return sum(crf(packed, tensor(std::vector<std::int64_t>{}))); });
  Tensor x = draw({0, 2, 3}), W_x = draw({3, 20}), W_h = draw({5, 20}), h = draw({1, 2, 5});
  Tape tape;
  for (const Tensor& source : {x, W_x, W_h, h}) tape.watch(source);
  std::vector<RecurrentWeights> weights{{W_x, W_h}};
  LSTMOutput output = lstm(x, {h, {}}, weights);
  std::vector<Tensor> gradients = tape.gradient(sum(output.output) + sum(output.h_n), {x, W_x, W_h, h});
  CHECK(gradients[0].shape() == x.shape());
  CHECK(count_nonzero(gradients[1]).item<std::int64_t>() == 0);
  CHECK(count_nonzero(gradients[2]).item<std::int64_t>() == 0);
  CHECK(sum(gradients[3]).item() == 10);
}
