#include "../../../kernels/normalise.h"

#include <algorithm>
#include <limits>

#include <reel/ops.h>

#include "../../../ops/normalise/attributes.h"
#include "operators.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

// Input 1, if there is one, is true where an element takes part.
template <bool logarithm>
void write_softmax(Writer& w) {
  const char* type = logarithm ? "LogSoftmax" : "Softmax";
  auto axis = attribute("axis", w.attributes<AxisAttributes>().axis);
  if (w.tensor(0).rank() == 0) {
    std::string row = w.node("Unsqueeze", {w.in(0), w.integers({0})});
    return w.result(w.node("Squeeze", {w.node(type, {row}, {axis}), w.integers({0})}));
  }
  if (!w.has(1)) return w.result(w.node(type, {w.in(0)}, {axis}));
  DType dtype = w.out().dtype();
  double lowest = dtype == f64 ? -1e300 : dtype == f16 ? -65504 : -3e38;
  std::string scores = w.node("Where", {w.in(1), w.in(0), w.scalar(lowest, dtype)});
  std::string y = w.node(type, {scores}, {axis});
  w.result(w.node("Where", {w.in(1), y, w.scalar(logarithm ? minus_infinity : 0, dtype)}));
}

// (x − mean) / √(variance + ε) over axes, in the dtype of the weights.
std::string normalised(Writer& w, const std::string& x, const std::vector<std::int64_t>& axes, double epsilon,
                       bool centred, DType dtype) {
  Attributes over{attribute("axes", axes), attribute("keepdims", std::int64_t{1})};
  std::string apart = centred ? w.node("Sub", {x, w.node("ReduceMean", {x}, over)}) : x;
  std::string variance = w.node("ReduceMean", {w.node("Mul", {apart, apart})}, over);
  std::string deviation = w.node("Sqrt", {w.node("Add", {variance, w.scalar(epsilon, dtype)})});
  return w.node("Div", {apart, deviation});
}

// The axes from the first normalised one on, which the weights have.
std::vector<std::int64_t> last_axes(Writer& w) {
  std::vector<std::int64_t> axes;
  int rank = w.tensor(0).rank();
  for (int axis = rank - w.tensor(1).rank(); axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

// The length of a row may depend on the named axes.
double epsilon_of(Writer& w) {
  double epsilon = w.attributes<RowForm>(0).epsilon;
  w.fixed(w.numbers([&](std::size_t run) { return w.attributes<RowForm>(run).epsilon == epsilon; }),
          "whether its epsilon is that of the first call");
  return epsilon;
}

void write_layer_norm(Writer& w) {
  w.refuse_output(1, "the means of a layer_norm");
  w.refuse_output(2, "the variances of a layer_norm");
  DType dtype = w.tensor(1).dtype();
  double epsilon = epsilon_of(w);
  std::string x = w.in_as(0, dtype), y;
  std::vector<std::int64_t> axes = last_axes(w);
  if (dtype == f32) {
    y = w.node("LayerNormalization", {x, w.in(1), w.in(2)},
               {attribute("axis", axes.front()), attribute("epsilon", epsilon)});
  } else {
    y = w.node("Mul", {normalised(w, x, axes, epsilon, true, dtype), w.in(1)});
    y = w.node("Add", {y, w.in(2)});
  }
  w.result(dtype == w.out().dtype() ? y : w.cast(y, w.out().dtype()));
}

void write_rms_norm(Writer& w) {
  DType dtype = w.tensor(1).dtype();
  std::string x = w.in_as(0, dtype);
  std::string y = w.node("Mul", {normalised(w, x, last_axes(w), epsilon_of(w), false, dtype), w.in(1)});
  w.result(dtype == w.out().dtype() ? y : w.cast(y, w.out().dtype()));
}

// x: (N, C, …) in groups of channels; a weight for each channel, or for each of its elements.
void write_group_norm(Writer& w) {
  w.refuse_output(1, "the means of a group_norm");
  w.refuse_output(2, "the variances of a group_norm");
  DType dtype = w.tensor(1).dtype();
  std::int64_t groups = w.fixed(w.numbers([&](std::size_t run) {
    const Tensor& x = w.tensor(0, run);
    return x.numel() / std::max<std::int64_t>(x.size(0) * w.attributes<RowForm>(run).length, 1);
  }),
                                "the number of groups");
  std::size_t runs = w.run_count();
  Numbers rest = w.numbers([&](std::size_t run) { return w.attributes<RowForm>(run).length; });
  std::string rows = w.reshape(w.in_as(0, dtype), {w.in_size(0, 0), Numbers(runs, groups), rest});
  std::string y = normalised(w, rows, {2}, epsilon_of(w), true, dtype);
  y = w.reshape(y, w.in_shape(0));
  std::vector<Numbers> shape = w.in_shape(0);
  shape.erase(shape.begin());
  if (w.tensor(1).rank() == 1) std::fill(shape.begin() + 1, shape.end(), Numbers(runs, 1));
  y = w.node("Mul", {y, w.reshape(w.in(1), shape)});
  y = w.node("Add", {y, w.reshape(w.in(2), shape)});
  w.result(dtype == w.out().dtype() ? y : w.cast(y, w.out().dtype()));
}

std::string by_channel(Writer& w, const std::string& numbers) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(w.tensor(0).rank() - 1), 1);
  shape[0] = -1;
  return w.node("Reshape", {numbers, w.integers(shape)});
}

