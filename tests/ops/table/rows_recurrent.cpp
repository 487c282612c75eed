#include <optional>

#include "ops/recurrent_cases.h"
#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

const char* name_of(Kind kind) { return kind == Kind::lstm ? "lstm" : kind == Kind::gru ? "gru" : "rnn"; }
std::int64_t biases_of(Kind kind) { return kind == Kind::lstm || kind == Kind::gru ? 4 : 1; }

// The dtype to which weights are rounded where an op takes one: the reference knows no rounding, so that the weights are
// such that it changes nothing. tests/ops/recurrent/weight_dtype_test.cpp has others.
std::optional<DType> rounding_for(bool rounded, const Tensor& weight, DType dtype) {
  return rounded && weight.dtype() == f32 ? std::optional(dtype) : std::nullopt;
}

// x, h, c of lstm, W_x, W_h, and the bias.
std::vector<Input> inputs_of(const CellCase& c) {
  std::int64_t columns = gates_of(c.kind) * c.size;
  std::vector<Input> all{{{c.batch, c.input}}, {{c.batch, c.size}}};
  if (c.kind == Kind::lstm) all.push_back({{c.batch, c.size}});
  Fill fill = c.rounded ? Fill::coarse : Fill::any;
  all.push_back({{c.input, columns}, fill});
  all.push_back({{c.size, columns}, fill});
  if (c.bias) all.push_back({{biases_of(c.kind) * c.size}});
  return all;
}

Tensor run(const CellCase& c, std::span<const Tensor> x) {
  std::size_t first = c.kind == Kind::lstm ? 3 : 2;
  RecurrentWeights weights{x[first], x[first + 1], c.bias ? needed(x[first + 2]) : Tensor{},
                           rounding_for(c.rounded, x[first], bf16)};
  switch (c.kind) {
    case Kind::lstm: {
      LSTMState state = lstm_cell(x[0], {x[1], x[2]}, weights);
      return concat({state.h, state.c}, 1);
    }
    case Kind::gru: return gru_cell(x[0], x[1], weights);
    case Kind::tanh: return rnn_cell(x[0], x[1], weights);
    case Kind::relu: return rnn_cell(x[0], x[1], weights, RNNActivation::relu);
  }
  return {};
}

Row cell_row(const CellCase& c) {
  return {.name = std::string(name_of(c.kind)) + "_cell " + std::to_string(c.batch) + " of " + std::to_string(c.input) +
                  " to " + std::to_string(c.size) + (c.kind == Kind::relu ? " relu" : "") +
                  (c.bias ? "" : " without bias") + (c.rounded ? " rounded" : ""),
          .run = [c](auto x) { return run(c, x); },
          .inputs = inputs_of(c),
          .reference =
              [c](const Arrays& x) {
                return expected_of(c, x, {c.batch, c.kind == Kind::lstm ? 2 * c.size : c.size});
              },
          .ulps = 1,
          .reorders = true,
          .attributes = {{"relu", {c.kind == Kind::relu ? 1.0 : 0.0}}}};
}

// lstm_cell of the arguments' parts.
Row parts_row(std::int64_t batch, std::int64_t size) {
  return {.name = "lstm_cell of parts " + std::to_string(batch) + " of " + std::to_string(size),
          .run =
              [](auto x) {
                LSTMState state = lstm_cell(x[0], x[1], x[2]);
                return concat({state.h, state.c}, 1);
              },
          .inputs = {{{batch, 4 * size}}, {{batch, 4 * size}}, {{batch, size}}},
          .reference =
              [=](const Arrays& x) {
                return expected_of(PartsCase{batch, size}, x, {batch, 2 * size});
              },
          .ulps = 1,
          .reorders = true};
}

Row tree_row(std::int64_t batch, std::int64_t size, std::int64_t children) {
  std::vector<Input> inputs{{{batch, (3 + children) * size}}};
  for (std::int64_t k = 0; k < children; ++k) inputs.push_back({{batch, size}});
  return {.name = "tree_lstm_cell " + std::to_string(batch) + " of " + std::to_string(size) + " with " +
                  std::to_string(children) + " children",
          .run =
              [](auto x) {
                LSTMState state = tree_lstm_cell(x[0], std::vector<Tensor>(x.begin() + 1, x.end()));
                return concat({state.h, state.c}, 1);
              },
          .inputs = inputs,
          .reference =
              [=](const Arrays& x) {
                return expected_of(TreeCase{batch, size, children}, x, {batch, 2 * size});
              },
          .ulps = 1,
          .reorders = true};
}

// lstm_cell of projected inputs: p, h, c, W_h, whose h may be narrower or wider than c.
Row projected_row(std::int64_t batch, std::int64_t width, std::int64_t size) {
  return {.name = "lstm_cell of projected inputs " + std::to_string(batch) + " of " + std::to_string(width) + " to " +
                  std::to_string(size),
          .run =
              [](auto x) {
                LSTMState state = lstm_cell(x[0], {x[1], x[2]}, x[3]);
                return concat({state.h, state.c}, 1);
              },
          .inputs = {{{batch, 4 * size}}, {{batch, width}}, {{batch, size}}, {{width, 4 * size}}},
          .reference =
              [=](const Arrays& x) {
                return expected_of(ProjectedCase{batch, width, size}, x, {batch, 2 * size});
              },
          .ulps = 1,
          .reorders = true,
          .attributes = {{"projected", {1.0}}}};
}

