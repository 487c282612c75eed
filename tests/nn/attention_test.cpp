#include <reel/autocast.h>
#include <reel/debug/gradcheck.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>

#include <cmath>
#include <functional>
#include <limits>

#include "catch.h"
#include "nn/checks.h"

using namespace reel;
using namespace reel_test;

namespace {

// The equations, for one head and one example at a time.
Tensor by_hand(const nn::MultiHeadAttention& layer, const Tensor& q, const Tensor& k, const Tensor& v,
               const Tensor& added) {
  std::vector<Tensor> examples;
  std::int64_t size = layer.output.weight.size(0), width = size / layer.heads();
  for (std::int64_t b = 0; b < q.size(0); ++b) {
    Tensor Q = layer.query(select(q, 0, b)), K = layer.key(select(k, 0, b)), V = layer.value(select(v, 0, b));
    std::vector<Tensor> heads;
    for (std::int64_t first = 0; first < size; first += width) {
      auto part = [&](const Tensor& x) { return slice(x, 1, first, first + width); };
      Tensor scores = matmul(part(Q), transpose(part(K))) / std::sqrt(static_cast<double>(width)) +
                      select(select(added, 0, b), 0, first / width);
      heads.push_back(matmul(softmax(scores), part(V)));
    }
    examples.push_back(layer.output(concat(heads, 1)));
  }
  return stack(examples);
}

constexpr double lowest = -std::numeric_limits<double>::infinity();

Tensor as_added(const Tensor& hidden, const Shape& shape) {
  return expand(where(hidden, full({}, lowest, {.dtype = f64}), 0.0), shape);
}

}  // namespace

TEST_CASE("multi-head attention is attention by head, joined") {
  manual_seed(1);
  nn::MultiHeadAttention layer(6, 3, {.key_size = 4, .value_size = 5, .dtype = f64});
  Tensor q = draw({2, 3, 6}), k = draw({2, 4, 4}), v = draw({2, 4, 5});
  check_close(layer(q, k, v), by_hand(layer, q, k, v, zeros({2, 3, 3, 4}, {.dtype = f64})));
  CHECK(layer.named_parameters()[0].name == "query.weight");
  CHECK(layer.parameters().size() == 8);

  SECTION("also of a single example") { check_close(layer(q(1), k(1), v(1)), select(layer(q, k, v), 0, 1)); }
  SECTION("and of a sequence with itself") {
    nn::MultiHeadAttention own(6, 2, {.bias = false, .dtype = f64});
    check_close(own(q), own(q, q, q));
    CHECK(own.parameters().size() == 4);
  }
}

TEST_CASE("masks of multi-head attention leave out what PyTorch's leave out") {
  manual_seed(2);
  nn::MultiHeadAttention layer(4, 2, {.dtype = f64});
  Tensor x = draw({2, 3, 4});
  Shape scores{2, 2, 3, 3};
  Tensor padding = tensor({{false, false, true}, {false, true, true}});
  Tensor hidden = tensor({{false, true, false}, {false, false, true}, {false, false, false}});
  Tensor added = draw({3, 3}), later = arange(3) > unsqueeze(arange(3), 1);
  Tensor by_padding = as_added(reshape(padding, {2, 1, 1, 3}), scores), by_hiding = as_added(hidden, scores);
  auto check = [&](const nn::AttentionMasks& masks, const Tensor& expected) {
    check_close(layer(x, masks), by_hand(layer, x, x, x, expected));
  };
  check({.key_padding_mask = padding}, by_padding);
  check({.attention_mask = hidden}, by_hiding);
  check({.attention_mask = added}, expand(added, scores));
  check({.causal = true}, as_added(later, scores));
  check({.attention_mask = hidden, .key_padding_mask = padding}, by_padding + by_hiding);
  check({.attention_mask = added, .key_padding_mask = padding, .causal = true},
        by_padding + added + as_added(later, scores));
  Tensor by_head = draw({4, 3, 3});
  check({.attention_mask = by_head}, reshape(by_head, scores));
  check({.attention_mask = reshape(by_head, scores)}, reshape(by_head, scores));
  check_close(layer(x(0), {.key_padding_mask = padding(0)}), select(layer(x, {.key_padding_mask = padding}), 0, 0));
}

