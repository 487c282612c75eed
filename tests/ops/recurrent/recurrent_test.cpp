#include <reel/reel.h>

#include <algorithm>
#include <cmath>

#include "catch.h"
#include "ops/bad_input.h"
#include "ops/gradient_orders.h"
#include "thread_scope.h"

// Recurrent cells and layers against compositions of plain ops, and at extreme values.

namespace reel_test {

using namespace reel;

namespace {

constexpr std::uint64_t seed = 31;

// The equations of the header in plain ops.

LSTMState plain_lstm_cell(const Tensor& x, const LSTMState& state, const RecurrentWeights& w) {
  std::vector<Tensor> a = split(matmul(x, w.W_x) + matmul(state.h, w.W_h) + w.bias, state.h.size(1), 1);
  Tensor c = sigmoid(a[1]) * state.c + sigmoid(a[0]) * tanh(a[2]);
  return {sigmoid(a[3]) * tanh(c), c};
}

LSTMState plain_tree_cell(const Tensor& arguments, std::span<const Tensor> before) {
  std::vector<Tensor> a = split(arguments, arguments.size(1) / (3 + std::ssize(before)), 1);
  Tensor c = sigmoid(a[0]) * tanh(a[2]);
  for (std::size_t k = 0; k < before.size(); ++k) c = c + sigmoid(a[3 + k]) * before[k];
  return {sigmoid(a[1]) * tanh(c), c};
}

Tensor plain_gru_cell(const Tensor& x, const Tensor& h, const RecurrentWeights& w) {
  std::int64_t size = h.size(1);
  std::vector<Tensor> p = split(matmul(x, w.W_x), size, 1), q = split(matmul(h, w.W_h), size, 1),
                      b = split(w.bias, size);
  Tensor r = sigmoid(p[0] + q[0] + b[0]), z = sigmoid(p[1] + q[1] + b[1]);
  Tensor n = tanh(p[2] + b[2] + r * (q[2] + b[3]));
  return (1 - z) * n + z * h;
}

Tensor plain_rnn_cell(const Tensor& x, const Tensor& h, const RecurrentWeights& w, RNNActivation activation) {
  Tensor a = matmul(x, w.W_x) + matmul(h, w.W_h) + w.bias;
  return activation == RNNActivation::tanh ? tanh(a) : relu(a);
}

Tensor draw(const Shape& shape) { return randn(shape, {.dtype = f64}); }

Tensor both_of(const LSTMState& state) { return concat({state.h, state.c}, 1); }

RecurrentWeights weights_at(std::span<const Tensor> x, std::size_t first) {
  return {x[first], x[first + 1], x[first + 2]};
}

}  // namespace

TEST_CASE("fused cells equal their equations in plain ops, to first and second order") {
  CAPTURE(seed);
  manual_seed(seed);
  for (std::int64_t size : {1, 3, 20}) {
    CAPTURE(size);
    std::vector<Tensor> states{draw({4, 2}), draw({4, size}), draw({4, size})};
    auto with_weights = [&](std::size_t state_count, std::int64_t gates, std::int64_t biases) {
      std::vector<Tensor> all(states.begin(), states.begin() + static_cast<std::ptrdiff_t>(state_count));
      all.insert(all.end(), {draw({2, gates * size}), draw({size, gates * size}), draw({biases * size})});
      return all;
    };
    check_orders(
        [](auto x) {
          return both_of(lstm_cell(x[0], {x[1], x[2]}, weights_at(x, 3)));
        },
        [](auto x) {
          return both_of(plain_lstm_cell(x[0], {x[1], x[2]}, weights_at(x, 3)));
        },
        with_weights(3, 4, 4));
    check_orders([](auto x) { return gru_cell(x[0], x[1], weights_at(x, 2)); },
                 [](auto x) { return plain_gru_cell(x[0], x[1], weights_at(x, 2)); }, with_weights(2, 3, 4));
    for (RNNActivation activation : {RNNActivation::tanh, RNNActivation::relu})
      check_orders([=](auto x) { return rnn_cell(x[0], x[1], weights_at(x, 2), activation); },
                   [=](auto x) { return plain_rnn_cell(x[0], x[1], weights_at(x, 2), activation); },
                   with_weights(2, 1, 1));
  }
}

TEST_CASE("a gradient that flows to only one output of lstm_cell is the whole gradient") {
  manual_seed(seed);
  std::vector<Tensor> x{draw({2, 12}), draw({2, 12}), draw({2, 3})};
  for (bool memory : {false, true}) {
    auto fused = [=](std::span<const Tensor> in) {
      LSTMState state = lstm_cell(in[0], in[1], in[2]);
      return memory ? state.c : state.h;
    };
    auto plain = [=](std::span<const Tensor> in) {
      std::vector<Tensor> a = split(in[0] + in[1], 3, 1);
      Tensor c = sigmoid(a[1]) * in[2] + sigmoid(a[0]) * tanh(a[2]);
      return memory ? c : sigmoid(a[3]) * tanh(c);
    };
    // The gate of the other output has no gradient.
    check_orders(fused, plain, x);
  }
}

TEST_CASE("a node of a tree with any number of children equals its equations, whichever of its outputs is used") {
  manual_seed(seed);
  for (std::int64_t children : {0, 1, 2, 3, 6, 7}) {
    CAPTURE(children);
    std::vector<Tensor> x{draw({3, (3 + children) * 5})};
    for (std::int64_t k = 0; k < children; ++k) x.push_back(draw({3, 5}));
    for (auto output :
         {+[](const LSTMState& state) { return both_of(state); }, +[](const LSTMState& state) { return state.h; },
          +[](const LSTMState& state) { return state.c; }})
      check_orders([=](auto in) { return output(tree_lstm_cell(in[0], in.subspan(1))); },
                   [=](auto in) { return output(plain_tree_cell(in[0], in.subspan(1))); }, x);
  }
  // A child that two nodes share, and only some of the inputs differentiated.
  Tensor a = draw({1, 10}), b = draw({1, 8});
  check_orders(
      [=](auto in) {
        return tree_lstm_cell(a, {in[0], tree_lstm_cell(b, {in[0]}).c}).h;
      },
      [=](auto in) {
        Tensor below = plain_tree_cell(b, std::vector{in[0]}).c;
        return plain_tree_cell(a, std::vector{in[0], below}).h;
      },
      {draw({1, 2})});
}

TEST_CASE("gates saturate at large arguments, and NaN stays where it is") {
  constexpr double large = 1e30;
  for (DType dtype : {f32, f64, bf16}) {
    // i f g o: open, open, −1, shut; then shut, shut, 1, open; then NaN in o.
    Tensor p = to(
        tensor({{large, large, -large, -large}, {-large, -large, large, large}, {0.0, 0.0, 0.0, double(NAN)}}), dtype);
    Tensor c = to(tensor({{2.0}, {2.0}, {2.0}}), dtype);
    Tape tape;
    tape.watch(p);
    LSTMState state = lstm_cell(p, zeros_like(p), c);
    std::vector<double> h = array_of(state.h).values, memory = array_of(state.c).values;
    CHECK(memory == std::vector<double>{1, 0, 1});
    CHECK(h[0] == 0);
    CHECK(h[1] == 0);
    CHECK(std::isnan(h[2]));
    std::vector<double> gradient = array_of(tape.gradient(sum(slice(state.h, 0, 0, 2)), p)).values;
    for (std::size_t i = 0; i < 8; ++i) CHECK(gradient[i] == 0);
  }
}

namespace {

// The padded loop: every step of every example, and the state kept where there is none.
Tensor padded_lstm(const Tensor& x, LSTMState state, const RecurrentWeights& w, const Tensor& lengths) {
  std::vector<Tensor> outputs;
  for (std::int64_t t = 0; t < x.size(0); ++t) {
    Tensor done = unsqueeze(t >= lengths, 1);
    LSTMState next = plain_lstm_cell(select(x, 0, t), state, w);
    state = {where(done, state.h, next.h), where(done, state.c, next.c)};
    outputs.push_back(where(done, 0.0, next.h));
  }
  return concat({flatten(stack(outputs)), flatten(state.h), flatten(state.c)});
}

Tensor padded_gru(const Tensor& x, Tensor h, const RecurrentWeights& w, const Tensor& lengths) {
  std::vector<Tensor> outputs;
  for (std::int64_t t = 0; t < x.size(0); ++t) {
    Tensor done = unsqueeze(t >= lengths, 1), next = plain_gru_cell(select(x, 0, t), h, w);
    h = where(done, h, next);
    outputs.push_back(where(done, 0.0, next));
  }
  return concat({flatten(stack(outputs)), flatten(h)});
}

// Concatenates the outputs of a layer into a vector.
Tensor flat(const LSTMOutput& y) { return concat({flatten(y.output), flatten(y.h_n), flatten(y.c_n)}); }
Tensor flat(const RecurrentOutput& y) { return concat({flatten(y.output), flatten(y.h_n)}); }

// The steps of each example in reverse order.
Tensor reversed(const Tensor& x, const std::vector<std::int64_t>& lengths) {
  std::vector<Tensor> examples;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    Tensor own = select(x, 1, static_cast<std::int64_t>(b));
    examples.push_back(concat({flip(slice(own, 0, 0, lengths[b]), {0}), slice(own, 0, lengths[b])}));
  }
  return stack(examples, 1);
}

}  // namespace