// tree_lstm_cell with the product of the children's outputs: p, W_h, h_1, c_1 … h_N, c_N. p has one row for all or one each.
Row node_row(std::int64_t batch, std::int64_t size, std::int64_t children, bool one_row = false) {
  std::vector<Input> inputs{{one_row ? Shape{4 * size} : Shape{batch, 4 * size}},
                            {{children * size, (3 + children) * size}, Fill::unit}};
  for (std::int64_t k = 0; k < 2 * children; ++k) inputs.push_back({{batch, size}});
  return {.name = "tree_lstm_cell of states " + std::to_string(batch) + " of " + std::to_string(size) + " with " +
                  std::to_string(children) + (one_row ? " children and one row" : " children"),
          .run =
              [](auto x) {
                std::vector<LSTMState> states;
                for (std::size_t k = 2; k < x.size(); k += 2) states.push_back({x[k], x[k + 1]});
                LSTMState state = tree_lstm_cell(x[0], states, x[1]);
                return concat({state.h, state.c}, 1);
              },
          .inputs = inputs,
          .reference =
              [=](const Arrays& x) {
                return expected_of(NodeCase{{batch, size, children}, one_row}, x, {batch, 2 * size});
              },
          .ulps = 1,
          .reorders = true,
          .attributes = {{"states", {1.0}}}};
}

// x, h and c, each net's W_x, W_h and bias, lengths.
std::vector<Input> inputs_of(const NetCase& c) {
  std::int64_t columns = gates_of(c.kind) * c.size;
  std::vector<Input> all{{{c.steps, c.batch, c.input}}};
  for (std::size_t i = 1; i < c.first_weight(); ++i) all.push_back({{c.nets(), c.batch, c.size}});
  for (std::int64_t net = 0; net < c.nets(); ++net) {
    Fill fill = c.rounded ? Fill::coarse : Fill::unit;
    all.push_back({{net < c.directions() ? c.input : c.directions() * c.size, columns}, fill});
    all.push_back({{c.size, columns}, fill});
    if (c.bias) all.push_back({{biases_of(c.kind) * c.size}});
  }
  if (!c.lengths.empty()) all.push_back({{c.batch}, Fill::indices, c.lengths});
  return all;
}

Tensor run(const NetCase& c, std::span<const Tensor> x) {
  std::vector<RecurrentWeights> weights;
  std::size_t next = c.first_weight();
  for (std::int64_t net = 0; net < c.nets(); ++net, next += c.weights_each())
    weights.push_back(
        {x[next], x[next + 1], c.bias ? needed(x[next + 2]) : Tensor{}, rounding_for(c.rounded, x[next], f16)});
  Tensor counts = c.lengths.empty() ? Tensor{} : needed(x[next]), h = c.state ? needed(x[1]) : Tensor{};
  auto joined = [](const Tensor& output, const Tensor& h_n) { return concat({flatten(output), flatten(h_n)}); };
  if (c.kind == Kind::lstm) {
    LSTMOutput y = lstm(x[0], {h, c.state ? needed(x[2]) : Tensor{}}, weights,
                        {.lengths = counts, .bidirectional = c.bidirectional});
    return concat({joined(y.output, y.h_n), flatten(y.c_n)});
  }
  RecurrentOutput y = c.kind == Kind::gru
                          ? gru(x[0], h, weights, {.lengths = counts, .bidirectional = c.bidirectional})
                          : rnn(x[0], h, weights,
                                {.lengths = counts,
                                 .bidirectional = c.bidirectional,
                                 .activation = c.kind == Kind::relu ? RNNActivation::relu : RNNActivation::tanh});
  return joined(y.output, y.h_n);
}

Row net_row(const NetCase& c) {
  std::string name = std::string(name_of(c.kind)) + " " + to_string(Shape{c.steps, c.batch, c.input}) + " to " +
                     std::to_string(c.size);
  if (c.layers > 1) name += " in layers";
  if (c.bidirectional) name += " both ways";
  if (!c.lengths.empty()) name += " ragged";
  if (c.kind == Kind::relu) name += " relu";
  if (!c.state) name += " from zeros";
  if (c.rounded) name += " rounded";
  return {.name = name,
          .run = [c](auto x) { return run(c, x); },
          .inputs = inputs_of(c),
          .reference =
              [c](const Arrays& x) {
                std::int64_t states = c.kind == Kind::lstm ? 2 : 1;
                std::int64_t outputs = c.steps * c.directions() + states * c.nets();
                return expected_of(c, x, {outputs * c.batch * c.size});
              },
          .ulps = 1,
          .reorders = true,
          .attributes = {{"relu", {c.kind == Kind::relu ? 1.0 : 0.0}},
                         {"layers", {static_cast<double>(c.layers)}},
                         {"bidirectional", {c.bidirectional ? 1.0 : 0.0}},
                         {"ragged", {c.lengths.empty() ? 0.0 : 1.0}}}};
}

