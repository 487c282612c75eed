#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include <reel/reel.h>
#include <reel/testing.h>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

Tensor drawn(const Shape& shape, std::uint64_t seed) {
  Generator generator(seed);
  return randn(shape, {.generator = &generator});
}

double largest_difference(const Tensor& a, const Tensor& b) { return max(abs(to(a, f64) - to(b, f64))).item(); }

/// Counts how often each op runs in f.
std::map<std::string, int> ops_of(const std::function<void()>& f) {
  std::map<std::string, int> counts;
  debug::Listen listen([&](const debug::OpEvent& event) { ++counts[event.op]; });
  f();
  return counts;
}

}  // namespace

TEST_CASE("products within an autocast scope run in its dtype, whatever their operands have") {
  DType low = GENERATE(bf16, f16);
  Tensor a = drawn({5, 7}, 1), b = drawn({7, 3}, 2), c = drawn({3}, 3);
  Tensor image = drawn({2, 3, 6, 6}, 4), filters = drawn({4, 3, 3, 3}, 5), heads = drawn({2, 4, 8}, 6);
  auto scope = autocast(low);
  CHECK(matmul(a, b).dtype() == low);
  CHECK(matmul(to(a, low), b).dtype() == low);
  CHECK(matmul(a, select(b, 1, 0)).dtype() == low);
  CHECK(addmm(c, a, b).dtype() == low);
  CHECK(bmm(heads, transpose(heads, 1, 2)).dtype() == low);
  CHECK(einsum("ij,jk->ik", {a, b}).dtype() == low);
  CHECK(conv2d(image, filters).dtype() == low);
  CHECK(conv2d(image, filters, drawn({4}, 7)).dtype() == low);
  CHECK(conv2d(to(image, low), filters, drawn({4}, 7)).dtype() == low);
  CHECK(conv_transposed2d(image, drawn({3, 4, 3, 3}, 8)).dtype() == low);
  CHECK(scaled_dot_product_attention(heads, to(heads, low), heads).dtype() == low);
  CHECK(largest_difference(matmul(a, b), matmul(to(a, low), to(b, low))) == 0);
  CHECK(matmul(to(a, f64), to(b, f64)).dtype() == f64);
}

TEST_CASE("nothing is cast for a product with an operand of f64 within an autocast scope") {
  Tensor a = drawn({5, 7}, 1), b = to(drawn({7, 3}, 2), f64), c = drawn({3}, 3);
  Tensor batch = drawn({2, 5, 7}, 4), batch_b = to(drawn({2, 7, 3}, 5), f64);
  auto products = [&] {
    return std::vector<Tensor>{
        matmul(a, b),   matmul(a, select(b, 1, 0)),       matmul(batch, b),    matmul(transpose(b), transpose(a)),
        addmm(c, a, b), addmm(to(c, f64), a, to(b, f32)), bmm(batch, batch_b), einsum("ij,jk->ik", {a, b})};
  };
  std::vector<Tensor> exact = products();
  auto scope = autocast(bf16);
  std::vector<Tensor> found = products();
  for (std::size_t i = 0; i < exact.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i].dtype() == f64);
    CHECK(largest_difference(found[i], exact[i]) == 0);
  }
}

