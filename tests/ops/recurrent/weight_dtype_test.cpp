#include <cmath>
#include <functional>
#include <optional>

#include "ops/bad_input.h"
#include "ops/recurrent/weight_product.h"
#include "ops/table/table.h"
#include "rounded.h"

#include "catch.h"
#include "thread_scope.h"

// Recurrent nets whose weights are rounded to bf16 or f16 in products. The reference is in f64, of plain ops on weights
// that the test rounds; its gradients by the rounded weights are what the weights' gradients are to be.

namespace reel_test {

using namespace reel;

namespace {

constexpr std::uint64_t seed = 83;

enum class Net : std::uint8_t { lstm, gru, tanh, relu };
constexpr Net nets[] = {Net::lstm, Net::gru, Net::tanh, Net::relu};
std::int64_t gates_of(Net net) { return net == Net::lstm ? 4 : net == Net::gru ? 3 : 1; }

LSTMState plain_step(Net net, const Tensor& x, const LSTMState& state, const RecurrentWeights& w) {
  std::int64_t size = state.h.size(1);
  std::vector<Tensor> p = split(matmul(x, w.W_x), size, 1), q = split(matmul(state.h, w.W_h), size, 1),
                      b = split(w.bias, size);
  auto argument = [&](std::size_t gate) { return p[gate] + q[gate] + b[gate]; };
  if (net == Net::lstm) {
    Tensor c = sigmoid(argument(1)) * state.c + sigmoid(argument(0)) * tanh(argument(2));
    return {sigmoid(argument(3)) * tanh(c), c};
  }
  if (net == Net::gru) {
    Tensor z = sigmoid(argument(1)), n = tanh(p[2] + b[2] + sigmoid(argument(0)) * (q[2] + b[3]));
    return {(1 - z) * n + z * state.h, state.c};
  }
  return {net == Net::tanh ? tanh(argument(0)) : relu(argument(0)), state.c};
}

LSTMState cell_step(Net net, const Tensor& x, const LSTMState& state, const RecurrentWeights& w) {
  if (net == Net::lstm) return lstm_cell(x, state, w);
  if (net == Net::gru) return {gru_cell(x, state.h, w), state.c};
  return {rnn_cell(x, state.h, w, net == Net::tanh ? RNNActivation::tanh : RNNActivation::relu), state.c};
}

// The outputs (T, B, H) and the last states, from x (T, B, I), h, c, W_x, W_h and b.
enum Operand : std::uint8_t { in_x, in_h, in_c, in_W_x, in_W_h, in_bias };
using Run = std::function<std::vector<Tensor>(std::span<const Tensor> in)>;

Run run_steps(Net net, LSTMState (*step)(Net, const Tensor&, const LSTMState&, const RecurrentWeights&),
              std::optional<DType> dtype) {
  return [=](std::span<const Tensor> in) -> std::vector<Tensor> {
    LSTMState state{in[in_h], in[in_c]};
    std::vector<Tensor> outputs;
    for (std::int64_t t = 0; t < in[in_x].size(0); ++t) {
      state = step(net, select(in[in_x], 0, t), state, {in[in_W_x], in[in_W_h], in[in_bias], dtype});
      outputs.push_back(state.h);
    }
    return {stack(outputs), state.h, state.c};
  };
}

Run run_layer(Net net, DType dtype) {
  return [=](std::span<const Tensor> in) -> std::vector<Tensor> {
    RecurrentWeights weights{in[in_W_x], in[in_W_h], in[in_bias], dtype};
    LSTMState state{unsqueeze(in[in_h], 0), unsqueeze(in[in_c], 0)};
    if (net == Net::lstm) {
      LSTMOutput y = lstm(in[in_x], state, weights);
      return {y.output, squeeze(y.h_n, 0), squeeze(y.c_n, 0)};
    }
    RecurrentOutput y = net == Net::gru
                            ? gru(in[in_x], state.h, weights)
                            : rnn(in[in_x], state.h, weights,
                                  {.activation = net == Net::tanh ? RNNActivation::tanh : RNNActivation::relu});
    return {y.output, squeeze(y.h_n, 0), in[in_c]};
  };
}

// Sequences of several lengths in both directions; the operands of the net in reverse follow. The outputs (T, B, 2 H).
Run run_both_ways(Net net, std::vector<std::int64_t> lengths, DType dtype) {
  return [=](std::span<const Tensor> in) -> std::vector<Tensor> {
    std::vector<RecurrentWeights> weights{{in[in_W_x], in[in_W_h], in[in_bias], dtype},
                                          {in[in_bias + 1], in[in_bias + 2], in[in_bias + 3], dtype}};
    Tensor counts = tensor(lengths), h = stack({in[in_h], in[in_h]}), c = stack({in[in_c], in[in_c]});
    RecurrentOptions options{.lengths = counts, .bidirectional = true};
    if (net == Net::lstm) return {lstm(in[in_x], {h, c}, weights, options).output};
    if (net == Net::gru) return {gru(in[in_x], h, weights, options).output};
    RNNActivation activation = net == Net::tanh ? RNNActivation::tanh : RNNActivation::relu;
    return {rnn(in[in_x], h, weights, {.lengths = counts, .bidirectional = true, .activation = activation}).output};
  };
}

// One sequence after the other.
Run plain_both_ways(Net net, std::vector<std::int64_t> lengths) {
  return [=](std::span<const Tensor> in) -> std::vector<Tensor> {
    std::int64_t steps = in[in_x].size(0), size = in[in_h].size(1);
    std::vector<Tensor> sequences;
    for (std::size_t b = 0; b < lengths.size(); ++b) {
      auto row = static_cast<std::int64_t>(b);
      std::vector<Tensor> ways;
      for (bool reverse : {false, true}) {
        std::size_t first = reverse ? in_bias + 1 : in_W_x;
        std::vector<Tensor> outputs(static_cast<std::size_t>(steps), zeros({1, size}, {.dtype = f64}));
        LSTMState state{slice(in[in_h], 0, row, row + 1), slice(in[in_c], 0, row, row + 1)};
        for (std::int64_t i = 0; i < lengths[b]; ++i) {
          std::int64_t t = reverse ? lengths[b] - 1 - i : i;
          Tensor x = slice(select(in[in_x], 0, t), 0, row, row + 1);
          state = plain_step(net, x, state, {in[first], in[first + 1], in[first + 2]});
          outputs[static_cast<std::size_t>(t)] = state.h;
        }
        ways.push_back(stack(outputs));
      }
      sequences.push_back(concat(ways, 2));
    }
    return {concat(sequences, 1)};
  };
}

// A number of all results, whose gradients by them differ.
Tensor total_of(const std::vector<Tensor>& results) {
  Tensor total = zeros({}, {.dtype = results[0].dtype()});
  for (const Tensor& result : results) {
    Tensor factors = to(cos(arange(result.numel(), {.dtype = f64}) * 1.3), result.dtype());
    total = total + sum(result * reshape(factors, result.shape()));
  }
  return total;
}

// The results, and the gradients by all operands.
std::vector<Tensor> all_of(const Run& run, const std::vector<Tensor>& in) {
  Tape tape;
  for (const Tensor& one : in) tape.watch(one);
  std::vector<Tensor> all = run(in);
  std::vector<Tensor> gradients = tape.gradient(total_of(all), in, {.unconnected = Unconnected::zeros});
  all.insert(all.end(), gradients.begin(), gradients.end());
  return all;
}

// The gradients by all operands of a number of the first gradients.
std::vector<Tensor> second_order(const Run& run, const std::vector<Tensor>& in) {
  Tape tape;
  for (const Tensor& one : in) tape.watch(one);
  std::vector<Tensor> all = all_of(run, in);
  return tape.gradient(total_of({all.begin() + 3, all.end()}), in, {.unconnected = Unconnected::zeros});
}

// The largest difference, relative to the largest element of a tensor.
double apart(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  REQUIRE(found.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    REQUIRE(found[i].shape() == expected[i].shape());
    if (found[i].numel() == 0) continue;
    Tensor scale = max(abs(expected[i])) + 1e-3;
    worst = std::max(worst, (max(abs(to(found[i], f64) - expected[i])) / scale).item());
  }
  return worst;
}

struct Sizes {
  std::int64_t steps, batch, input, size;
};

std::vector<Tensor> drawn(Net net, const Sizes& sizes, Generator& generator) {
  RandomOptions options{.generator = &generator};
  std::int64_t columns = gates_of(net) * sizes.size, biases = net == Net::gru ? 4 : gates_of(net);
  double bound = 1 / std::sqrt(static_cast<double>(sizes.size));
  return {randn({sizes.steps, sizes.batch, sizes.input}, options),
          randn({sizes.batch, sizes.size}, options),
          randn({sizes.batch, sizes.size}, options),
          randn({sizes.input, columns}, options) * bound,
          randn({sizes.size, columns}, options) * bound,
          randn({biases * sizes.size}, options)};
}

std::vector<Tensor> as_reference(const std::vector<Tensor>& in, DType dtype) {
  std::vector<Tensor> wide;
  for (std::size_t i = 0; i < in.size(); ++i)
    wide.push_back(i == in_W_x || i == in_W_h ? rounded(in[i], dtype) : to(in[i], f64));
  return wide;
}

std::vector<Sizes> some_sizes(Random& random) {
  // Rows of a skinny product and of more, a depth and widths beyond a block, a tile and a vector.
  std::vector<Sizes> sizes{{2, 1, 5, 130}, {2, 4, 600, 40}, {3, 5, 3, 33}, {1, 1, 1, 1}, {2, 9, 40, 17}, {2, 2, 0, 3}};
  for (int trial = 0; trial < 6; ++trial)
    sizes.push_back({random_size(random, 1, 4), random_size(random, 1, 20), random_size(random, 1, 70),
                     random_size(random, 1, 90)});
  return sizes;
}

void check_equal_bits(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(same_bits(found[i], expected[i]));
  }
}

}  // namespace

