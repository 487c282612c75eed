#include "../../../ops/recurrent/recurrent.h"

#include <array>

#include <reel/ops.h>

#include "operators.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

std::string sigmoid(Writer& w, const std::string& x) { return w.node("Sigmoid", {x}); }
std::string tanh(Writer& w, const std::string& x) { return w.node("Tanh", {x}); }
std::string add(Writer& w, const std::string& a, const std::string& b) { return w.node("Add", {a, b}); }
std::string mul(Writer& w, const std::string& a, const std::string& b) { return w.node("Mul", {a, b}); }
std::string product(Writer& w, const std::string& a, const std::string& b) { return w.node("MatMul", {a, b}); }

// Equal blocks along an axis.
Names blocks(Writer& w, const std::string& x, int axis, std::int64_t count, std::int64_t size) {
  return w.nodes("Split", {x, w.integers(std::vector<std::int64_t>(static_cast<std::size_t>(count), size))},
                 static_cast<std::size_t>(count), {attribute("axis", std::int64_t{axis})});
}
std::string joined(Writer& w, const Names& parts, int axis) {
  return w.node("Concat", parts, {attribute("axis", std::int64_t{axis})});
}
std::string stacked(Writer& w, const std::string& x) { return w.node("Unsqueeze", {x, w.integers({0})}); }

std::int64_t hidden_size(Writer& w) { return w.fixed(w.out_size(0, w.out().rank() - 1), "the hidden size"); }

// h' is output 0 and c' output 2; a: the arguments of i, f, g, o.
void write_lstm_state(Writer& w, const std::string& a, const std::string& c) {
  w.refuse_output(1, "the gates of a cell");
  Names gates = blocks(w, a, 1, 4, hidden_size(w));
  std::string next = add(w, mul(w, sigmoid(w, gates[1]), c), mul(w, sigmoid(w, gates[0]), tanh(w, gates[2])));
  w.result(2, next);
  w.result(0, mul(w, sigmoid(w, gates[3]), tanh(w, next)));
}

void write_lstm_cell(Writer& w) {
  std::string a = add(w, w.in(0), w.in(1));
  write_lstm_state(w, w.has(3) ? add(w, a, w.in(3)) : a, w.in(2));
}

// A weight as it is multiplied.
std::string weight(Writer& w, std::size_t input, DType rounding) {
  return rounding == DType::f32 ? w.in(input) : w.in_rounded(input, rounding);
}

void write_weight_product(Writer& w) {
  w.result(product(w, w.in(0), weight(w, 1, w.attributes<WeightAttributes>().rounding())));
}

// x, h, c, W_h [, W_x [, b]]
void write_lstm_step(Writer& w) {
  DType rounding = w.attributes<WeightAttributes>().rounding();
  std::string p = w.has(4) ? product(w, w.in(0), weight(w, 4, rounding)) : w.in(0);
  std::string a = add(w, p, product(w, w.in(1), weight(w, 3, rounding)));
  write_lstm_state(w, w.has(5) ? add(w, a, w.in(5)) : a, w.in(2));
}

// p, q, h, b
void write_gru_cell(Writer& w) {
  w.refuse_output(1, "the gates of a cell");
  std::int64_t size = hidden_size(w);
  Names p = blocks(w, w.in(0), 1, 3, size), q = blocks(w, w.in(1), 1, 3, size), b = blocks(w, w.in(3), 0, 4, size);
  std::string r = sigmoid(w, add(w, add(w, p[0], q[0]), b[0])), z = sigmoid(w, add(w, add(w, p[1], q[1]), b[1]));
  std::string n = tanh(w, add(w, add(w, p[2], b[2]), mul(w, r, add(w, q[2], b[3]))));
  w.result(add(w, n, mul(w, z, w.node("Sub", {w.in(2), n}))));
}

void write_rnn_cell(Writer& w) {
  std::string a = add(w, add(w, w.in(0), w.in(1)), w.in(2));
  bool is_relu = w.attributes<CellActivationAttributes>().cell() == RecurrentCell::rnn_relu;
  w.result(w.node(is_relu ? "Relu" : "Tanh", {a}));
}

// gates: those of i, o, u and of f for each child.
void write_tree_state(Writer& w, const Names& gates, const Names& memories) {
  w.refuse_output(1, "the gates of a cell");
  std::string c = mul(w, sigmoid(w, gates[0]), tanh(w, gates[2]));
  for (std::size_t k = 0; k < memories.size(); ++k) c = add(w, c, mul(w, sigmoid(w, gates[3 + k]), memories[k]));
  w.result(2, c);
  w.result(0, mul(w, sigmoid(w, gates[1]), tanh(w, c)));
}

void write_tree_cell(Writer& w) {
  Names memories;
  for (std::size_t k = 1; k < w.input_count(); ++k) memories.push_back(w.in(k));
  auto count = static_cast<std::int64_t>(3 + memories.size());
  write_tree_state(w, blocks(w, w.in(0), 1, count, hidden_size(w)), memories);
}

