#include <reel/reel.h>

#include <functional>
#include <string>
#include <vector>

#include "catch.h"
#include "core/threads/divided_loops.h"
#include "cpu/onednn/onednn_product.h"
#include "ops/table/table.h"
#include "thread_scope.h"

// Results of large ops are equal to the bit for every number of threads, whichever kernel runs and however the work is divided.

namespace reel_test {

using namespace reel;

namespace {

constexpr std::uint64_t seed = 1;

using Inputs = std::vector<Tensor>;
// The inputs by which each backward pass computes gradients.
using Sources = std::vector<std::vector<std::size_t>>;

struct Case {
  std::string name;
  Inputs inputs;
  std::function<Tensor(const Inputs&)> run;
  Sources sources;
};

// The results of the forward pass and of each backward pass, and the counts of their loops that were divided.
struct Found {
  std::vector<std::vector<Tensor>> passes;
  std::vector<std::int64_t> divided;
};

Found found_with(int threads, const Case& one) {
  Threads scope(threads);
  Found found;
  auto add = [&](const std::function<std::vector<Tensor>()>& pass) {
    std::int64_t before = detail::parallel::divided_loops();
    found.passes.push_back(pass());
    found.divided.push_back(detail::parallel::divided_loops() - before);
  };
  Tape tape({.persistent = true});
  for (const std::vector<std::size_t>& sources : one.sources)
    for (std::size_t source : sources) tape.watch(one.inputs[source]);
  add([&] { return std::vector<Tensor>{one.run(one.inputs)}; });
  Tensor y = found.passes[0][0], d;
  Generator generator(seed);
  if (!one.sources.empty()) d = to(rand(y.shape(), {.generator = &generator}) * 2 - 1, y.dtype());
  for (const std::vector<std::size_t>& sources : one.sources)
    add([&] {
      Inputs chosen;
      for (std::size_t source : sources) chosen.push_back(one.inputs[source]);
      return tape.gradient(y, chosen, {.seed = d});
    });
  return found;
}

void check_threads(const Case& one) {
  INFO("seed " << seed << ", " << one.name);
  Found alone = found_with(1, one);
  for (int threads : {2, 7}) {
    Found together = found_with(threads, one);
    for (std::size_t pass = 0; pass < alone.passes.size(); ++pass) {
      INFO(threads << " threads, " << (pass == 0 ? "forward" : "backward " + std::to_string(pass)));
      CHECK(alone.divided[pass] == 0);
      CHECK(together.divided[pass] > 0);
      for (std::size_t i = 0; i < alone.passes[pass].size(); ++i)
        CHECK(same_bits(alone.passes[pass][i], together.passes[pass][i]));
    }
  }
}

// Uniform numbers, since normal ones would take most of the time.
Tensor drawn(const Shape& shape, DType dtype = f32) { return to(rand(shape) * 2 - 1, dtype); }

// A view of x with its last two axes exchanged in memory.
Tensor transposed_in_memory(const Tensor& x) { return transpose(contiguous(transpose(x, -2, -1)), -2, -1); }

// Sizes of weights keep the states of all steps away from the ends of tanh.
Tensor weight(const Shape& shape) { return drawn(shape) * 0.05; }

// x, then W_x, W_h and bias of each net.
Inputs recurrent_inputs(std::int64_t batch, std::int64_t units, std::int64_t gates, std::size_t nets) {
  constexpr std::int64_t steps = 3, width = 40;
  std::int64_t biases = gates == 3 ? 4 : gates;  // a GRU has two of its last gate
  Inputs all{drawn({steps, batch, width})};
  for (std::size_t net = 0; net < nets; ++net)
    for (Tensor& one : Inputs{weight({width, gates * units}), weight({units, gates * units}), weight({biases * units})})
      all.push_back(std::move(one));
  return all;
}

}  // namespace

TEST_CASE("products of every dtype and layout have the same bits with 1, 2 and 7 threads") {
  manual_seed(seed);
  struct Sizes {
    const char* name;
    Shape a, b;
    bool back = true;  // with few rows the gradients are products too small to be divided
  };
  // Instructions for bf16 multiply at an eighth of the cost of f32, and threads share products of equal costs.
  const std::vector<Sizes> sizes{{"square", {270, 260}, {260, 270}},
                                 {"few rows", {4, 700}, {700, 900}, false},
                                 {"few columns", {2200, 1000}, {1000, 8}, false},
                                 {"a batch", {6, 120, 190}, {6, 190, 130}},
                                 {"a batch with one right operand", {6, 120, 190}, {190, 130}}},
      sizes_of_bf16{{"square", {520, 520}, {520, 520}},
                    {"few rows", {32, 2050}, {2050, 2070}, false},
                    {"few columns", {2070, 2050}, {2050, 32}, false},
                    {"a batch", {6, 280, 290}, {6, 290, 280}}};
  for (DType dtype : floating_dtypes)
    for (const Sizes& one : dtype == bf16 && detail::can_multiply_bf16() ? sizes_of_bf16 : sizes) {
      Tensor a = drawn(one.a, dtype), b = drawn(one.b, dtype);
      Tensor transposed_a = transposed_in_memory(a), transposed_b = transposed_in_memory(b);
      auto check = [&](const char* layout, const Tensor& left, const Tensor& right, Sources sources) {
        check_threads({one.name + (", " + std::string(name_of(dtype))) + layout,
                       {left, right},
                       [](const Inputs& in) { return matmul(in[0], in[1]); },
                       std::move(sources)});
      };
      check("", a, b, one.back ? Sources{{0}, {1}} : Sources{});
      check(", a transposed", transposed_a, b, {});
      check(", b transposed", a, transposed_b, {});
      check(", both transposed", transposed_a, transposed_b, {});
    }
}

TEST_CASE("convolutions and their gradients have the same bits with 1, 2 and 7 threads") {
  manual_seed(seed);
  std::vector<Case> cases{
      {"1-d",
       {drawn({8, 32, 600}), drawn({48, 32, 5})},
       [](const Inputs& in) { return conv1d(in[0], in[1], {.padding = 2}); },
       {{0}, {1}}},
      {"2-d, strided",
       {drawn({8, 24, 47, 45}), drawn({56, 24, 3, 3})},
       [](const Inputs& in) { return conv2d(in[0], in[1], {.stride = 2, .padding = 1}); },
       {{0}, {1}}},
      {"2-d, short lines, many channels",
       {drawn({6, 96, 7, 7}), drawn({128, 96, 3, 3})},
       [](const Inputs& in) { return conv2d(in[0], in[1], {.padding = 1}); },
       {{0}, {1}}},
      {"2-d, 1 x 1",
       {drawn({8, 64, 28, 28}), drawn({96, 64, 1, 1})},
       [](const Inputs& in) { return conv2d(in[0], in[1]); },
       {{0}, {1}}},
      {"2-d, few channels, large windows",
       {drawn({12, 3, 64, 64}), drawn({40, 3, 7, 7})},
       [](const Inputs& in) { return conv2d(in[0], in[1], {.stride = 2, .padding = 3}); },
       {{0}, {1}}},
      {"2-d, groups",
       {drawn({8, 32, 30, 31}), drawn({48, 8, 3, 3})},
       [](const Inputs& in) { return conv2d(in[0], in[1], {.padding = 1, .groups = 4}); },
       {{0}, {1}}},
      {"2-d, depthwise",
       {drawn({16, 64, 40, 41}), drawn({64, 1, 3, 3})},
       [](const Inputs& in) { return conv2d(in[0], in[1], {.padding = 1, .groups = 64}); },
       {{0}, {1}}},
      {"3-d",
       {drawn({4, 12, 12, 13, 14}), drawn({24, 12, 3, 3, 3})},
       [](const Inputs& in) { return conv3d(in[0], in[1], {.padding = 1}); },
       {{0}, {1}}},
      {"2-d, transposed",
       {drawn({16, 32, 20, 21}), drawn({32, 24, 4, 4})},
       [](const Inputs& in) { return conv_transposed2d(in[0], in[1], {.stride = 2, .padding = 1}); },
       {{0}, {1}}},
      {"1-d, transposed",
       {drawn({16, 32, 300}), drawn({32, 48, 5})},
       [](const Inputs& in) { return conv_transposed1d(in[0], in[1], {.stride = 2}); },
       {{0}, {1}}},
  };
  for (DType dtype : floating_dtypes)
    cases.push_back({std::string("2-d, ") + name_of(dtype),
                     {drawn({8, 32, 30, 31}, dtype), drawn({48, 32, 3, 3}, dtype)},
                     [](const Inputs& in) { return conv2d(in[0], in[1], {.padding = 1}); },
                     {{0}, {1}}});
  for (const Case& one : cases) check_threads(one);
}

TEST_CASE("scans and their gradients have the same bits with 1, 2 and 7 threads") {
  manual_seed(seed);
  for (DType dtype : floating_dtypes)
    for (int axis : {0, 1, 2}) {
      Tensor x = drawn({70, 60, 50}, dtype);
      std::string name = std::string(name_of(dtype)) + ", axis " + std::to_string(axis);
      check_threads({"cumsum, " + name, {x}, [=](const Inputs& in) { return cumsum(in[0], axis); }, {{0}}});
      check_threads({"cumprod, " + name, {x}, [=](const Inputs& in) { return cumprod(in[0], axis); }, {{0}}});
      check_threads({"cummax, " + name, {x}, [=](const Inputs& in) { return cummax(in[0], axis).values; }, {}});
    }
}

TEST_CASE("recurrent layers and their gradients have the same bits with 1, 2 and 7 threads") {
  manual_seed(seed);
  // The products of a step are 2²⁴ multiplications and more.
  constexpr std::int64_t units = 320, lstm_batch = 64, gru_batch = 80, rnn_batch = 200;
  for (bool packed_both_ways : {false, true}) {
    std::size_t nets = packed_both_ways ? 2 : 1;
    auto weights_of = [=](const Inputs& in) {
      std::vector<RecurrentWeights> all;
      for (std::size_t net = 0; net < nets; ++net) all.push_back({in[1 + 3 * net], in[2 + 3 * net], in[3 + 3 * net]});
      return all;
    };
    auto lengths_of = [=](std::int64_t batch) { return packed_both_ways ? randint(1, 4, {batch}) : Tensor(); };
    std::string name = packed_both_ways ? ", packed and bidirectional" : "";
    Tensor few = lengths_of(lstm_batch), more = lengths_of(gru_batch), most = lengths_of(rnn_batch);
    check_threads({"lstm" + name,
                   recurrent_inputs(lstm_batch, units, 4, nets),
                   [=](const Inputs& in) {
                     LSTMOutput out =
                         lstm(in[0], {}, weights_of(in), {.lengths = few, .bidirectional = packed_both_ways});
                     return concat({flatten(out.output), flatten(out.h_n), flatten(out.c_n)});
                   },
                   {{0, 1, 2, 3}}});
    check_threads({"gru" + name,
                   recurrent_inputs(gru_batch, units, 3, nets),
                   [=](const Inputs& in) {
                     RecurrentOutput out =
                         gru(in[0], {}, weights_of(in), {.lengths = more, .bidirectional = packed_both_ways});
                     return concat({flatten(out.output), flatten(out.h_n)});
                   },
                   {{0, 1, 2, 3}}});
    check_threads({"rnn" + name,
                   recurrent_inputs(rnn_batch, units, 1, nets),
                   [=](const Inputs& in) {
                     RecurrentOutput out =
                         rnn(in[0], {}, weights_of(in), {.lengths = most, .bidirectional = packed_both_ways});
                     return concat({flatten(out.output), flatten(out.h_n)});
                   },
                   {{0, 1, 2, 3}}});
  }
}

TEST_CASE("attention and its gradients have the same bits with 1, 2 and 7 threads") {
  manual_seed(seed);
  for (DType dtype : floating_dtypes)
    for (bool causal : {false, true}) {
      if (causal && dtype != f32) continue;
      check_threads(
          {std::string(name_of(dtype)) + (causal ? ", causal" : ""),
           {drawn({2, 3, 250, 48}, dtype), drawn({2, 3, 260, 48}, dtype), drawn({2, 3, 260, 40}, dtype)},
           [=](const Inputs& in) { return scaled_dot_product_attention(in[0], in[1], in[2], {.causal = causal}); },
           {{0, 1, 2}}});
    }
}

}  // namespace reel_test