TEST_CASE("a ragged layer equals the padded, masked loop, to first and second order") {
  CAPTURE(seed);
  manual_seed(seed);
  const std::vector<std::vector<std::int64_t>> ragged{{3, 5, 0, 1}, {5, 5, 5, 5}, {0, 0, 2, 0}};
  for (const std::vector<std::int64_t>& counts : ragged) {
    Tensor lengths = tensor(counts);
    std::vector<Tensor> x{draw({5, 4, 2}), draw({1, 4, 3}), draw({1, 4, 3}), draw({2, 12}), draw({3, 12}), draw({12})};
    check_orders(
        [=](auto in) {
          return flat(lstm(in[0], {in[1], in[2]}, weights_at(in, 3), {.lengths = lengths}));
        },
        [=](auto in) {
          return padded_lstm(in[0], {select(in[1], 0, 0), select(in[2], 0, 0)}, weights_at(in, 3), lengths);
        },
        x);
    std::vector<Tensor> y{x[0], x[1], draw({2, 9}), draw({3, 9}), draw({12})};
    check_orders([=](auto in) { return flat(gru(in[0], in[1], weights_at(in, 2), {.lengths = lengths})); },
                 [=](auto in) { return padded_gru(in[0], select(in[1], 0, 0), weights_at(in, 2), lengths); }, y);
  }
}