TEST_CASE("sums, losses, norms and what grows fast run in f32 within an autocast scope") {
  Tensor x = to(drawn({4, 6}, 1), bf16), positive = abs(x) + 0.25, target = drawn({4, 6}, 2);
  Tensor weight = full({6}, 1), classes = tensor<std::int64_t>({0, 5, 2, 1});
  auto scope = autocast(bf16);
  for (const Tensor& y : {exp(x),
                          expm1(x),
                          log(positive),
                          log1p(positive),
                          log2(positive),
                          sinh(x),
                          cosh(x),
                          tan(x),
                          pow(positive, 2.5),
                          reciprocal(positive),
                          1 / positive,
                          2 / positive,
                          div(1, positive),
                          xlogy(positive, positive),
                          exp2(x),
                          log10(positive),
                          logit(sigmoid(x)),
                          logit(sigmoid(x), {.epsilon = 1e-3}),
                          logsigmoid(x),
                          nn::masked_mean(x, ones({4, 6}, {.dtype = boolean}), 1),
                          nn::masked_mean(nn::Packed{x, {1, 3}}),
                          nn::NoisyTopKGate(6, 3, {.noisy = false, .dtype = bf16})(x).balance_loss,
                          logcumsumexp(x, 1),
                          sparsemax(x),
                          normalize(x),
                          normalize(zeros({0, 3}, {.dtype = bf16})),
                          local_response_norm(reshape(positive, {1, 4, 6}), 3),
                          instance_norm(reshape(x, {1, 4, 6})),
                          cosine_similarity(x, x, {.axis = 1}),
                          pairwise_distance(x, x),
                          cdist(x, x),
                          distributions::Gamma(positive, positive).log_prob(positive),
                          distributions::Bernoulli({.logits = x}).log_prob(1),
                          rsqrt(positive),
                          softplus(x),
                          logaddexp(x, x),
                          sum(x),
                          sum(x, {1}),
                          mean(x),
                          mean(x, {0}),
                          prod(x),
                          cumsum(x, 1),
                          cumprod(x, 1),
                          norm(x),
                          logsumexp(x),
                          var(x),
                          reel::std(x),
                          softmax(x),
                          log_softmax(x),
                          layer_norm(x, {6}),
                          layer_norm(x, {6}, weight, to(weight, bf16)),
                          rms_norm(x, {6}),
                          group_norm(x, 2),
                          cross_entropy(x, classes),
                          nll_loss(x, classes),
                          mse_loss(x, target),
                          mse_loss(target, x),
                          l1_loss(x, target),
                          huber_loss(x, to(target, f16)),
                          binary_cross_entropy_with_logits(x, sigmoid(target)),
                          kl_div(x, target, {.log_target = true})})
    CHECK(y.dtype() == f32);
  Tensor wide = to(x, f32);
  CHECK(largest_difference(exp(x), exp(wide)) == 0);
  CHECK(largest_difference(mean(x), mean(wide)) == 0);
  CHECK(largest_difference(mse_loss(x, target), mse_loss(wide, target)) == 0);
  CHECK(softmax(to(x, f64)).dtype() == f64);
  CHECK((1 / to(positive, f64)).dtype() == f64);
  CHECK(largest_difference(1 / positive, 1 / to(positive, f32)) == 0);
  CHECK(largest_difference(normalize(x), normalize(wide)) == 0);
  CHECK(largest_difference(xlogy(x, positive), xlogy(wide, to(positive, f32))) == 0);
}

TEST_CASE("functions that autocast runs in f32 keep halves outside of a scope, with gradients of their dtype") {
  Tensor x = to(drawn({1, 4, 6}, 1), bf16), positive = abs(x) + 0.25;
  using F = std::function<Tensor(const Tensor&)>;
  for (const F& f : {F([](auto& x) { return 1 / x; }), F([](auto& x) { return xlogy(x, x); }),
                     F([](auto& x) { return normalize(x); }), F([](auto& x) { return local_response_norm(x, 3); })}) {
    Tape tape({.persistent = true});
    tape.watch(positive);
    Tensor plain = f(positive), cast;
    CHECK(plain.dtype() == bf16);
    {
      auto scope = autocast(bf16);
      cast = f(positive);
    }
    CHECK(cast.dtype() == f32);
    CHECK(largest_difference(to(cast, bf16), plain) == 0);
    Tensor first = tape.gradient(sum(plain), positive), second = tape.gradient(sum(cast), positive);
    CHECK(first.dtype() == bf16);
    CHECK(second.dtype() == bf16);
    CHECK(testing::all_close(to(first, f32), to(second, f32), {.relative = 0.02, .absolute = 0.02}));
  }
}

TEST_CASE("other ops keep to promotion within an autocast scope") {
  Tensor x = to(drawn({4}, 1), bf16), y = drawn({4}, 2);
  auto scope = autocast(bf16);
  CHECK(relu(x).dtype() == bf16);
  CHECK(tanh(x).dtype() == bf16);
  CHECK((x * x).dtype() == bf16);
  CHECK((x + y).dtype() == f32);
  CHECK((y * y).dtype() == f32);
  CHECK(max(x).dtype() == bf16);
}