// p, W, h_1, c_1, h_2, c_2 …
void write_tree_step(Writer& w) {
  w.refuse_output(3, "the joined states of children");
  Names h, c;
  for (std::size_t k = 2; k + 1 < w.input_count(); k += 2) {
    h.push_back(w.in(k));
    c.push_back(w.in(k + 1));
  }
  std::int64_t size = hidden_size(w);
  Names q = blocks(w, product(w, h.size() == 1 ? h[0] : joined(w, h, 1), w.in(1)), 1,
                   static_cast<std::int64_t>(3 + h.size()), size);
  Names p = blocks(w, w.in(0), w.tensor(0).rank() - 1, 4, size), gates;
  for (std::size_t i = 0; i < q.size(); ++i) gates.push_back(add(w, q[i], p[std::min<std::size_t>(i, 3)]));
  write_tree_state(w, gates, c);
}

// For each block of ONNX's weights, the index of reel's.
std::span<const std::size_t> block_order(RecurrentCell cell) {
  static constexpr std::array<std::size_t, 4> lstm{0, 3, 1, 2};
  static constexpr std::array<std::size_t, 3> gru{1, 0, 2};
  if (cell == RecurrentCell::lstm) return lstm;
  if (cell == RecurrentCell::gru) return gru;
  return std::span(lstm).first(1);
}

// A weight (I, blocks H) as ONNX's (1, blocks H, I), or a bias as (1, blocks H): the blocks in another order.
std::string reordered(Writer& w, const std::string& x, bool is_bias, std::span<const std::size_t> order,
                      std::int64_t size) {
  Names parts = blocks(w, is_bias ? x : w.transposed(x, {1, 0}), 0, static_cast<std::int64_t>(order.size()), size),
        ordered;
  for (std::size_t block : order) ordered.push_back(parts[block]);
  return stacked(w, ordered.size() == 1 ? ordered[0] : joined(w, ordered, 0));
}

// True if all sequences have all steps: the rows are (T, B).
bool has_all_steps(Writer& w, std::size_t run) {
  const Tensor& counts = w.tensor(in_counts, run);
  for (std::int64_t count : counts.to_vector<std::int64_t>())
    if (count != w.tensor(in_h, run).size(0)) return false;
  return true;
}

// A layer over rows of all steps, as ONNX's operator over (T, B, I).
void write_net(Writer& w) {
  for (std::size_t run = 0; run < w.run_count(); ++run)
    if (!has_all_steps(w, run))
      w.refuse(
          "its lengths are read by the program and would be fixed in the file: export a layer without lengths, for "
          "sequences of one length");
  const auto& attributes = w.attributes<NetAttributes>();
  RecurrentCell cell = attributes.cell();
  bool lstm = cell == RecurrentCell::lstm, gru = cell == RecurrentCell::gru;
  std::int64_t size = hidden_size(w);
  std::size_t runs = w.run_count();
  std::span<const std::size_t> order = block_order(cell);
  auto block_count = static_cast<std::int64_t>(order.size());
  DType dtype = w.tensor(in_x).dtype();
  Numbers steps = w.in_size(in_counts, 0), batch = w.in_size(in_h, 0);
  std::string x = w.reshape(w.in(in_x), {steps, batch, w.in_size(in_x, 1)});
  std::string bias;
  if (gru) {
    // ONNX adds two biases; the one behind the product of the third block is reel's fourth.
    Names b = blocks(w, w.in(in_bias), 0, 4, size);
    std::string none = w.node("Expand", {w.scalar(0, dtype), w.integers({2 * size})});
    bias = stacked(w, joined(w, {b[1], b[0], b[2], none, b[3]}, 0));
  } else {
    std::string own = reordered(w, w.in(in_bias), true, order, size);
    std::string none = w.node("Expand", {w.scalar(0, dtype), w.integers({1, block_count * size})});
    bias = joined(w, {own, none}, 1);
  }
  Names inputs{x,
               reordered(w, weight(w, in_W_x, attributes.rounding()), false, order, size),
               reordered(w, weight(w, in_W_h, attributes.rounding()), false, order, size),
               bias,
               "",
               stacked(w, w.in(in_h))};
  if (lstm) inputs.push_back(stacked(w, w.in(in_c)));
  Attributes about{attribute("hidden_size", size), attribute("direction", attributes.reverse ? "reverse" : "forward")};
  if (gru) about.push_back(attribute("linear_before_reset", std::int64_t{1}));
  if (cell == RecurrentCell::rnn_relu) about.push_back(attribute("activations", std::vector<std::string>{"Relu"}));
  Names y = w.nodes(lstm ? "LSTM" : gru ? "GRU" : "RNN", inputs, lstm ? 3 : 2, about);
  w.result(0, w.reshape(y[0], {w.out_size(0, 0), Numbers(runs, size)}));
  w.result(1, w.node("Squeeze", {y[1], w.integers({0})}));
  if (!lstm) return;
  w.refuse_output(2, "the gates of all steps");
  w.refuse_output(3, "the cell states of all steps");
  w.result(4, w.node("Squeeze", {y[2], w.integers({0})}));
}