TEST_CASE("a product by a rounded weight has the bits of one by its copy, for few columns and any rows") {
  std::uint64_t seed = 0;
  for (DType half : {bf16, f16})
    for (std::int64_t k : {16, 40, 300})
      for (std::int64_t n : {1, 3, 8, 20, 32}) {
        Generator generator(++seed);
        Tensor W = randn({k, n}, {.generator = &generator}), x = randn({40, k}, {.generator = &generator});
        for (const Tensor& weight :
             {W, copy(W).requires_grad(), transpose(copy(transpose(W))), select(stack({W, W}, -1), -1, 1)}) {
          Tensor expected = matmul(x, to(to(weight, half), f32));
          for (std::int64_t rows : {1, 3, 8, 9, 40}) {
            CAPTURE(name_of(half), k, n, rows, to_string(weight.strides()));
            Tensor some = slice(x, 0, 0, rows), rounded = to(to(weight, half), f32);
            CHECK(same_bits(detail::weight_product(some, weight, half, Location::here()), matmul(some, rounded)));
            if (weight.strides()[0] > weight.strides()[1] || n == 1)
              CHECK(same_bits(matmul(some, rounded), slice(expected, 0, 0, rows)));
          }
        }
      }
}

TEST_CASE("nets with rounded weights have the results and gradients of rounded weights in f64") {
  CAPTURE(seed);
  Random random(seed);
  Generator generator(seed);
  for (const Sizes& sizes : some_sizes(random))
    for (Net net : nets)
      for (DType dtype : {bf16, f16}) {
        CAPTURE(sizes.steps, sizes.batch, sizes.input, sizes.size, static_cast<int>(net), name_of(dtype));
        std::vector<Tensor> in = drawn(net, sizes, generator);
        std::vector<Tensor> expected = all_of(run_steps(net, plain_step, {}), as_reference(in, dtype));
        CHECK(apart(all_of(run_steps(net, cell_step, dtype), in), expected) < 2e-5);
        CHECK(apart(all_of(run_layer(net, dtype), in), expected) < 2e-5);
        // Products of parameters read copies that are kept.
        for (std::size_t i : {in_W_x, in_W_h}) in[i].requires_grad();
        CHECK(apart(all_of(run_steps(net, cell_step, dtype), in), expected) < 2e-5);
        CHECK(apart(all_of(run_layer(net, dtype), in), expected) < 2e-5);
        // The reference is another one if nothing is rounded.
        if (sizes.size > 30) CHECK(apart(all_of(run_layer(net, f32), in), expected) > (dtype == bf16 ? 2e-4 : 4e-5));
      }
}