TEST_CASE("recurrent cells and layers hold their state in f32 within an autocast scope") {
  nn::LSTMCell cell(3, 4);
  Tensor x = drawn({2, 3}, 1);
  nn::LSTMState exact = cell(x, cell.initial_state(2));
  auto scope = autocast(bf16);
  nn::LSTMState state = cell(to(x, bf16), cell.initial_state(2));
  CHECK(state.h.dtype() == f32);
  CHECK(state.c.dtype() == f32);
  CHECK(largest_difference(state.h, exact.h) < 0.02);
  state = cell(x, {to(state.h, bf16), state.c});
  CHECK(state.c.dtype() == f32);
  CHECK(lstm_cell(to(x, bf16), state, cell.weights()).h.dtype() == f32);
  RecurrentWeights weights[] = {cell.weights()};
  CHECK(lstm(to(drawn({5, 2, 3}, 2), bf16), {}, weights).output.dtype() == f32);
}

TEST_CASE("recurrent layers multiply in f32 within an autocast scope, but for projections and layer norms") {
  Tensor x = drawn({5, 2, 3}, 1);
  auto change = [&](auto layers) {
    Tensor exact = layers(x).output;
    auto scope = autocast(bf16);
    Tensor found = layers(x).output;
    CHECK(found.dtype() == f32);
    return largest_difference(found, exact);
  };
  CHECK(change(nn::LSTM(3, 4)) == 0);
  CHECK(change(nn::GRU(3, 4, {.layers = 2, .bidirectional = true})) == 0);
  CHECK(change(nn::RNN(3, 4)) == 0);
  CHECK(change(nn::LSTM(3, 4, {.projection = 2})) > 0);
  CHECK(change(nn::LSTM(3, 4, {.layer_norm = true})) > 0);
}

TEST_CASE("the gradients of parameters used within an autocast scope are f32 and near the exact ones") {
  DType low = GENERATE(bf16, f16);
  nn::Linear first(6, 16), second(16, 3);
  Tensor x = drawn({8, 6}, 1), classes = tensor<std::int64_t>({0, 1, 2, 0, 1, 2, 0, 1});
  auto gradients = [&](DType dtype) {
    std::vector<Tensor> found;
    Tape tape;
    Tensor loss;
    {
      auto scope = autocast(dtype);
      loss = cross_entropy(second(tanh(first(x))), classes);
      CHECK(loss.dtype() == f32);
    }
    return tape.gradient(loss, std::vector<Tensor>{first.weight, first.bias, second.weight, second.bias});
  };
  std::vector<Tensor> exact = gradients(f32), found = gradients(low);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    CHECK(found[i].dtype() == f32);
    CHECK(largest_difference(found[i], exact[i]) > 0);
    // A bf16 product has a relative error of 2⁻⁸; three follow each other.
    CHECK(largest_difference(found[i], exact[i]) < 0.02);
  }
}

TEST_CASE("a backward gives the same within an autocast scope and after it") {
  nn::Linear layer(4, 4);
  Tensor x = drawn({3, 4}, 1);
  auto gradient = [&](bool within) {
    Tape tape;
    Tensor loss;
    if (within) {
      auto cast = autocast(bf16);
      loss = mean(square(layer(x)));
      return tape.gradient(loss, layer.weight);
    }
    {
      auto cast = autocast(bf16);
      loss = mean(square(layer(x)));
    }
    return tape.gradient(loss, layer.weight);
  };
  CHECK(largest_difference(gradient(true), gradient(false)) == 0);
}

TEST_CASE("a parameter is cast once within an autocast scope, until it changes") {
  Tensor w = drawn({4, 4}, 1).requires_grad(), x = to(drawn({2, 4}, 2), bf16);
  auto scope = autocast(bf16);
  auto run = [&] {
    for (int i = 0; i < 5; ++i) matmul(x, w);
  };
  CHECK(ops_of(run)["to"] == 1);
  CHECK(ops_of(run)["to"] == 0);
  fill_(w, 2);
  CHECK(ops_of(run)["to"] == 1);
  CHECK(matmul(ones({1, 4}), w).to_vector<BFloat16>() == std::vector<BFloat16>(4, BFloat16(8)));
}