void write_batch_norm(Writer& w) {
  w.refuse_output(1, "the means of a batch_norm");
  w.refuse_output(2, "the variances of a batch_norm");
  DType dtype = w.tensor(1).dtype();
  std::vector<std::int64_t> axes{0};
  for (int axis = 2; axis < w.tensor(0).rank(); ++axis) axes.push_back(axis);
  std::string y = normalised(w, w.in_as(0, dtype), axes, w.attributes<ChannelForm>().epsilon, true, dtype);
  y = w.node("Add", {w.node("Mul", {y, by_channel(w, w.in(1))}), by_channel(w, w.in(2))});
  w.result(dtype == w.out().dtype() ? y : w.cast(y, w.out().dtype()));
}

void write_batch_norm_evaluation(Writer& w) {
  DType dtype = w.tensor(1).dtype();
  std::string y =
      w.node("BatchNormalization", {w.in_as(0, dtype), w.in(1), w.in(2), w.in_as(3, dtype), w.in_as(4, dtype)},
             {attribute("epsilon", static_cast<double>(w.attributes<ChannelForm>().epsilon))});
  w.result(dtype == w.out().dtype() ? y : w.cast(y, w.out().dtype()));
}

// q: (B, L, E), k: (B, S, E), v: (B, S, V), and a mask that is added to the scores.
void write_attention(Writer& w) {
  w.refuse_output(1, "the normalisers of an attention");
  const auto& attributes = w.attributes<AttentionAttributes>();
  DType dtype = w.out().dtype();
  std::string scores = w.node("MatMul", {w.in(0), w.transposed(w.in(1), {0, 2, 1})});
  scores = w.node("Mul", {scores, w.scalar(attributes.scale, dtype)});
  if (w.has(3)) scores = w.node("Add", {scores, w.in_as(3, dtype)});
  std::string lowest = w.scalar(minus_infinity, dtype), nothing = w.scalar(0, dtype);
  if (attributes.causal) {
    auto range = [&](std::size_t input) {
      return w.node("Range", {w.integer(0), w.node("Squeeze", {w.size(w.in_size(input, 1))}), w.integer(1)});
    };
    std::string queries = w.node("Unsqueeze", {range(0), w.integers({1})});
    scores = w.node("Where", {w.node("LessOrEqual", {range(1), queries}), scores, lowest});
  }
  auto last = attribute("axis", std::int64_t{-1});
  if (!w.has(3)) return w.result(w.node("MatMul", {w.node("Softmax", {scores}, {last}), w.in(2)}));
  // A query all of whose keys are masked has the result 0.
  std::string most = w.node("ReduceMax", {scores},
                            {attribute("axes", std::vector<std::int64_t>{-1}), attribute("keepdims", std::int64_t{1})});
  std::string none = w.node("Equal", {most, lowest});
  std::string weights = w.node("Softmax", {w.node("Where", {none, nothing, scores})}, {last});
  w.result(w.node("MatMul", {w.node("Where", {none, nothing, weights}), w.in(2)}));
}

template <bool logarithm>
Results run_softmax(const NodeCall& c) {
  int axis = c.axis(c.integer("axis", -1), c.in(0).rank());
  return {logarithm ? log_softmax(c.first(), axis) : softmax(c.first(), axis)};
}

Results run_layer_norm(const NodeCall& c) {
  const Tensor& x = c.in(0);
  int axis = c.axis(c.integer("axis", -1), x.rank());
  Shape shape;
  for (int i = axis; i < x.rank(); ++i) shape.push_back(x.size(i));
  NormaliseOptions options{.epsilon = c.number("epsilon", 1e-5)};
  if (c.has(2)) return {layer_norm(c.first(), shape, c.in(1), c.in(2), options)};
  return {layer_norm(c.first(), shape, c.in(1), options)};
}

Results run_batch_norm(const NodeCall& c) {
  if (c.integer("training_mode", 0) != 0) c.refuse("it is in training mode");
  double epsilon = c.number("epsilon", 1e-5);
  return {batch_norm(c.first(), c.in(1), c.in(2), c.in(3), c.in(4), {.training = false, .epsilon = epsilon})};
}

}  // namespace

std::span<const Operator> normalise_operators() {
  static constexpr Operator table[] = {
      {"softmax", "Softmax", run_softmax<false>, write_softmax<false>},
      {"log_softmax", "LogSoftmax", run_softmax<true>, write_softmax<true>},
      {"layer_norm", "LayerNormalization", run_layer_norm, write_layer_norm},
      {.ops = "rms_norm", .write = write_rms_norm},
      {.ops = "group_norm instance_norm", .write = write_group_norm},
      {.ops = "batch_norm", .write = write_batch_norm},
      {"batch_norm_evaluation", "BatchNormalization", run_batch_norm, write_batch_norm_evaluation},
      {.ops = "scaled_dot_product_attention", .write = write_attention},
  };
  return table;
}

}  // namespace reel::io::onnx