TEST_CASE("ragged sequences in both directions have the results and gradients of rounded weights in f64") {
  CAPTURE(seed);
  Generator generator(seed);
  const std::vector<std::int64_t> lengths{2, 0, 5, 1, 5, 3};
  for (std::size_t batch : {std::size_t{3}, lengths.size()})
    for (Net net : nets)
      for (DType dtype : {bf16, f16}) {
        CAPTURE(batch, static_cast<int>(net), name_of(dtype));
        std::vector<std::int64_t> own(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(batch));
        Sizes sizes{5, std::ssize(own), 7, 19};
        std::vector<Tensor> in = drawn(net, sizes, generator), reverse = drawn(net, sizes, generator);
        in.insert(in.end(), reverse.begin() + in_W_x, reverse.end());
        std::vector<Tensor> wide = as_reference(in, dtype);
        for (std::size_t i : {in_bias + 1, in_bias + 2}) wide[i] = rounded(in[i], dtype);
        CHECK(apart(all_of(run_both_ways(net, own, dtype), in), all_of(plain_both_ways(net, own), wide)) < 2e-5);
      }
}

TEST_CASE("gradients of gradients of nets with rounded weights are those of rounded weights") {
  CAPTURE(seed);
  Generator generator(seed);
  for (Net net : {Net::lstm, Net::gru, Net::tanh})
    for (DType dtype : {bf16, f16}) {
      CAPTURE(static_cast<int>(net), name_of(dtype));
      std::vector<Tensor> in = drawn(net, {2, 3, 4, 6}, generator);
      std::vector<Tensor> expected = second_order(run_steps(net, plain_step, {}), as_reference(in, dtype));
      CHECK(apart(second_order(run_steps(net, cell_step, dtype), in), expected) < 2e-5);
      CHECK(apart(second_order(run_layer(net, dtype), in), expected) < 2e-5);
    }
}