TEST_CASE("a parameter's cast is made anew for a tape that has not recorded it") {
  Tensor w = drawn({4, 4}, 1).requires_grad(), x = drawn({2, 4}, 2);
  auto scope = autocast(bf16);
  matmul(x, w);
  Tensor first;
  for (int step = 0; step < 3; ++step) {
    Tape tape;
    Tensor gradient = tape.gradient(sum(matmul(x, w)), w);
    if (step == 0) first = gradient;
    CHECK(largest_difference(gradient, first) == 0);
    matmul(x, w);
  }
  Tape tape;
  for (int step = 0; step < 3; ++step) CHECK(largest_difference(tape.gradient(sum(matmul(x, w)), w), first) == 0);
  {
    NoRecord pause;
    fill_(w, 1);
    matmul(x, w);
  }
  CHECK(largest_difference(tape.gradient(sum(matmul(x, w)), w), first) == 0);
}

TEST_CASE("a weight that is used at many steps within an autocast scope gets the sum of its gradients") {
  Tensor w = drawn({8, 8}, 1).requires_grad(), x = drawn({1, 8}, 2);
  auto gradient = [&](DType dtype) {
    auto scope = autocast(dtype);
    Tape tape;
    Tensor h = x;
    for (int step = 0; step < 60; ++step) h = tanh(matmul(h, w) * 0.3);
    return tape.gradient(sum(h * h), w);
  };
  CHECK(largest_difference(gradient(bf16), gradient(f32)) < 0.05 * max(abs(gradient(f32))).item() + 1e-3);
}

TEST_CASE("a checkpoint runs again in the dtypes that it ran in") {
  Tensor w = drawn({4, 4}, 1).requires_grad(), x = drawn({3, 4}, 2).requires_grad();
  auto block = [&](const Tensor& h) { return tanh(matmul(tanh(matmul(h, w)), w)); };
  auto gradients = [&](bool checkpointed) {
    Tape tape;
    Tensor loss;
    {
      auto scope = autocast(bf16);
      matmul(x, w);
      Tensor h = checkpointed ? checkpoint(block, x) : block(x);
      CHECK(h.dtype() == bf16);
      loss = sum(checkpointed ? checkpoint(block, h) : block(h));
    }
    return tape.gradient(loss, std::vector<Tensor>{w, x});
  };
  std::vector<Tensor> plain = gradients(false), again = gradients(true);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(again[i].dtype() == f32);
    // Two runs' sums of bf16 may be added in another order.
    CHECK(largest_difference(plain[i], again[i]) <= 0.02 * max(abs(plain[i])).item());
  }
}

TEST_CASE("second derivatives pass an autocast scope") {
  Tensor w = drawn({4, 4}, 1).requires_grad(), x = drawn({3, 4}, 2);
  auto second = [&](DType dtype) {
    auto scope = autocast(dtype);
    Tape outer;
    Tensor slope;
    {
      Tape inner;
      slope = inner.gradient(sum(square(tanh(matmul(x, w)))), w);
    }
    return outer.gradient(sum(square(slope)), w);
  };
  Tensor exact = second(f32);
  CHECK(largest_difference(second(bf16), exact) < 0.05 * max(abs(exact)).item());
}