TEST_CASE("the weights of multi-head attention are those that its values are summed with") {
  manual_seed(15);
  nn::MultiHeadAttention layer(4, 2, {.dtype = f64});
  Tensor x = draw({2, 3, 4}), keys = draw({2, 5, 4});
  nn::AttentionMasks masks{.key_padding_mask = arange(5) >= tensor<std::int64_t>({{4}, {2}})};
  Tensor weights = layer.weights(x, keys, masks);
  CHECK(weights.shape() == Shape{2, 2, 3, 5});
  check_close(sum(weights, -1), ones({2, 2, 3}, {.dtype = f64}));
  Tensor values = transpose(reshape(layer.value(keys), {2, 5, 2, 2}), 1, 2);
  Tensor expected = layer.output(flatten(transpose(matmul(weights, values), 1, 2), 2));
  check_close(layer(x, keys, keys, masks), expected);
  check_close(layer.weights(x(0), keys(0)), select(layer.weights(x, keys), 0, 0));
}

TEST_CASE("a query that sees no key adds nothing but the output's bias") {
  nn::MultiHeadAttention layer(4, 2);
  layer.output.bias = arange(4.0);
  Tensor all = layer(ones({1, 2, 4}), {.key_padding_mask = tensor({{true, true}})});
  CHECK(all.to_vector<float>() == std::vector<float>{0, 1, 2, 3, 0, 1, 2, 3});
}

TEST_CASE("multi-head attention drops weights while it trains") {
  manual_seed(3);
  nn::MultiHeadAttention layer(4, 2, {.dropout = 1});
  CHECK(max(abs(layer(randn({1, 3, 4})))).item() == 0);
  layer.eval();
  CHECK(max(abs(layer(randn({1, 3, 4})))).item() > 0);
}

TEST_CASE("attention runs in low precision within an autocast scope, with masks of f32") {
  manual_seed(14);
  nn::MultiHeadAttention layer(4, 2);
  nn::TransformerEncoderLayer encoder(4, 2, {.feed_forward = 8, .dropout = 0});
  Tensor x = randn({1, 3, 4}), mask = randn({3, 3});
  Tensor expected = layer(x, {.attention_mask = mask}), also = encoder(x);
  auto scope = autocast(bf16);
  Tensor found = layer(x, {.attention_mask = mask});
  CHECK(found.dtype() == bf16);
  CHECK(max(abs(found - expected)).item() < 0.05);
  CHECK(max(abs(encoder(x) - also)).item() < 0.1);
}

TEST_CASE("additive attention weighs keys by v tanh(q W_q + k W_k)") {
  manual_seed(4);
  nn::BahdanauAttention layer(3, 4, 5, {.dtype = f64});
  Tensor q = draw({2, 3}), k = draw({2, 6, 4});
  auto [context, weights] = layer(q, k);
  for (std::int64_t b = 0; b < 2; ++b) {
    Tensor sums = matmul(select(k, 0, b), layer.W_k) + matmul(select(q, 0, b), layer.W_q);
    Tensor expected = softmax(squeeze(matmul(tanh(sums), layer.v), 1));
    check_close(select(weights, 0, b), expected);
    check_close(select(context, 0, b), matmul(expected, select(k, 0, b)));
  }
  // Several queries at once.
  Tensor queries = draw({2, 3, 3});
  nn::Attended all = layer(queries, k);
  check_close(select(all.context, 1, 2), layer(select(queries, 1, 2), k).context);
  check_close(select(all.weights, 1, 0), layer(select(queries, 1, 0), k).weights);
}