TEST_CASE("rounded weights give the bits of weights that were rounded before") {
  CAPTURE(seed);
  Random random(seed);
  Generator generator(seed);
  for (const Sizes& sizes : some_sizes(random))
    for (Net net : nets)
      for (DType dtype : {bf16, f16}) {
        CAPTURE(sizes.steps, sizes.batch, sizes.input, sizes.size, static_cast<int>(net), name_of(dtype));
        std::vector<Tensor> in = drawn(net, sizes, generator), before = in;
        for (std::size_t i : {in_W_x, in_W_h}) before[i] = to(to(in[i], dtype), f32);
        for (bool are_parameters : {false, true}) {
          if (are_parameters) in[in_W_x].requires_grad(), in[in_W_h].requires_grad();
          check_equal_bits(all_of(run_steps(net, cell_step, dtype), in), all_of(run_steps(net, cell_step, {}), before));
          check_equal_bits(all_of(run_layer(net, dtype), in), all_of(run_layer(net, f32), before));
        }
      }
}

TEST_CASE("nets with rounded weights have the same bits for every number of threads, and for one row of a batch") {
  Generator generator(seed);
  for (Net net : {Net::lstm, Net::gru})
    for (std::int64_t batch : {1, 3, 8}) {
      CAPTURE(static_cast<int>(net), batch);
      std::vector<Tensor> in = drawn(net, {2, batch, 900, 750}, generator);
      for (std::size_t i : {in_W_x, in_W_h}) in[i].requires_grad();
      for (const Run& run : {run_steps(net, cell_step, bf16), run_layer(net, f16)}) {
        std::vector<std::vector<Tensor>> found;
        for (int threads : {1, 2, 7}) {
          Threads scope(threads);
          found.push_back(all_of(run, in));
        }
        check_equal_bits(found[1], found[0]);
        check_equal_bits(found[2], found[0]);
        std::vector<Tensor> alone = in;
        alone[in_x] = copy(slice(in[in_x], 1, 0, 1));
        for (std::size_t i : {in_h, in_c}) alone[i] = copy(slice(in[i], 0, 0, 1));
        CHECK(same_bits(run(alone)[0], copy(slice(found[0][0], 1, 0, 1))));
      }
    }
}