TEST_CASE("lengths of 1 to 200 in any order give what the padded loop gives, and its gradients") {
  manual_seed(seed);
  std::vector<std::int64_t> counts;
  for (std::int64_t i = 0; i < 200; ++i) counts.push_back(i * 77 % 200 + 1);
  Tensor lengths = tensor(counts);
  std::vector<Tensor> x{draw({200, 200, 2}), draw({1, 200, 4}),   draw({1, 200, 4}),
                        draw({2, 16}) * 0.5, draw({4, 16}) * 0.5, draw({16})};
  Function packed = [=](auto in) { return flat(lstm(in[0], {in[1], in[2]}, weights_at(in, 3), {.lengths = lengths})); };
  Function padded = [=](auto in) {
    return padded_lstm(in[0], {select(in[1], 0, 0), select(in[2], 0, 0)}, weights_at(in, 3), lengths);
  };
  CHECK(apart({packed(x)}, {padded(x)}) < 1e-12);
  CHECK(apart(first_order(packed, x), first_order(padded, x)) < 1e-9);
}

TEST_CASE("layers of more units than a block of a product equal the padded loop") {
  manual_seed(seed);
  Tensor lengths = tensor({std::int64_t{2}, std::int64_t{3}, std::int64_t{1}});
  std::vector<Tensor> x{draw({3, 3, 5}),        draw({1, 3, 530}),        draw({1, 3, 530}),
                        draw({5, 2120}) * 0.05, draw({530, 2120}) * 0.05, draw({2120})};
  Function packed = [=](auto in) { return flat(lstm(in[0], {in[1], in[2]}, weights_at(in, 3), {.lengths = lengths})); };
  Function padded = [=](auto in) {
    return padded_lstm(in[0], {select(in[1], 0, 0), select(in[2], 0, 0)}, weights_at(in, 3), lengths);
  };
  CHECK(apart({packed(x)}, {padded(x)}) < 1e-13);
  CHECK(apart(first_order(packed, x), first_order(padded, x)) < 1e-12);
}

TEST_CASE("a layer so large that threads share its steps gives the same bits with any number of them") {
  manual_seed(seed);
  // 2 × 2²⁴ multiplications a step and more.
  Tensor lengths = randint(1, 4, {60});
  std::vector<Tensor> x{randn({3, 60, 7}), randn({7, 1500}) * 0.1, randn({500, 1500}) * 0.1, randn({2000})};
  auto results = [&](int threads) {
    Threads scope(threads);
    Function layer = [&](auto in) { return flat(gru(in[0], {}, weights_at(in, 1), {.lengths = lengths})); };
    std::vector<Tensor> all = first_order(layer, x);
    all.push_back(layer(x));
    return all;
  };
  std::vector<Tensor> alone = results(1);
  for (int threads : {2, 3}) {
    std::vector<Tensor> together = results(threads);
    for (std::size_t i = 0; i < alone.size(); ++i) CHECK(same_bits(alone[i], together[i]));
  }
}

