#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/table.h"

namespace reel_test {

using namespace reel;

namespace {

// A value, and how far rounding may have taken it from the exact one, in units in the last place of 1.
struct Number {
  double value = 0, error = 0;
};

Number operator+(Number a, Number b) {
  double sum = a.value + b.value;
  return {sum, a.error + b.error + std::abs(sum) / 2};
}

Number operator*(Number a, Number b) {
  double product = a.value * b.value;
  return {product, std::abs(a.value) * b.error + std::abs(b.value) * a.error + std::abs(product) / 2};
}

Number one_minus(Number a) { return {1 - a.value, a.error + std::abs(1 - a.value) / 2}; }

// Both functions are off by less than three units.
Number sigmoid_of(Number a) {
  double y = 1 / (1 + std::exp(-a.value));
  return {y, a.error * y * (1 - y) + 3 * y};
}

Number tanh_of(Number a) {
  double y = std::tanh(a.value);
  return {y, a.error * (1 - y * y) + 3 * std::abs(y)};
}

using Numbers = std::vector<Number>;

// Row `row` of x times a column of w, in any order.
Number dot(const Numbers& x, const Array& w, std::int64_t column) {
  Number sum;
  double sizes = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    double weight = at(w, {static_cast<std::int64_t>(k), column});
    sum.value += x[k].value * weight;
    sum.error += x[k].error * std::abs(weight);
    sizes += std::abs(x[k].value * weight);
  }
  sum.error += sizes * (static_cast<double>(x.size()) / 2 + 1);
  return sum;
}

struct Carried {
  Numbers h, c;
};

enum class Kind : std::uint8_t { lstm, gru, tanh, relu };

struct Weights {
  const Array *W_x, *W_h, *bias;  // no bias: zeros
};

Carried step(Kind kind, const Numbers& x, const Carried& before, const Weights& weights) {
  auto size = static_cast<std::int64_t>(before.h.size());
  auto bias = [&](std::int64_t column) { return weights.bias ? Number{at(*weights.bias, {column})} : Number{}; };
  auto from_input = [&](std::int64_t column) { return dot(x, *weights.W_x, column); };
  auto from_state = [&](std::int64_t column) { return dot(before.h, *weights.W_h, column); };
  Carried after = before;
  for (std::int64_t k = 0; k < size; ++k) {
    auto j = static_cast<std::size_t>(k);
    auto argument = [&](std::int64_t gate) {
      std::int64_t column = gate * size + k;
      return from_input(column) + from_state(column) + bias(column);
    };
    if (kind == Kind::lstm) {
      Number i = sigmoid_of(argument(0)), f = sigmoid_of(argument(1)), g = tanh_of(argument(2));
      after.c[j] = f * before.c[j] + i * g;
      after.h[j] = sigmoid_of(argument(3)) * tanh_of(after.c[j]);
    } else if (kind == Kind::gru) {
      Number r = sigmoid_of(argument(0)), z = sigmoid_of(argument(1));
      Number m = from_state(2 * size + k) + bias(3 * size + k);
      Number n = tanh_of(from_input(2 * size + k) + bias(2 * size + k) + r * m);
      after.h[j] = one_minus(z) * n + z * before.h[j];
    } else {
      Number a = argument(0);
      after.h[j] = kind == Kind::tanh ? tanh_of(a) : Number{std::max(a.value, 0.0), a.error};
    }
  }
  return after;
}

const char* name_of(Kind kind) { return kind == Kind::lstm ? "lstm" : kind == Kind::gru ? "gru" : "rnn"; }
std::int64_t gates_of(Kind kind) { return kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1; }
std::int64_t biases_of(Kind kind) { return kind == Kind::lstm || kind == Kind::gru ? 4 : 1; }

Numbers row_of(const Array& x, std::int64_t row) {
  std::int64_t width = x.shape[-1];
  Numbers numbers;
  for (std::int64_t k = 0; k < width; ++k) numbers.push_back({x.values[static_cast<std::size_t>(row * width + k)]});
  return numbers;
}

void append(Array& array, const Numbers& numbers) {
  for (Number number : numbers) {
    array.values.push_back(number.value);
    array.scales.push_back(number.error);
  }
}

// What is left out is undefined to the op, but not to a row that gives it.
const Tensor& given(const Tensor& x) {
  static_cast<void>(x.body());
  return x;
}

struct CellCase {
  Kind kind;
  std::int64_t batch, input, size;
  bool bias = true;

  // x, h, c of lstm, W_x, W_h, and the bias.
  std::vector<Input> inputs() const {
    std::vector<Input> all{{{batch, input}}, {{batch, size}}};
    if (kind == Kind::lstm) all.push_back({{batch, size}});
    all.push_back({{input, gates_of(kind) * size}});
    all.push_back({{size, gates_of(kind) * size}});
    if (bias) all.push_back({{biases_of(kind) * size}});
    return all;
  }