TEST_CASE("Luong's attention scores by dot, general and concat") {
  manual_seed(5);
  Tensor q = draw({2, 3}), k = draw({2, 6, 3});
  auto check = [&](const nn::LuongAttention& layer, auto score) {
    auto [context, weights] = layer(q, k);
    for (std::int64_t b = 0; b < 2; ++b) {
      std::vector<Tensor> scores;
      for (std::int64_t s = 0; s < 6; ++s) scores.push_back(score(select(q, 0, b), select(select(k, 0, b), 0, s)));
      Tensor expected = softmax(reshape(stack(scores), {6}));
      check_close(select(weights, 0, b), expected);
      check_close(select(context, 0, b), matmul(expected, select(k, 0, b)));
    }
  };
  check(nn::LuongAttention(3, 3, {.score = nn::LuongScore::dot, .dtype = f64}),
        [](const Tensor& q, const Tensor& k) { return sum(q * k); });
  nn::LuongAttention general(3, 3, {.dtype = f64});
  check(general, [&](const Tensor& q, const Tensor& k) { return sum(matmul(q, general.W) * k); });
  nn::LuongAttention joined(3, 3, {.score = nn::LuongScore::concat, .size = 4, .dtype = f64});
  check(joined, [&](const Tensor& q, const Tensor& k) {
    return matmul(tanh(matmul(concat({q, k}), joined.W)), joined.v);
  });
  CHECK(nn::LuongAttention(3, 3, {.score = nn::LuongScore::dot}).parameters().empty());
}

TEST_CASE("padded keys get no weight, and padding does not matter") {
  manual_seed(6);
  nn::Packed keys{draw({5, 3}), {3, 0, 2}};
  Tensor padding = transpose(!keys.mask()), q = draw({3, 2, 3});
  for (double value : {0.0, 1e6}) {
    Tensor k = transpose(keys.padded({.value = value}), 0, 1);
    for (const nn::LuongScore score : {nn::LuongScore::dot, nn::LuongScore::general, nn::LuongScore::concat}) {
      manual_seed(7);
      nn::LuongAttention layer(3, 3, {.score = score, .dtype = f64});
      auto [context, weights] = layer(q, k, padding);
      CHECK(max(abs(select(context, 0, 1))).item() == 0);
      std::vector<Tensor> sequences = keys.sequences();
      check_close(select(context, 0, 2), squeeze(layer(q(slice(2, 3)), unsqueeze(sequences[2], 0)).context, 0));
    }
    nn::BahdanauAttention layer(3, 3, 4, {.dtype = f64});
    CHECK(max(abs(select(layer(q, k, padding).weights, 0, 1))).item() == 0);
  }
}

TEST_CASE("attention with cached keys and values gives what causal attention over all steps gives") {
  manual_seed(16);
  constexpr std::int64_t steps = 7;
  Tensor x = draw({2, steps, 6}), memory = draw({2, 5, 6});
  nn::MultiHeadAttention heads(6, 3, {.dtype = f64});
  nn::TransformerOptions options{.feed_forward = 8, .dropout = 0, .norm_first = true, .dtype = f64};
  nn::TransformerEncoderLayer encoder(6, 2, options);
  options.norm_first = false;
  nn::TransformerDecoderLayer decoder(6, 3, options);
  nn::AttentionMasks later{.attention_mask = arange(steps) > unsqueeze(arange(steps), 1)};
  struct Layer {
    const char* name;
    std::function<Tensor()> whole;
    std::function<Tensor(const Tensor&, nn::KeyValueCache&)> next;
  };
  for (const Layer& layer :
       {Layer{"MultiHeadAttention", [&] { return heads(x, later); }, [&](auto& x, auto& c) { return heads(x, c); }},
        Layer{"TransformerEncoderLayer", [&] { return encoder(x, later); },
              [&](auto& x, auto& c) { return encoder(x, c); }},
        Layer{"TransformerDecoderLayer", [&] { return decoder(x, memory, later); },
              [&](auto& x, auto& c) { return decoder(x, memory, c); }}}) {
    for (const std::vector<std::int64_t>& lengths :
         {std::vector<std::int64_t>{7}, {1, 1, 1, 1, 1, 1, 1}, {3, 1, 2, 1}}) {
      CAPTURE(layer.name, lengths);
      nn::KeyValueCache cache;
      std::vector<Tensor> shown;
      for (std::int64_t length : lengths) {
        shown.push_back(layer.next(slice(x, 1, cache.length(), cache.length() + length), cache));
        CHECK(cache.keys.shape() == cache.values.shape());
      }
      CHECK(cache.length() == steps);
      check_close(concat(shown, 1), layer.whole());
    }
  }
}