// Blocks of a weight (1, blocks H, I) or bias (1, blocks H) of ONNX in reel's order, transposed.
Tensor in_order(const Tensor& x, std::span<const std::size_t> order, bool is_bias) {
  Tensor own = is_bias ? x : transpose(x);
  std::vector<Tensor> parts = chunk(own, static_cast<std::int64_t>(order.size()), -1), ordered(order.size());
  for (std::size_t block = 0; block < order.size(); ++block) ordered[order[block]] = parts[block];
  return concat(ordered, -1);
}

template <RecurrentCell cell>
Results run_recurrent(const NodeCall& c) {
  constexpr bool is_lstm = cell == RecurrentCell::lstm, is_gru = cell == RecurrentCell::gru;
  std::span<const std::size_t> order = block_order(cell);
  CallerScope caller(c.where());
  const Tensor &x = c.in(0), &W = c.in(1), &R = c.in(2);
  std::string direction = c.text("direction", "forward");
  std::int64_t size = c.integer("hidden_size", 0), rows;
  bool reverse = direction == "reverse";
  if (direction != "forward" && !reverse) c.refuse("it has two directions");
  if (c.has(4)) c.refuse("it has lengths of sequences");
  if (c.has_attribute("clip") || c.has_attribute("layout") || c.integer("input_forget", 0) != 0)
    c.refuse("reel has no such attribute");
  if (x.rank() != 3 || W.rank() != 3 || R.rank() != 3 || W.size(0) != 1 || size < 1 ||
      __builtin_mul_overflow(size, order.size(), &rows) || W.size(1) != rows || R.shape() != Shape{1, W.size(1), size})
    c.refuse("its weights do not fit");
  const std::vector<std::string>* activations = c.texts("activations");
  bool is_relu = !is_lstm && !is_gru && activations && activations->size() == 1 && activations->front() == "Relu";
  if (activations && !is_relu) c.refuse("reel has no such activations");
  RecurrentWeights weights{in_order(squeeze(W, 0), order, false), in_order(squeeze(R, 0), order, false)};
  if (is_gru && c.integer("linear_before_reset", 0) == 0) c.refuse("its reset gate is before the product");
  if (c.has(3)) {
    const Tensor& b = c.in(3);
    if (b.shape() != Shape{1, 2 * W.size(1)}) c.refuse("its biases do not fit");
    std::vector<Tensor> both = chunk(squeeze(b, 0), 2, 0);
    if (is_gru) {
      std::vector<Tensor> p = chunk(both[0], 3, 0), q = chunk(both[1], 3, 0);
      weights.bias = concat({p[1] + q[1], p[0] + q[0], p[2], q[2]}, 0);
    } else {
      weights.bias = in_order(both[0] + both[1], order, true);
    }
  }
  Tensor from = reverse ? flip(x, 0) : x, h = c.has(5) ? c.in(5) : Tensor(), y, last, memory;
  if (is_lstm) {
    LSTMOutput found = lstm(from, {h, c.has(6) ? c.in(6) : Tensor()}, weights);
    y = found.output, last = found.h_n, memory = found.c_n;
  } else if (is_gru) {
    RecurrentOutput found = gru(from, h, weights);
    y = found.output, last = found.h_n;
  } else {
    RNNOptions options;
    options.activation = is_relu ? RNNActivation::relu : RNNActivation::tanh;
    RecurrentOutput found = rnn(from, h, weights, options);
    y = found.output, last = found.h_n;
  }
  return {unsqueeze(reverse ? flip(y, 0) : y, 1), last, memory};
}

}  // namespace

std::span<const Operator> recurrent_operators() {
  static constexpr Operator table[] = {
      {.ops = "lstm_cell", .write = write_lstm_cell},
      {.ops = "weight_product", .write = write_weight_product},
      {.ops = "lstm_step", .write = write_lstm_step},
      {.ops = "gru_cell", .write = write_gru_cell},
      {.ops = "rnn_cell", .write = write_rnn_cell},
      {.ops = "tree_lstm_cell", .write = write_tree_cell},
      {.ops = "tree_lstm_step", .write = write_tree_step},
      {"lstm", "LSTM", run_recurrent<RecurrentCell::lstm>, write_net},
      {"gru", "GRU", run_recurrent<RecurrentCell::gru>, write_net},
      {"rnn", "RNN", run_recurrent<RecurrentCell::rnn_tanh>, write_net},
  };
  return table;
}

}  // namespace reel::io::onnx