TEST_CASE("the net that runs back starts at each example's last step") {
  manual_seed(seed);
  const std::vector<std::int64_t> counts{2, 4, 1, 0};
  Tensor x = draw({4, 4, 2}), lengths = tensor(counts), h = draw({2, 4, 3});
  RecurrentWeights forth{draw({2, 9}), draw({3, 9}), draw({12})}, back{draw({2, 9}), draw({3, 9}), draw({12})};
  RecurrentOutput both = gru(x, h, std::vector{forth, back}, {.lengths = lengths, .bidirectional = true});
  RecurrentOutput there = gru(x, slice(h, 0, 0, 1), forth, {.lengths = lengths});
  RecurrentOutput returned = gru(reversed(x, counts), slice(h, 0, 1, 2), back, {.lengths = to(lengths, i32)});
  CHECK(apart({slice(both.output, 2, 0, 3)}, {there.output}) == 0);
  CHECK(apart({slice(both.output, 2, 3, 6)}, {reversed(returned.output, counts)}) < 1e-14);
  CHECK(apart({both.h_n}, {concat({there.h_n, returned.h_n})}) < 1e-14);
  CHECK(apart({select(select(both.h_n, 0, 0), 0, 3)}, {select(select(h, 0, 0), 0, 3)}) == 0);
}

TEST_CASE("layers feed each other, whatever is behind the steps of an example") {
  manual_seed(seed);
  Tensor x = draw({3, 2, 2}), lengths = tensor({std::int64_t{2}, std::int64_t{3}});
  RecurrentWeights first{draw({2, 4}), draw({4, 4}), draw({4})}, second{draw({4, 4}), draw({4, 4})};
  RecurrentOutput both =
      rnn(x, {}, std::vector{first, second}, {.lengths = lengths, .activation = RNNActivation::relu});
  RecurrentOutput below = rnn(x, {}, first, {.lengths = lengths, .activation = RNNActivation::relu});
  RecurrentOutput above = rnn(below.output, {}, second, {.lengths = lengths, .activation = RNNActivation::relu});
  CHECK(apart({both.output}, {above.output}) < 1e-14);
  CHECK(apart({both.h_n}, {concat({below.h_n, above.h_n})}) < 1e-14);
  // Padding has no effect.
  Tensor poisoned = where(unsqueeze(unsqueeze(arange(3), 1) >= lengths, 2), double(NAN), x);
  CHECK(
      same_bits(rnn(poisoned, {}, first, {.lengths = lengths}).output, rnn(x, {}, first, {.lengths = lengths}).output));
}

TEST_CASE("an input of a layer that is computed from another has its own gradient alone") {
  manual_seed(seed);
  // h depends on x, and the weights on h, on the outer tape only.
  auto chain = [](auto run) {
    return [=](std::span<const Tensor> in) {
      Tensor h = unsqueeze(tanh(matmul(select(in[0], 0, 0), in[1])), 0);
      return run(in[0], h, RecurrentWeights{in[1], in[2] * sum(h), in[3]});
    };
  };
  std::vector<Tensor> x{draw({3, 2, 2}), draw({2, 3}), draw({3, 3}), draw({3})};
  check_orders(chain([](const Tensor& x, const Tensor& h, const RecurrentWeights& w) { return rnn(x, h, w).output; }),
               chain([](const Tensor& x, const Tensor& h, const RecurrentWeights& w) {
                 std::vector<Tensor> outputs;
                 Tensor carried = select(h, 0, 0);
                 for (std::int64_t t = 0; t < x.size(0); ++t)
                   outputs.push_back(carried = plain_rnn_cell(select(x, 0, t), carried, w, RNNActivation::tanh));
                 return stack(outputs);
               }),
               x);
}