TEST_CASE("gradients of attention agree with differences") {
  manual_seed(8);
  std::vector<Tensor> inputs{draw({2, 2, 4}), draw({2, 3, 4}), draw({2, 3, 4})};
  Tensor padding = tensor({{false, false, true}, {false, false, false}});
  nn::MultiHeadAttention heads(4, 2, {.dtype = f64});
  check_gradients([&](std::span<const Tensor> in) { return heads(in[0], in[1], in[2], {.key_padding_mask = padding}); },
                  inputs);
  nn::BahdanauAttention additive(4, 4, 3, {.dtype = f64});
  nn::LuongAttention general(4, 4, {.dtype = f64});
  for (auto f : {std::function([&](std::span<const Tensor> in) { return additive(in[0], in[1], padding).context; }),
                 std::function([&](std::span<const Tensor> in) { return general(in[0], in[1], padding).context; })})
    check_gradients(f, {inputs[0], inputs[1]});
  auto in_two_parts = [&](std::span<const Tensor> in) {
    nn::KeyValueCache cache;
    Tensor first = heads(in[0], cache);
    return concat({first, heads(in[1], cache)}, 1);
  };
  check_gradients(in_two_parts, {inputs[0], inputs[1]});
}

TEST_CASE("attention names what does not fit") {
  nn::MultiHeadAttention heads(4, 2);
  Tensor x = ones({2, 3, 4});
  int line = __LINE__ + 1;
  CHECK(error_of<ShapeError>([&] {
          heads(x, {.key_padding_mask = tensor({{true, false}})});
        }) == "MultiHeadAttention: the key padding mask (1, 2) bool is not (2, 3) bool; at " +
                  to_string(Location{__FILE__, line}));
  CHECK_THAT(error_of<ShapeError>([&] { heads(x, {.attention_mask = ones({3, 3, 3})}); }), contains("2 heads"));
  CHECK_THAT(error_of<ShapeError>([&] { heads(x, {.attention_mask = ones({2, 2})}); }), contains("(2, 2)"));
  CHECK_THAT(error_of<DTypeError>([&] {
               heads(x, {.attention_mask = ones({3, 3}, {.dtype = f64})});
             }),
             contains("neither bool nor f32"));
  CHECK_THAT(error_of<ShapeError>([&] { heads(x, x(0), x(0)); }), contains("are all (B, length, width), not (3, 4)"));
  CHECK_THAT(error_of<Error>([&] { heads(x, x, Tensor()); }), contains("undefined"));
  CHECK_THAT(error_of<Error>([&] { heads(Tensor()); }), contains("undefined"));
  CHECK_THAT(error_of<ShapeError>([&] { heads(ones({2, 3, 5})); }), contains("does not end in an axis of size 4"));
  nn::KeyValueCache cache;
  heads(x, cache);
  CHECK_THAT(error_of<ShapeError>([&] {
               heads(ones({3, 1, 4}), cache);
             }),
             contains("next steps (3, 1, 4) f32 with 2 heads do not continue those of a cache (2, 2, 3, 2) f32"));
  CHECK_THAT(error_of<ShapeError>([&] { nn::MultiHeadAttention(4, 1)(x, cache); }), contains("with 1 heads"));
  CHECK_THAT(error_of<ShapeError>([&] { heads(x(0), cache); }), contains("takes next steps (B, L, size), not (3, 4)"));
  CHECK_THAT(error_of<Error>([&] { heads(Tensor(), cache); }), contains("undefined"));
  CHECK(cache.length() == 3);
  CHECK_THAT(error_of<ShapeError>([] { nn::MultiHeadAttention(4, 3); }), contains("3 heads do not share out"));
  CHECK_THAT(error_of<ShapeError>([] { nn::MultiHeadAttention(4, 2, {.key_size = -1}); }),
             contains("MultiHeadAttention: the sizes of keys and values, -1 and 0"));
  CHECK_THAT(error_of<ShapeError>([] { nn::MultiHeadAttention(4, 2, {.value_size = -2}); }), contains("0 and -2"));
  CHECK_THAT(error_of<Error>([] { nn::MultiHeadAttention(4, 2, {.dropout = 2}); }), contains("the dropout 2"));
  nn::BahdanauAttention additive(2, 3, 4);
  CHECK_THAT(error_of<ShapeError>([&] {
               additive(ones({2, 2}), ones({3, 5, 3}));
             }),
             contains("BahdanauAttention: takes queries (B, 2) or (B, L, 2) with keys (B, S, 3)"));
  CHECK_THAT(error_of<Error>([&] { additive(ones({2, 2}), Tensor()); }), contains("the keys are an undefined"));
  CHECK_THAT(error_of<ShapeError>([] { nn::BahdanauAttention(2, 0, 4); }), contains("sizes must be positive"));
  CHECK_THAT(error_of<ShapeError>([] { nn::LuongAttention(2, 3, {.score = nn::LuongScore::dot}); }),
             contains("queries of size 2 have no dot product with keys of size 3"));
  CHECK_THAT(error_of<ShapeError>([] { nn::LuongAttention(2, 3, {.score = nn::LuongScore::concat, .size = -1}); }),
             contains("LuongAttention: the size -1 is not 0 or more"));
}