  Tensor run(std::span<const Tensor> x) const {
    std::size_t first = kind == Kind::lstm ? 3 : 2;
    RecurrentWeights weights{x[first], x[first + 1], bias ? given(x[first + 2]) : Tensor{}};
    switch (kind) {
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

  Array expected(const Arrays& x) const {
    std::size_t first = kind == Kind::lstm ? 3 : 2;
    Array y{{batch, kind == Kind::lstm ? 2 * size : size}, {}};
    for (std::int64_t row = 0; row < batch; ++row) {
      Carried before{row_of(x[1], row), kind == Kind::lstm ? row_of(x[2], row) : Numbers{}};
      Carried after = step(kind, row_of(x[0], row), before, {&x[first], &x[first + 1], bias ? &x[first + 2] : nullptr});
      append(y, after.h);
      append(y, after.c);
    }
    return y;
  }
};

Row cell_row(const CellCase& c) {
  return {.name = std::string(name_of(c.kind)) + "_cell " + std::to_string(c.batch) + " of " + std::to_string(c.input) +
                  " to " + std::to_string(c.size) + (c.kind == Kind::relu ? " relu" : "") +
                  (c.bias ? "" : " without bias"),
          .run = [c](auto x) { return c.run(x); },
          .inputs = c.inputs(),
          .reference = [c](const Arrays& x) { return c.expected(x); },
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
                Array y{{batch, 2 * size}, {}};
                for (std::int64_t row = 0; row < batch; ++row) {
                  Numbers h, c;
                  for (std::int64_t k = 0; k < size; ++k) {
                    auto argument = [&](std::int64_t gate) {
                      return Number{at(x[0], {row, gate * size + k})} + Number{at(x[1], {row, gate * size + k})};
                    };
                    c.push_back(sigmoid_of(argument(1)) * Number{at(x[2], {row, k})} +
                                sigmoid_of(argument(0)) * tanh_of(argument(2)));
                    h.push_back(sigmoid_of(argument(3)) * tanh_of(c.back()));
                  }
                  append(y, h);
                  append(y, c);
                }
                return y;
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
                Array y{{batch, 2 * size}, {}};
                for (std::int64_t row = 0; row < batch; ++row) {
                  Numbers h, c;
                  for (std::int64_t k = 0; k < size; ++k) {
                    auto argument = [&](std::int64_t gate) { return Number{at(x[0], {row, gate * size + k})}; };
                    Number sum = sigmoid_of(argument(0)) * tanh_of(argument(2));
                    for (std::int64_t child = 0; child < children; ++child)
                      sum = sum + sigmoid_of(argument(3 + child)) *
                                      Number{at(x[static_cast<std::size_t>(1 + child)], {row, k})};
                    c.push_back(sum);
                    h.push_back(sigmoid_of(argument(1)) * tanh_of(sum));
                  }
                  append(y, h);
                  append(y, c);
                }
                return y;
              },
          .ulps = 1,
          .reorders = true};
}

struct NetCase {
  Kind kind;
  std::int64_t steps, batch, input, size;
  std::vector<std::int64_t> lengths = {};  // none: all steps
  std::int64_t layers = 1;
  bool bidirectional = false, state = true, bias = true;

  std::int64_t directions() const { return bidirectional ? 2 : 1; }
  std::int64_t nets() const { return layers * directions(); }
  std::size_t first_weight() const { return state ? kind == Kind::lstm ? 3 : 2 : 1; }
  std::size_t weights_each() const { return bias ? 3 : 2; }

  // x, h and c, each net's W_x, W_h and bias, lengths.
  std::vector<Input> inputs() const {
    std::vector<Input> all{{{steps, batch, input}}};
    for (std::size_t i = 1; i < first_weight(); ++i) all.push_back({{nets(), batch, size}});
    for (std::int64_t net = 0; net < nets(); ++net) {
      all.push_back({{net < directions() ? input : directions() * size, gates_of(kind) * size}, Fill::unit});
      all.push_back({{size, gates_of(kind) * size}, Fill::unit});
      if (bias) all.push_back({{biases_of(kind) * size}});
    }
    if (!lengths.empty()) all.push_back({{batch}, Fill::indices, lengths});
    return all;
  }

  Tensor run(std::span<const Tensor> x) const {
    std::vector<RecurrentWeights> weights;
    std::size_t next = first_weight();
    for (std::int64_t net = 0; net < nets(); ++net, next += weights_each())
      weights.push_back({x[next], x[next + 1], bias ? given(x[next + 2]) : Tensor{}});
    Tensor counts = lengths.empty() ? Tensor{} : given(x[next]), h = state ? given(x[1]) : Tensor{};
    auto joined = [](const Tensor& output, const Tensor& h_n) { return concat({flatten(output), flatten(h_n)}); };
    if (kind == Kind::lstm) {
      LSTMOutput y =
          lstm(x[0], {h, state ? given(x[2]) : Tensor{}}, weights, {.lengths = counts, .bidirectional = bidirectional});
      return concat({joined(y.output, y.h_n), flatten(y.c_n)});
    }
    RecurrentOutput y = kind == Kind::gru
                            ? gru(x[0], h, weights, {.lengths = counts, .bidirectional = bidirectional})
                            : rnn(x[0], h, weights,
                                  {.lengths = counts,
                                   .bidirectional = bidirectional,
                                   .activation = kind == Kind::relu ? RNNActivation::relu : RNNActivation::tanh});
    return joined(y.output, y.h_n);
  }