TEST_CASE("weights with infinities, NaN, halves' smallest numbers and ties are rounded as by to") {
  std::vector<float> values{INFINITY,       -INFINITY,  NAN,   65519,    65520,        1e30F,       0x1p-24F,
                            0x1p-25F,       0x1.8p-25F, -0.0F, 0x1p-14F, 0x1.ffcp-15F, 1.00390625F, 1.01171875F,
                            1.00048828125F, 1e-30F};
  for (DType dtype : {bf16, f16})
    for (std::int64_t rows : {1, 6})
      for (float value : values) {
        CAPTURE(name_of(dtype), rows, value);
        Tensor W = full({1, 40}, value);
        Tensor expected = rnn_cell(ones({rows, 1}), zeros({rows, 40}), {to(to(W, dtype), f32), zeros({40, 40}), {}},
                                   RNNActivation::relu);
        CHECK(same_bits(
            rnn_cell(ones({rows, 1}), zeros({rows, 40}), {W, zeros({40, 40}), {}, dtype}, RNNActivation::relu),
            expected));
      }
}

TEST_CASE("a parameter that was overwritten is rounded anew") {
  Generator generator(seed);
  std::vector<Tensor> in = drawn(Net::lstm, {2, 1, 70, 50}, generator);
  for (std::size_t i : {in_W_x, in_W_h}) in[i].requires_grad();
  auto check = [&] {
    for (std::int64_t batch : {1, 6}) {
      std::vector<Tensor> own = in;
      own[in_x] = copy(expand(in[in_x], {2, batch, 70}));
      for (std::size_t i : {in_h, in_c}) own[i] = copy(expand(in[i], {batch, 50}));
      std::vector<Tensor> expected = all_of(run_steps(Net::lstm, plain_step, {}), as_reference(own, bf16));
      for (int time = 0; time < 3; ++time) {
        CHECK(apart(all_of(run_steps(Net::lstm, cell_step, bf16), own), expected) < 2e-5);
        CHECK(apart(all_of(run_layer(Net::lstm, bf16), own), expected) < 2e-5);
      }
    }
  };
  check();
  SECTION("through a guard") { in[in_W_h].write<float>()[5] = 3; }
  SECTION("in place") {
    NoRecord pause;
    mul_(in[in_W_x], -2);
  }
  SECTION("by an optimiser") {
    optim::SGD sgd({in[in_W_x], in[in_W_h]}, {.learning_rate = 0.5});
    Tape tape;
    tape.backward(sum(run_steps(Net::lstm, cell_step, bf16)(in)[0]));
    sgd.step();
  }
  check();
}

TEST_CASE("a dtype to which weights cannot be rounded is refused") {
  RecurrentWeights weights{zeros({2, 12}), zeros({3, 12}), {}, f64}, other = weights;
  other.weight_dtype = i8;
  RecurrentWeights wide{zeros({2, 9}, {.dtype = f64}), zeros({3, 9}, {.dtype = f64}), {}, bf16};
  Tensor x = zeros({1, 2}), h = zeros({1, 3});
  all_fail<DTypeError>({
      Bad("lstm_cell: weight_dtype is f64; it must be bf16 or f16, or be left out",
          [&] {
            lstm_cell(x, {h, h}, weights);
          }),
      Bad("lstm: weight_dtype is i8; it must be bf16 or f16, or be left out",
          [&] {
            lstm(zeros({1, 1, 2}), {}, other);
          }),
      Bad("gru_cell: weight_dtype bf16 rounds weights of f32, not of f64; leave it out, or use weights of f32",
          [&] { gru_cell(to(x, f64), to(h, f64), wide); }),
  });
  // Weights that have the dtype already.
  RecurrentWeights half{zeros({2, 9}, {.dtype = f16}), zeros({3, 9}, {.dtype = f16}), {}, f16};
  CHECK(gru_cell(to(x, f16), to(h, f16), half).dtype() == f16);
}

TEST_CASE("within an autocast scope weights are rounded to the dtype that was asked for") {
  Generator generator(seed);
  for (Net net : nets) {
    std::vector<Tensor> in = drawn(net, {3, 2, 9, 12}, generator);
    for (const Run& run : {run_steps(net, cell_step, f16), run_layer(net, f16)}) {
      std::vector<Tensor> expected = run(in);
      AutocastScope scope(bf16, Location::here());
      check_equal_bits(run(in), expected);
    }
  }
}

}  // namespace reel_test