TEST_CASE("layers name what does not fit") {
  Tensor x = ones({3, 2, 5}), h = zeros({1, 2, 4});
  RecurrentWeights w{ones({5, 16}), ones({4, 16})}, g{ones({5, 12}), ones({4, 12})}, r{ones({5, 4}), ones({4, 4})};
  RecurrentWeights next{ones({4, 16}), ones({4, 16})}, narrow{ones({4, 8}), ones({2, 8})};
  Tensor lengths = tensor({std::int64_t{1}, std::int64_t{4}});
  all_fail<ShapeError>({
      Bad("lstm: the input (2, 5) f32 is not (T, B, I)",
          [&] {
            lstm(ones({2, 5}), {}, w);
          }),
      Bad("lstm: 0 weights do not make layers of 1", [&] { lstm(x, {}, std::span<const RecurrentWeights>()); }),
      Bad("lstm: 1 weights do not make layers of 2", [&] { lstm(x, {}, w, {.bidirectional = true}); }),
      Bad("lstm: W_x (5, 16) f32 is not (4, 16), which goes with the input (3, 2, 5)",
          [&] {
            lstm(x, {}, std::vector{w, w});
          }),
      Bad("lstm: W_h (2, 8) of net 1 and (4, 16) of net 0 have different hidden sizes",
          [&] {
            lstm(x, {}, std::vector{w, narrow});
          }),
      Bad("lstm: h (1, 2, 4) f32 is not (2, 2, 4)",
          [&] {
            lstm(x, {h, {}}, std::vector{w, next});
          }),
      Bad("lstm: c (2, 4) f32 is not (1, 2, 4)",
          [&] {
            lstm(x, {h, zeros({2, 4})}, w);
          }),
      Bad("lstm: lengths (3,) i64 are not (2,), one for each example of x (3, 2, 5)",
          [&] { lstm(x, {}, w, {.lengths = arange(3)}); }),
      Bad("gru: W_h (4, 16) f32 is not (H, 3 H)", [&] { gru(x, {}, w); }),
      Bad("rnn: W_h (4, 12) f32 is not (H, H)", [&] { rnn(x, {}, g); }),
  });
  all_fail<IndexError>({
      Bad("lstm: the length 4 is not in [0, 3], the steps of x (3, 2, 5)",
          [&] { lstm(x, {}, w, {.lengths = lengths}); }),
      Bad("gru: the length -1 is not in [0, 3]", [&] { gru(x, {}, g, {.lengths = lengths - 2}); }),
  });
  all_fail<DTypeError>({
      Bad("lstm: lengths are i32 or i64, not (2,) f32", [&] { lstm(x, {}, w, {.lengths = to(lengths, f32)}); }),
      Bad("gru: takes a floating tensor, not (3, 2, 5) i64", [&] { gru(to(x, i64), {}, g); }),
      Bad("rnn: h (1, 2, 4) f64 is not of the input's dtype f32", [&] { rnn(x, to(h, f64), r); }),
  });
  all_fail<Error>({Bad("lstm: W_h is an undefined tensor", [&] { lstm(x, {}, RecurrentWeights{}); })});
}