  // One example at a time. Both are added to: what is read by a later layer, and the states at the end.
  std::vector<Numbers> layer(const std::vector<Numbers>& rows, std::int64_t number, std::int64_t example,
                             const Arrays& x, std::vector<Carried>& ends) const {
    std::vector<Numbers> outputs(rows.size());
    for (std::int64_t direction = 0; direction < directions(); ++direction) {
      std::int64_t net = number * directions() + direction;
      std::size_t at = first_weight() + static_cast<std::size_t>(net) * weights_each();
      Numbers none(static_cast<std::size_t>(size));
      Carried carried{state ? row_of(x[1], net * batch + example) : none, kind != Kind::lstm ? Numbers{}
                                                                          : state ? row_of(x[2], net * batch + example)
                                                                                  : none};
      for (std::size_t i = 0; i < rows.size(); ++i) {
        std::size_t t = direction == 0 ? i : rows.size() - 1 - i;
        carried = step(kind, rows[t], carried, {&x[at], &x[at + 1], bias ? &x[at + 2] : nullptr});
        outputs[t].insert(outputs[t].end(), carried.h.begin(), carried.h.end());
      }
      ends.push_back(carried);
    }
    return outputs;
  }

  Array expected(const Arrays& x) const {
    std::vector<std::vector<Numbers>> outputs;
    std::vector<std::vector<Carried>> ends;
    for (std::int64_t b = 0; b < batch; ++b) {
      auto length = lengths.empty() ? steps : static_cast<std::int64_t>(at(x.back(), {b}));
      std::vector<Numbers> rows;
      for (std::int64_t t = 0; t < length; ++t) rows.push_back(row_of(x[0], t * batch + b));
      ends.emplace_back();
      for (std::int64_t number = 0; number < layers; ++number) rows = layer(rows, number, b, x, ends.back());
      rows.resize(static_cast<std::size_t>(steps), Numbers(static_cast<std::size_t>(directions() * size)));
      outputs.push_back(rows);
    }
    Array y{{0}, {}};
    for (std::size_t t = 0; t < static_cast<std::size_t>(steps); ++t)
      for (const auto& rows : outputs) append(y, rows[t]);
    for (Numbers Carried::*part : {&Carried::h, &Carried::c})
      for (std::size_t net = 0; net < static_cast<std::size_t>(nets()); ++net)
        for (const auto& carried : ends) append(y, carried[net].*part);
    y.shape[0] = std::ssize(y.values);
    return y;
  }
};

Row net_row(const NetCase& c) {
  std::string name = std::string(name_of(c.kind)) + " " + to_string(Shape{c.steps, c.batch, c.input}) + " to " +
                     std::to_string(c.size);
  if (c.layers > 1) name += " in layers";
  if (c.bidirectional) name += " both ways";
  if (!c.lengths.empty()) name += " ragged";
  if (c.kind == Kind::relu) name += " relu";
  if (!c.state) name += " from zeros";
  return {.name = name,
          .run = [c](auto x) { return c.run(x); },
          .inputs = c.inputs(),
          .reference = [c](const Arrays& x) { return c.expected(x); },
          .ulps = 1,
          .reorders = true,
          .attributes = {{"relu", {c.kind == Kind::relu ? 1.0 : 0.0}},
                         {"layers", {static_cast<double>(c.layers)}},
                         {"bidirectional", {c.bidirectional ? 1.0 : 0.0}},
                         {"ragged", {c.lengths.empty() ? 0.0 : 1.0}}}};
}

constexpr Kind kinds[] = {Kind::lstm, Kind::gru, Kind::tanh, Kind::relu};

}  // namespace

void add_recurrent_rows(std::vector<Row>& rows) {
  for (Kind kind : kinds) {
    rows.push_back(cell_row({kind, 2, 2, 2}));
    rows.push_back(cell_row({kind, 1, 3, 1}));
    rows.push_back(cell_row({kind, 2, 1, 2, false}));
    rows.push_back(cell_row({kind, 0, 2, 3}));
    rows.push_back(cell_row({kind, 3, 0, 2}));
    rows.push_back(cell_row({kind, 5, 3, 21}));
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
}

void add_random_recurrent_rows(std::vector<Row>& rows, Random& random) {
  for (int trial = 0; trial < 3; ++trial)
    for (Kind kind : kinds)
      rows.push_back(cell_row({kind, random_size(random, 1, 9), random_size(random), random_size(random)}));
  for (std::int64_t children = 0; children < 4; ++children)
    rows.push_back(tree_row(random_size(random, 1, 9), random_size(random), children));
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

}  // namespace reel_test