// Transformer

namespace {

Tensor norm_by_hand(const nn::LayerNorm& norm, const Tensor& x) {
  Tensor centred = x - mean(x, -1, {.keepdims = true});
  return centred / sqrt(mean(square(centred), -1, {.keepdims = true}) + 1e-5) * norm.weight + norm.bias;
}

}  // namespace

TEST_CASE("LayerNorm normalises the last axes, with a weight and a bias") {
  manual_seed(9);
  nn::LayerNorm norm({4}, {.dtype = f64});
  norm.weight = draw({4});
  norm.bias = draw({4});
  Tensor x = draw({2, 3, 4});
  check_close(norm(x), norm_by_hand(norm, x));
  nn::LayerNorm plain({3, 4}, {.affine = false});
  CHECK(plain.parameters().empty());
  CHECK(mean(square(plain(randn({2, 3, 4})))).item() == Approx(1).epsilon(1e-4));
  CHECK_THAT(error_of<ShapeError>([] { nn::LayerNorm({0}); }), contains("no sizes of axes"));
  CHECK_THAT(error_of<ShapeError>([&] { norm(draw({2, 5})); }), contains("layer_norm"));
}

TEST_CASE("Transformer layers add attention and feed-forward nets, with norms before or after") {
  manual_seed(10);
  Tensor x = draw({2, 3, 4}), memory = draw({2, 5, 4});
  for (bool first : {false, true}) {
    for (nn::TransformerActivation activation : {nn::TransformerActivation::relu, nn::TransformerActivation::gelu}) {
      nn::TransformerOptions options{
          .feed_forward = 7, .dropout = 0, .activation = activation, .norm_first = first, .dtype = f64};
      auto wide = [&](const Tensor& x) { return activation == nn::TransformerActivation::gelu ? gelu(x) : relu(x); };
      auto add = [&](const Tensor& x, const nn::LayerNorm& norm, auto part) {
        return first ? x + part(norm_by_hand(norm, x)) : norm_by_hand(norm, x + part(x));
      };
      auto feed = [&](const nn::FeedForward& net) {
        return [&](const Tensor& x) { return net.contract(wide(net.expand(x))); };
      };
      nn::TransformerEncoderLayer encoder(4, 2, options);
      nn::AttentionMasks causal{.causal = true};
      auto self = [&](const Tensor& x) { return encoder.attention(x, causal); };
      Tensor expected =
          add(add(x, encoder.attention_norm, self), encoder.feed_forward_norm, feed(encoder.feed_forward));
      check_close(encoder(x, causal), expected);

      nn::TransformerDecoderLayer decoder(4, 2, options);
      Tensor seen = add(x, decoder.attention_norm, [&](const Tensor& x) { return decoder.attention(x, causal); });
      seen =
          add(seen, decoder.memory_norm, [&](const Tensor& x) { return decoder.memory_attention(x, memory, memory); });
      check_close(decoder(x, memory, causal), add(seen, decoder.feed_forward_norm, feed(decoder.feed_forward)));
    }
  }
}