TEST_CASE("cells name what does not fit") {
  Tensor x = ones({2, 3}), h = ones({2, 4}), W_x = ones({3, 16}), W_h = ones({4, 16}), none;
  Tensor G_x = ones({3, 12}), G_h = ones({4, 12}), R_x = ones({3, 4}), R_h = ones({4, 4});
  all_fail<ShapeError>({
      Bad("lstm_cell: the input (3,) f32 is not (B, I)",
          [&] {
            lstm_cell(ones({3}), {h, h}, {W_x, W_h});
          }),
      Bad("lstm_cell: W_h (4, 12) f32 is not (H, 4 H)",
          [&] {
            lstm_cell(x, {h, h}, {W_x, G_h});
          }),
      Bad("lstm_cell: W_h (4,) f32 is not (H, 4 H)",
          [&] {
            lstm_cell(x, {h, h}, {W_x, ones({4})});
          }),
      Bad("lstm_cell: W_h (0, 0) f32 is not (H, 4 H) with an H of at least 1",
          [&] {
            lstm_cell(x, {h, h}, {W_x, ones({0, 0})});
          }),
      Bad("lstm_cell: W_x (3, 12) f32 is not (3, 16), which goes with the input (2, 3)",
          [&] {
            lstm_cell(x, {h, h}, {G_x, W_h});
          }),
      Bad("lstm_cell: bias (4,) f32 is not (16,)",
          [&] {
            lstm_cell(x, {h, h}, {W_x, W_h, ones({4})});
          }),
      Bad("lstm_cell: h (1, 4) f32 is not (2, 4)",
          [&] {
            lstm_cell(x, {ones({1, 4}), h}, {W_x, W_h});
          }),
      Bad("lstm_cell: c (2, 3) f32 is not (2, 4)",
          [&] {
            lstm_cell(x, {h, x}, {W_x, W_h});
          }),
      Bad("tree_lstm_cell: a (2, 16) f32 is not (B, 5 H), which goes with 2 children, with an H of at least 1",
          [&] {
            tree_lstm_cell(W_h(slice(0, 2)), {h, h});
          }),
      Bad("tree_lstm_cell: a (2, 0) f32 is not (B, 3 H)",
          [&] {
            tree_lstm_cell(ones({2, 0}));
          }),
      Bad("tree_lstm_cell: a (3,) f32 is not (B, 3 H)", [&] { tree_lstm_cell(ones({3})); }),
      Bad("tree_lstm_cell: c (2, 3) f32 is not (2, 4), which goes with the input (2, 16)",
          [&] { tree_lstm_cell(W_h(slice(0, 2)), {x}); }),
      Bad("tree_lstm_cell: W_h (4, 16) f32 is not (2 H, 5 H), which goes with 2 children, with an H of at least 1",
          [&] {
            tree_lstm_cell(ones({2, 16}), {{h, h}, {h, h}}, W_h);
          }),
      Bad("tree_lstm_cell: p (2, 3) f32 is neither (16) nor (B, 16), which go with W_h (4, 16)",
          [&] {
            tree_lstm_cell(x, {{h, h}}, W_h);
          }),
      Bad("tree_lstm_cell: c (2, 3) f32 is not (2, 4), which goes with the input (2, 16)",
          [&] {
            tree_lstm_cell(ones({2, 16}), {{h, x}}, W_h);
          }),
      Bad("tree_lstm_cell: a node without children has no W_h; leave it out",
          [&] {
            tree_lstm_cell(ones({2, 16}), std::span<const LSTMState>(), W_h);
          }),
      Bad("lstm_cell: p (2, 3) f32 is not (B, 4 H)",
          [&] {
            lstm_cell(x, {h, h}, W_h);
          }),
      Bad("lstm_cell: W_h (4, 12) f32 is not (4, 16), which goes with the input (2, 16)",
          [&] {
            lstm_cell(ones({2, 16}), {h, h}, G_h);
          }),
      Bad("lstm_cell: h (2, 3) f32 is not (2, 4), which goes with the input (2, 16)",
          [&] {
            lstm_cell(ones({2, 16}), {x, h}, W_h);
          }),
      Bad("lstm_cell: p (2, 3) f32 is not (2, 16), which goes with the input (2, 4)", [&] { lstm_cell(x, x, h); }),
      Bad("lstm_cell: c () f32 is not (B, H)", [&] { lstm_cell(x, x, ones({})); }),
      Bad("gru_cell: W_h (4, 16) f32 is not (H, 3 H)",
          [&] {
            gru_cell(x, h, {G_x, W_h});
          }),
      Bad("gru_cell: bias (12,) f32 is not (16,)",
          [&] {
            gru_cell(x, h, {G_x, G_h, ones({12})});
          }),
      Bad("rnn_cell: W_h (4, 16) f32 is not (H, H)",
          [&] {
            rnn_cell(x, h, {R_x, W_h});
          }),
      Bad("rnn_cell: h (2, 3) f32 is not (2, 4)",
          [&] {
            rnn_cell(x, x, {R_x, R_h});
          }),
  });
  all_fail<DTypeError>({
      Bad("lstm_cell: takes a floating tensor, not (2, 3) i32",
          [&] {
            lstm_cell(to(x, i32), {h, h}, {W_x, W_h});
          }),
      Bad("lstm_cell: W_x (3, 16) f64 is not of the input's dtype f32; convert it with to(W_x, f32)",
          [&] {
            lstm_cell(x, {h, h}, {to(W_x, f64), W_h});
          }),
      Bad("gru_cell: h (2, 4) bf16 is not of the input's dtype f32",
          [&] {
            gru_cell(x, to(h, bf16), {G_x, G_h});
          }),
      Bad("rnn_cell: takes a tensor here, not the number 1",
          [&] {
            rnn_cell(x, 1, {R_x, R_h});
          }),
  });
  all_fail<Error>({
      Bad("lstm_cell: c is an undefined tensor",
          [&] {
            lstm_cell(x, {h, none}, {W_x, W_h});
          }),
      Bad("gru_cell: W_h is an undefined tensor",
          [&] {
            gru_cell(x, h, {G_x, none});
          }),
      Bad("rnn_cell: W_x is an undefined tensor",
          [&] {
            rnn_cell(x, h, {none, R_h});
          }),
  });
}

}  // namespace reel_test