TEST_CASE("a custom gradient within an autocast scope may have a dtype that the promotion of its parts gives") {
  Tensor w = drawn({4, 4}, 1).requires_grad(), x = drawn({3, 4}, 2).requires_grad();
  auto multiply = [](const Tensor& x, const Tensor& w) {
    return custom_gradient([](const Tensor& x, const Tensor& w) { return matmul(x, w); },
                           [](const Tensor& dy, const Tensor& x, const Tensor& w) {
                             return std::array<Tensor, 2>{matmul(dy, transpose(w)), matmul(transpose(x), dy)};
                           },
                           x, w);
  };
  auto gradients = [&](auto multiply, DType low, bool within) {
    Tape tape;
    std::optional<AutocastScope> scope(std::in_place, low, Location::here());
    Tensor y = sum(square(multiply(tanh(multiply(x, w)), w)));
    if (!within) scope.reset();
    auto [of_x, of_w] = tape.gradient(y, x, w);
    CHECK(of_x.dtype() == f32);
    CHECK(of_w.dtype() == f32);
    return std::pair(of_x, of_w);
  };
  auto ordinary = [](const Tensor& x, const Tensor& w) { return matmul(x, w); };
  auto [exact_x, exact_w] = gradients(ordinary, f32, true);
  for (bool within : {true, false}) {
    auto [of_x, of_w] = gradients(multiply, bf16, within);
    CHECK(largest_difference(of_x, exact_x) < 0.05 * max(abs(exact_x)).item());
    CHECK(largest_difference(of_w, exact_w) < 0.05 * max(abs(exact_w)).item());
  }
  // Outside of a scope it is an error.
  Tape tape;
  Tensor y = custom_gradient([](const Tensor& x) { return to(x, bf16); }, [](const Tensor& dy) { return dy; }, x);
  CHECK_THROWS_AS(tape.gradient(sum(to(y, f32)), x), DTypeError);
}

TEST_CASE("layers run within an autocast scope, near what they give outside, with gradients in f32") {
  DType low = GENERATE(bf16, f16);
  manual_seed(3);
  Tensor x = drawn({6, 3, 8}, 1), image = drawn({2, 4, 6, 6}, 2);
  auto check = [&](nn::Module& module, const std::function<Tensor()>& forward) {
    Tensor exact = forward();
    Tape tape;
    Tensor y;
    {
      auto scope = autocast(low);
      y = forward();
    }
    for (const Tensor& gradient : tape.gradient(sum(to(y, f32)), module.parameters())) CHECK(gradient.dtype() == f32);
    NoRecord pause;
    CHECK(largest_difference(y, exact) <= 0x1p-6 * max(abs(exact)).item());
  };
  nn::Linear linear(8, 8);
  check(linear, [&] { return linear(linear(x)); });
  nn::LSTM lstm(8, 8, {.layers = 2, .bidirectional = true});
  check(lstm, [&] { return lstm(x, {}, tensor<std::int64_t>({6, 2, 4})).output; });
  nn::LSTM normal(8, 8, {.projection = 4, .layer_norm = true});
  check(normal, [&] { return normal(linear(x)).output; });
  nn::GRU gru(8, 8);
  check(gru, [&] { return gru(linear(x)).output; });
  nn::GRUCell cell(8, 8);
  check(cell, [&] { return cell(x(0), cell(linear(x(1)), cell.initial_state(3))); });
  nn::TransformerEncoderLayer encoder(8, 2, {.feed_forward = 16, .dropout = 0});
  check(encoder, [&] { return encoder(x); });
  struct Convolutional : nn::Module {
    nn::Parameter w{*this, "w", {4, 4, 3, 3}, nn::normal()}, scale{*this, "scale", {4}, nn::constant(1)},
        shift{*this, "shift", {4}, nn::constant(0)};
  } net;
  check(net, [&] {
    Tensor mean = zeros({4}), variance = ones({4});
    Tensor y =
        batch_norm(conv2d(image, net.w, {.padding = 1}), net.scale, net.shift, mean, variance, {.training = true});
    return conv_transposed2d(max_pool2d(relu(y), 2), net.w, net.shift);
  });
}

TEST_CASE("autocast scopes nest, and f32 switches an outer one off") {
  Tensor a = drawn({2, 2}, 1);
  CHECK(matmul(a, a).dtype() == f32);
  {
    auto outer = autocast(bf16);
    CHECK(matmul(a, a).dtype() == bf16);
    {
      auto inner = autocast(f16);
      CHECK(matmul(a, a).dtype() == f16);
      auto off = autocast(f32);
      CHECK(matmul(a, a).dtype() == f32);
    }
    CHECK(matmul(a, a).dtype() == bf16);
  }
  CHECK(matmul(a, a).dtype() == f32);
}

TEST_CASE("an autocast scope takes floating dtypes of at most 32 bits") {
  CHECK_THAT(error_of<DTypeError>([] { auto scope = autocast(f64); }), contains("autocast: takes bf16 or f16"));
  CHECK_THAT(error_of<DTypeError>([] { auto scope = autocast(i64); }), contains("autocast_test.cpp:"));
}