TEST_CASE("what a causal decoder gives does not depend on what comes later, nor a padded encoder on padding") {
  manual_seed(11);
  nn::TransformerOptions options{.feed_forward = 8, .dtype = f64};
  nn::TransformerDecoderLayer decoder(4, 2, options);
  nn::TransformerEncoderLayer encoder(4, 2, options);
  decoder.eval();
  encoder.eval();
  Tensor x = draw({1, 5, 4}), memory = draw({1, 3, 4}), other = concat({slice(x, 1, 0, 2), draw({1, 3, 4})}, 1);
  auto first_two = [](const Tensor& y) { return slice(y, 1, 0, 2); };
  check_close(first_two(decoder(x, memory, {.causal = true})), first_two(decoder(other, memory, {.causal = true})));
  Tensor padding = tensor({{false, false, true, true, true}});
  check_close(first_two(encoder(x, {.key_padding_mask = padding})), encoder(first_two(x)));
  check_close(decoder(x, other, {}, {.key_padding_mask = padding}), decoder(x, first_two(other)));
}

TEST_CASE("Transformer layers drop while they train, and are cloned with all their parts") {
  manual_seed(12);
  nn::TransformerEncoderLayer layer(4, 2, {.feed_forward = 8, .dropout = 0.5});
  Tensor x = randn({2, 3, 4});
  CHECK(max(abs(layer(x) - layer(x))).item() > 0.01);
  layer.eval();
  Tensor y = layer(x);
  CHECK(max(abs(y - layer(x))).item() == 0);
  CHECK(max(abs(y - nn::clone(layer)(x))).item() == 0);
  CHECK(layer.parameter_count() == 4 * (16 + 4) + 2 * 8 + (4 * 8 + 8) + (8 * 4 + 4));
  nn::TransformerEncoderLayer moved = std::move(layer);
  CHECK(moved.parameters().size() == 16);
  CHECK(max(abs(y - moved(x))).item() == 0);
}

TEST_CASE("gradients of Transformer layers agree with differences") {
  manual_seed(13);
  nn::TransformerOptions options{
      .feed_forward = 5, .dropout = 0, .activation = nn::TransformerActivation::gelu, .dtype = f64};
  nn::TransformerEncoderLayer encoder(4, 2, options);
  options.norm_first = true;
  nn::TransformerDecoderLayer decoder(4, 2, options);
  check_gradients([&](std::span<const Tensor> in) { return decoder(in[0], encoder(in[1]), {.causal = true}); },
                  {draw({1, 2, 4}), draw({1, 3, 4})});
}

TEST_CASE("Transformer layers name what does not fit") {
  nn::TransformerEncoderLayer encoder(4, 2, {.feed_forward = 8});
  Tensor x = ones({2, 3, 5});
  int line = __LINE__ + 1;
  std::string text = error_of<ShapeError>([&] { encoder(x); });
  CHECK_THAT(text, contains("does not end in an axis of size 4"));
  CHECK_THAT(text, contains(to_string(Location{__FILE__, line})));
  nn::TransformerDecoderLayer decoder(4, 2, {.feed_forward = 8});
  CHECK_THAT(error_of<Error>([&] { decoder(ones({2, 3, 4}), Tensor()); }), contains("undefined"));
  CHECK_THAT(error_of<ShapeError>([] { nn::TransformerEncoderLayer(4, 3); }), contains("3 heads"));
  CHECK_THAT(error_of<ShapeError>([] { nn::TransformerEncoderLayer(4, 2, {.feed_forward = 0}); }),
             contains("sizes must be positive"));
}