constexpr Kind kinds[] = {Kind::lstm, Kind::gru, Kind::tanh, Kind::relu};

void add_rows(std::vector<Row>& rows) {
  for (Kind kind : kinds) {
    rows.push_back(cell_row({kind, 2, 2, 2}));
    rows.push_back(cell_row({kind, 1, 3, 1}));
    rows.push_back(cell_row({kind, 2, 1, 2, false}));
    rows.push_back(cell_row({kind, 0, 2, 3}));
    rows.push_back(cell_row({kind, 3, 0, 2}));
    rows.push_back(cell_row({kind, 5, 3, 21}));
    rows.push_back(cell_row({.kind = kind, .batch = 2, .input = 3, .size = 2, .rounded = true}));
  }
  for (Kind kind : kinds) {
    rows.push_back(net_row({kind, 3, 2, 2, 2}));
    rows.push_back(net_row({kind, 1, 1, 1, 3}));
    rows.push_back(net_row({kind, 0, 2, 2, 2}));
    rows.push_back(net_row({kind, 2, 0, 2, 2}));
    rows.push_back(net_row({kind, 2, 2, 0, 2}));
    rows.push_back(
        net_row({.kind = kind, .steps = 3, .batch = 2, .input = 1, .size = 2, .state = false, .bias = false}));
    rows.push_back(net_row({kind, 4, 5, 2, 2, {2, 4, 0, 1, 4}}));
    rows.push_back(net_row({kind, 2, 2, 1, 2, {0, 0}}));
    rows.push_back(net_row({kind, 3, 3, 2, 1, {1, 3, 2}, 1, true}));
    rows.push_back(net_row({kind, 3, 2, 1, 1, {2, 3}, 2, true}));
    rows.push_back(net_row({kind, 2, 2, 2, 1, {}, 3}));
    rows.push_back(net_row({.kind = kind, .steps = 3, .batch = 2, .input = 2, .size = 2, .rounded = true}));
    rows.push_back(net_row({.kind = kind, .steps = 2, .batch = 6, .input = 1, .size = 3, .rounded = true}));
    // More rows than a tile of registers, and units beyond one.
    rows.push_back(net_row({kind, 3, 17, 3, 37}));
    rows.push_back(
        net_row({kind,
                 5,
                 31,
                 2,
                 18,
                 {5, 0, 3, 3, 1, 5, 2, 4, 4, 1, 1, 2, 3, 5, 5, 2, 4, 1, 3, 2, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5},
                 1,
                 true}));
  }
  rows.push_back(parts_row(2, 3));
  rows.push_back(parts_row(0, 2));
  rows.push_back(parts_row(3, 35));
  for (std::int64_t children : {0, 1, 2, 6, 8}) rows.push_back(tree_row(2, 2, children));
  rows.push_back(tree_row(0, 2, 2));
  rows.push_back(tree_row(3, 35, 2));
  rows.push_back(projected_row(2, 2, 2));
  rows.push_back(projected_row(3, 5, 2));
  rows.push_back(projected_row(0, 2, 1));
  rows.push_back(projected_row(4, 3, 19));
  for (std::int64_t children : {1, 2, 3, 4}) rows.push_back(node_row(2, 2, children));
  rows.push_back(node_row(2, 1, 2, true));
  rows.push_back(node_row(0, 2, 2));
  rows.push_back(node_row(3, 19, 2));
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int trial = 0; trial < 3; ++trial)
    for (Kind kind : kinds)
      rows.push_back(cell_row({kind, random_size(random, 1, 9), random_size(random), random_size(random)}));
  for (int trial = 0; trial < 3; ++trial)
    rows.push_back(projected_row(random_size(random, 1, 9), random_size(random), random_size(random)));
  for (std::int64_t children = 0; children < 4; ++children)
    rows.push_back(tree_row(random_size(random, 1, 9), random_size(random), children));
  for (std::int64_t children = 1; children < 4; ++children)
    rows.push_back(node_row(random_size(random, 1, 9), random_size(random), children, children == 2));
  for (int trial = 0; trial < 4; ++trial)
    for (Kind kind : kinds) {
      NetCase c{kind, random_size(random, 1, 5), random_size(random, 1, 6), random_size(random, 1, 9),
                random_size(random, 1, 9)};
      c.layers = random_size(random, 1, 2);
      c.bidirectional = trial % 2 == 1;
      // Packed sequences of libtorch have no empty examples.
      if (trial >= 2)
        for (std::int64_t b = 0; b < c.batch; ++b) c.lengths.push_back(random_size(random, 1, c.steps));
      rows.push_back(net_row(c));
    }
}

}  // namespace

const RowFamily recurrent_rows{add_rows, add_random_rows};

}  // namespace reel_test
