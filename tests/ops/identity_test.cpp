#include <reel/reel.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "catch.h"
#include "ops/table/table.h"

// Functions at arguments at which they change nothing: the result is nevertheless a new tensor. Whether it shares
// x's elements depends on the function alone, never on the arguments.

namespace reel_test {

using namespace reel;

namespace {

enum class Elements : std::uint8_t { viewed, own };

struct Identity {
  std::string name;
  std::function<Tensor(const Tensor&)> f;
  Elements elements;
  Shape shape = {2, 3};
  DType dtype = f64;
};

const Tensor rows_in_order = arange(2);

struct Unchanged {
  static constexpr const char* name = "unchanged";
  Tensor forward(const Tensor& x) const { return x; }
  Tensor gradient(const Tensor& dy) const { return dy; }
};

template <class Layer>
Tensor evaluated(Layer layer, const Tensor& x) {
  layer.eval();
  return layer(x);
}

std::vector<Identity> views() {
  constexpr auto viewed = Elements::viewed;
  return {
      {"reshape",
       [](auto& x) {
         return reshape(x, {2, 3});
       },
       viewed},
      {"view",
       [](auto& x) {
         return view(x, {2, 3});
       },
       viewed},
      {"flatten", [](auto& x) { return flatten(x, 1, 1); }, viewed},
      {"transpose", [](auto& x) { return transpose(x, 0, 0); }, viewed},
      {"permute",
       [](auto& x) {
         return permute(x, {0, 1});
       },
       viewed},
      {"expand",
       [](auto& x) {
         return expand(x, {2, 3});
       },
       viewed},
      {"expand with sizes kept",
       [](auto& x) {
         return expand(x, {-1, -1});
       },
       viewed},
      {"unsqueeze", [](auto& x) { return unsqueeze(x, Shape{}); }, viewed},
      {"squeeze", [](auto& x) { return squeeze(x); }, viewed},
      {"squeeze of no axes", [](auto& x) { return squeeze(x, Shape{}); }, viewed},
      {"slice", [](auto& x) { return slice(x, 0, 0); }, viewed},
      {"split", [](auto& x) { return split(x, 2)[0]; }, viewed},
      {"split by sizes", [](auto& x) { return split(x, std::vector<std::int64_t>{2})[0]; }, viewed},
      {"chunk", [](auto& x) { return chunk(x, 1)[0]; }, viewed},
      {"flip", [](auto& x) { return flip(x, Shape{}); }, viewed},
      {"diag", [](auto& x) { return diag(x); }, viewed, {1, 1}},
      {"index", [](auto& x) { return Tensor(x(ellipsis)); }, viewed},
      {"contiguous", [](auto& x) { return contiguous(x); }, viewed},
      {"einsum", [](auto& x) { return einsum("ij->ij", {x}); }, viewed},
      {"einsum without an output", [](auto& x) { return einsum("...", {x}); }, viewed},
      {"einsum of a vector", [](auto& x) { return einsum("i->i", {x}); }, viewed, {3}},
      {"stop_gradient", [](auto& x) { return stop_gradient(x); }, viewed},
      {"truncate", [](auto& x) { return truncate(x); }, viewed},
      {"checkpoint", [](auto& x) { return checkpoint([](const Tensor& x) { return x; }, x); }, viewed},
      {"custom_gradient",
       [](auto& x) {
         return custom_gradient([](const Tensor& x) { return x; }, [](const Tensor& dy) { return dy; }, x);
       },
       viewed},
      {"apply", [](auto& x) { return apply(Unchanged{}, x); }, viewed},
  };
}

std::vector<Identity> copies() {
  constexpr auto own = Elements::own;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return {
      {"to a dtype", [](auto& x) { return to(x, f64); }, own},
      {"to a dtype, f32", [](auto& x) { return to(x, f32); }, own, {2, 3}, f32},
      {"to a device", [](auto& x) { return to(x, cpu); }, own},
      {"copy", [](auto& x) { return copy(x); }, own},
      {"sum_to",
       [](auto& x) {
         return sum_to(x, {2, 3});
       },
       own},
      {"sum", [](auto& x) { return sum(x, Shape{}); }, own},
      {"sum of a number", [](auto& x) { return sum(x); }, own, {}},
      {"mean", [](auto& x) { return mean(x, Shape{}); }, own},
      {"prod", [](auto& x) { return prod(x, Shape{}); }, own},
      {"max", [](auto& x) { return max(x, Shape{}); }, own},
      {"min", [](auto& x) { return min(x, Shape{}); }, own},
      {"median", [](auto& x) { return median(x, Shape{}); }, own},
      {"logsumexp", [](auto& x) { return logsumexp(x, Shape{}); }, own},
      {"norm", [](auto& x) { return norm(x, Shape{}); }, own},
      {"einsum to a sum",
       [](auto& x) {
         return einsum("ij,j->ij", {x, ones({3}, {.dtype = f64})});
       },
       own},
      {"cumsum", [](auto& x) { return cumsum(x, 0); }, own, {1, 3}},
      {"concat", [](auto& x) { return concat({x}); }, own},
      {"pad",
       [](auto& x) {
         return pad(x, {{0, 0}});
       },
       own},
      {"pad by edges",
       [](auto& x) {
         return pad(x, {{0, 0}}, {.mode = PadMode::edge});
       },
       own},
      {"pad by reflection",
       [](auto& x) {
         return pad(x, {{0, 0}}, {.mode = PadMode::reflect});
       },
       own},
      {"tile",
       [](auto& x) {
         return tile(x, {1, 1});
       },
       own},
      {"tile of no axes", [](auto& x) { return tile(x, {}); }, own},
      {"repeat", [](auto& x) { return repeat(x, 1, 0); }, own},
      {"repeat by counts",
       [](auto& x) {
         return repeat(x, std::vector<std::int64_t>{1, 1}, 0);
       },
       own},
      {"roll", [](auto& x) { return roll(x, 0, 0); }, own},
      {"roll around", [](auto& x) { return roll(x, 2, 0); }, own},
      {"tril", [](auto& x) { return tril(x, 9); }, own},
      {"triu", [](auto& x) { return triu(x, -9); }, own},
      {"clamp", [](auto& x) { return clamp(x, -infinity); }, own},
      {"maximum", [](auto& x) { return maximum(x, x); }, own},
      {"lerp", [](auto& x) { return lerp(x, x, 0.5); }, own},
      {"where", [](auto& x) { return where(x == x, x, x); }, own},
      {"masked_fill",
       [](auto& x) {
         return masked_fill(x, tensor({false, false, false}), 1);
       },
       own},
      {"masked_select",
       [](auto& x) {
         return masked_select(x, tensor({true, true}));
       },
       own,
       {2}},
      {"index_select", [](auto& x) { return index_select(x, 0, rows_in_order); }, own},
      {"take", [](auto& x) { return take(x, rows_in_order, 0); }, own},
      {"gather",
       [](auto& x) {
         return gather(x, 0, zeros({1, 3}, {.dtype = i64}));
       },
       own,
       {1, 3}},
      {"scatter",
       [](auto& x) {
         return scatter(x, 0, zeros({0, 3}, {.dtype = i64}), 1);
       },
       own},
      {"index_add",
       [](auto& x) {
         return index_add(x, 0, zeros({0}, {.dtype = i64}), zeros({0, 3}, {.dtype = f64}));
       },
       own},
      {"index_put", [](auto& x) { return index_put(x, {zeros({0}, {.dtype = i64})}, 1); }, own},
      {"segment_sum", [](auto& x) { return segment_sum(x, rows_in_order, 2); }, own},
      {"embedding", [](auto& x) { return embedding(x, rows_in_order); }, own},
      {"sort", [](auto& x) { return sort(x).values; }, own, {2, 1}},
      {"topk", [](auto& x) { return topk(x, 1).values; }, own, {2, 1}},
      {"floor", [](auto& x) { return floor(x); }, own, {2, 3}, i64},
      {"round", [](auto& x) { return round(x); }, own, {2, 3}, i64},
      {"abs", [](auto& x) { return abs(x); }, own},
      {"add", [](auto& x) { return x + 0; }, own},
      {"mul", [](auto& x) { return x * 1; }, own},
      {"pow", [](auto& x) { return pow(x, 1); }, own},
      {"addmm",
       [](auto& x) {
         Tensor nothing = zeros({2, 3}, {.dtype = f64});
         return addmm(x, zeros({2, 0}, {.dtype = f64}), zeros({0, 3}, {.dtype = f64}), {.alpha = 0});
       },
       own},
      {"leaky_relu", [](auto& x) { return leaky_relu(x, {.slope = 1}); }, own},
      {"hardtanh", [](auto& x) { return hardtanh(x, {.low = -9, .high = 9}); }, own},
      {"mse_loss of each", [](auto& x) { return mse_loss(x, x * 0, {.reduction = LossReduction::none}); }, own},
      {"interpolate", [](auto& x) { return interpolate(x, {.scale = 1}); }, own, {1, 2, 3}},
      {"avg_pool", [](auto& x) { return avg_pool1d(x, 1); }, own, {1, 2, 3}},
      {"max_pool", [](auto& x) { return max_pool1d(x, 1); }, own, {1, 2, 3}},
      {"adaptive_avg_pool", [](auto& x) { return adaptive_avg_pool1d(x, 3); }, own, {1, 2, 3}},
      {"unfold", [](auto& x) { return unfold(x, 1); }, own, {1, 1, 2, 3}},
      {"fold",
       [](auto& x) {
         return fold(x, {2, 3}, 1);
       },
       own,
       {1, 1, 6}},
      {"pixel_shuffle", [](auto& x) { return pixel_shuffle(x, 1); }, own, {2, 3, 4}},
      {"pixel_unshuffle", [](auto& x) { return pixel_unshuffle(x, 1); }, own, {2, 3, 4}},
      {"nan_to_num", [](auto& x) { return nan_to_num(x); }, own},
      {"dropout2d", [](auto& x) { return dropout2d(x, {.probability = 0}); }, own, {2, 3, 4}},
      {"dropout", [](auto& x) { return dropout(x, {.probability = 0}); }, own},
      {"variational_dropout", [](auto& x) { return variational_dropout(x, {.probability = 0}); }, own},
      {"alpha_dropout", [](auto& x) { return alpha_dropout(x, {.probability = 0}); }, own},
      {"Dropout", [](auto& x) { return evaluated(nn::Dropout(), x); }, own},
      {"Dropout2d", [](auto& x) { return evaluated(nn::Dropout2d(), x); }, own},
      {"AlphaDropout", [](auto& x) { return evaluated(nn::AlphaDropout(), x); }, own},
      {"VariationalDropout", [](auto& x) { return evaluated(nn::VariationalDropout(), x); }, own},
      {"an empty Sequential", [](auto& x) { return nn::Sequential()(x); }, own},
      {"a Sequential of nothing but Dropout",
       [](auto& x) {
         nn::Sequential net{nn::Dropout()};
         net.eval();
         return net(x);
       },
       own},
      {"a Sequential of a function that changes nothing",
       [](auto& x) { return nn::Sequential([](const Tensor& x) { return x; })(x); }, own},
  };
}

std::vector<Identity> identities() {
  std::vector<Identity> all = views();
  for (Identity& identity : copies()) all.push_back(std::move(identity));
  return all;
}

// Numbers that every function takes and rounds to themselves.
Tensor operand(const Identity& identity) { return reshape(arange(1, identity.shape.numel() + 1), identity.shape); }

}  // namespace

TEST_CASE("a function that changes nothing returns another tensor than its operand, in and out of a tape") {
  for (const Identity& identity : identities()) {
    CAPTURE(identity.name);
    Tensor x = to(operand(identity), identity.dtype);
    CHECK_FALSE(identity.f(x).is(x));
    Tape tape;
    if (is_floating(x.dtype())) tape.watch(x);
    CHECK_FALSE(identity.f(x).is(x));
    NoRecord pause;
    CHECK_FALSE(identity.f(x).is(x));
  }
}

// With y = x a constant, d(x y) / dx = y; were y tracked, it would be 2 x.
TEST_CASE("what a function that changes nothing returns under NoRecord is a constant") {
  for (const Identity& identity : identities()) {
    if (!is_floating(identity.dtype)) continue;
    CAPTURE(identity.name);
    for (bool is_parameter : {false, true}) {
      Tensor x = to(operand(identity), identity.dtype), y;
      if (is_parameter) x.requires_grad();
      Tape tape;
      tape.watch(x);
      {
        NoRecord pause;
        y = identity.f(x);
      }
      REQUIRE(y.numel() == x.numel());
      Tensor gradient = tape.gradient(sum(reshape(x, {-1}) * reshape(y, {-1})), x);
      CHECK(same_bits(reshape(gradient, {-1}), reshape(y, {-1})));
    }
  }
}

TEST_CASE("an in-place op on the result changes the operand if the function is a view, and only then") {
  for (const Identity& identity : identities()) {
    CAPTURE(identity.name);
    Tensor x = to(operand(identity), identity.dtype), before = copy(x);
    Tensor y = identity.f(x);
    y += 1;
    CHECK(same_bits(x, identity.elements == Elements::viewed ? before + 1 : before));
  }
}

TEST_CASE("a tracked operand whose elements a view has overwritten is refused, and the view has the gradient") {
  Tensor w = tensor({1., 2.}).requires_grad();
  for (auto view_of : {+[](const Tensor& x) { return expand(x, {2}); }, +[](const Tensor& x) { return contiguous(x); },
                       +[](const Tensor& x) { return einsum("i->i", {x}); }}) {
    Tape tape;
    Tensor h = w * 2.0, y = view_of(h);
    y += 1;
    CHECK_THROWS_AS(h * 1.0, TapeError);
    CHECK(tape.gradient(sum(y * y), w).to_vector<double>() == std::vector<double>{12, 20});
  }
}

}  // namespace reel_test
