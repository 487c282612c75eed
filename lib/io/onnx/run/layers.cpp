#include <algorithm>
#include <array>
#include <limits>

#include <reel/ops.h>

#include "../../../ops/if_needed.h"
#include "run.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

Results run_matmul(const NodeCall& c) { return {matmul(c.first(), c.in(1))}; }
Results run_det(const NodeCall& c) { return {det(c.first())}; }

Results run_gemm(const NodeCall& c) {
  Tensor a = c.integer("transA", 0) != 0 ? transpose(c.first()) : c.in(0);
  Tensor b = c.integer("transB", 0) != 0 ? transpose(Arg(c.in(1), c.where())) : c.in(1);
  double alpha = c.number("alpha", 1), beta = c.number("beta", 1);
  if (!c.has(2)) {
    Tensor product = matmul(Arg(a, c.where()), b);
    return {alpha == 1 ? product : mul(Arg(product, c.where()), alpha)};
  }
  return {addmm(Arg(c.in(2), c.where()), a, b, {.beta = beta, .alpha = alpha})};
}

template <bool logarithm>
Results run_softmax(const NodeCall& c) {
  int axis = c.axis(c.integer("axis", -1), c.in(0).rank());
  return {logarithm ? log_softmax(c.first(), axis) : softmax(c.first(), axis)};
}

Results run_layer_norm(const NodeCall& c) {
  const Tensor& x = c.in(0);
  int axis = c.axis(c.integer("axis", -1), x.rank());
  Shape normalised;
  for (int i = axis; i < x.rank(); ++i) normalised.push_back(x.size(i));
  NormaliseOptions options{.epsilon = c.number("epsilon", 1e-5)};
  if (c.has(2)) return {layer_norm(c.first(), normalised, c.in(1), c.in(2), options)};
  return {layer_norm(c.first(), normalised, c.in(1), options)};
}

Results run_batch_norm(const NodeCall& c) {
  if (c.integer("training_mode", 0) != 0) c.refuse("it is in training mode");
  double epsilon = c.number("epsilon", 1e-5);
  return {batch_norm(c.first(), c.in(1), c.in(2), c.in(3), c.in(4), {.training = false, .epsilon = epsilon})};
}

/// Windows over the spatial axes of (N, C, d…).
struct Windows {
  const NodeCall& c;
  int spatial;
  std::vector<std::int64_t> strides, dilations, pads;

  explicit Windows(const NodeCall& call) : c(call), spatial(c.in(0).rank() - 2) {
    if (spatial < 1 || spatial > 3) c.refuse("its operand has not 1 to 3 spatial axes");
    if (c.text("auto_pad", "NOTSET") != "NOTSET") c.refuse("reel does not run auto_pad");
    strides = numbers("strides", 1, 1);
    dilations = numbers("dilations", 1, 1);
    pads = numbers("pads", 2, 0);
    check_size(
        [this](int i, double size) { return size + static_cast<double>(before(i)) + static_cast<double>(after(i)); });
  }
  // Refuses a result that is far larger than the operand. `grown(i, size)`: its size, of an axis that had `size`.
  template <class Grown>
  void check_size(Grown grown) const {
    const Tensor& x = c.in(0);
    double count = static_cast<double>(x.size(0)) * static_cast<double>(x.size(1));
    for (int i = 0; i < spatial; ++i) count *= grown(i, static_cast<double>(x.size(2 + i)));
    if (count > std::max(static_cast<double>(most_result_elements), 4 * static_cast<double>(x.numel())))
      c.refuse("its result would be too large");
  }
  std::vector<std::int64_t> numbers(const char* name, std::size_t each, std::int64_t otherwise) const {
    std::vector<std::int64_t> given = c.integers(name);
    std::size_t count = each * static_cast<std::size_t>(spatial);
    if (given.empty()) given.assign(count, otherwise);
    if (given.size() != count) c.refuse(std::string("its attribute ") + name + " has another length");
    return given;
  }
  std::int64_t before(int i) const { return pads[static_cast<std::size_t>(i)]; }
  std::int64_t after(int i) const { return pads[static_cast<std::size_t>(spatial + i)]; }
  bool symmetric() const {
    for (int i = 0; i < spatial; ++i)
      if (before(i) != after(i)) return false;
    return true;
  }
  AxisNumbers padding() const { return numbers_of(std::vector<std::int64_t>(pads.begin(), pads.begin() + spatial)); }
  AxisNumbers stride() const { return numbers_of(strides); }
  AxisNumbers dilation() const { return numbers_of(dilations); }
  static AxisNumbers numbers_of(const std::vector<std::int64_t>& list) {
    if (list.size() == 1) return {list[0]};
    if (list.size() == 2) return {list[0], list[1]};
    return {list[0], list[1], list[2]};
  }
  // x with what is around it, where the two ends differ.
  Tensor padded(double value) const { return pad(c.first(), widths(), {.value = value}); }
  std::vector<PadWidth> widths() const {
    std::vector<PadWidth> widths(2);
    for (int i = 0; i < spatial; ++i) widths.push_back({before(i), after(i)});
    return widths;
  }
};

Results run_conv(const NodeCall& c) {
  Windows w(c);
  Tensor x = w.symmetric() ? c.in(0) : w.padded(0);
  ConvolutionOptions options{.stride = w.stride(),
                             .padding = w.symmetric() ? ConvolutionPadding(w.padding()) : ConvolutionPadding(0),
                             .dilation = w.dilation(),
                             .groups = c.integer("group", 1)};
  Arg from(x, c.where());
  auto run = [&](const auto&... bias) {
    return w.spatial == 1   ? conv1d(from, c.in(1), bias..., options)
           : w.spatial == 2 ? conv2d(from, c.in(1), bias..., options)
                            : conv3d(from, c.in(1), bias..., options);
  };
  return {c.has(2) ? run(Arg(c.in(2), c.where())) : run()};
}

Results run_conv_transposed(const NodeCall& c) {
  Windows w(c);
  std::vector<std::int64_t> more = w.numbers("output_padding", 1, 0);
  w.check_size([&](int i, double size) {
    auto at = static_cast<std::size_t>(i);
    auto window = static_cast<double>(c.in(1).size(2 + i)), dilation = static_cast<double>(w.dilations[at]);
    return (size - 1) * static_cast<double>(w.strides[at]) + (window - 1) * dilation + 1 +
           static_cast<double>(more[at]);
  });
  // Without padding, then cut: the two ends may differ.
  TransposedConvolutionOptions options{.stride = w.stride(),
                                       .output_padding = Windows::numbers_of(more),
                                       .dilation = w.dilation(),
                                       .groups = c.integer("group", 1)};
  auto run = [&](const auto&... bias) {
    return w.spatial == 1   ? conv_transposed1d(c.first(), c.in(1), bias..., options)
           : w.spatial == 2 ? conv_transposed2d(c.first(), c.in(1), bias..., options)
                            : conv_transposed3d(c.first(), c.in(1), bias..., options);
  };
  Tensor y = c.has(2) ? run(Arg(c.in(2), c.where())) : run();
  for (int i = 0; i < w.spatial; ++i) {
    std::int64_t size = y.size(2 + i);
    if (w.before(i) < 0 || w.after(i) < 0 || w.before(i) > size || w.after(i) > size - w.before(i))
      c.refuse("its padding is larger than its result");
    y = slice(Arg(y, c.where()), 2 + i, w.before(i), size - w.after(i));
  }
  return {y};
}

template <bool takes_largest>
Results run_pool(const NodeCall& c) {
  Windows w(c);
  AxisNumbers window = Windows::numbers_of(w.numbers("kernel_shape", 1, 0));
  bool ceil = c.integer("ceil_mode", 0) != 0, counts = c.integer("count_include_pad", 0) != 0;
  if (takes_largest) {
    Tensor x = w.symmetric() ? c.in(0) : w.padded(-std::numeric_limits<double>::infinity());
    MaxPoolOptions options{.stride = w.stride(),
                           .padding = w.symmetric() ? ConvolutionPadding(w.padding()) : ConvolutionPadding(0),
                           .dilation = w.dilation(),
                           .ceil_mode = ceil};
    Arg from(x, c.where());
    return {w.spatial == 1   ? max_pool1d(from, window, options)
            : w.spatial == 2 ? max_pool2d(from, window, options)
                             : max_pool3d(from, window, options)};
  }
  auto average = [&](const Tensor& x, const ConvolutionPadding& padding, bool with_padding) {
    AveragePoolOptions options{
        .stride = w.stride(), .padding = padding, .ceil_mode = ceil, .count_include_pad = with_padding};
    Arg from(x, c.where());
    return w.spatial == 1   ? avg_pool1d(from, window, options)
           : w.spatial == 2 ? avg_pool2d(from, window, options)
                            : avg_pool3d(from, window, options);
  };
  if (w.symmetric()) return {average(c.in(0), w.padding(), counts)};
  Tensor y = average(w.padded(0), 0, true);
  if (counts) return {y};
  // The means of the padding's zeros and x's ones say how much of a window is within x.
  Tensor shares = pad(ones_like(c.in(0)), w.widths());
  return {div(Arg(y, c.where()), average(shares, 0, true))};
}

template <bool takes_largest>
Results run_global_pool(const NodeCall& c) {
  Shape axes;
  for (int axis = 2; axis < c.in(0).rank(); ++axis) axes.push_back(axis);
  ReduceOptions keeps{.keepdims = true};
  return {takes_largest ? max(c.first(), axes, keeps) : mean(c.first(), axes, keeps)};
}

// One spatial axis, or several: those whose sizes change.
Results run_resize(const NodeCall& c) {
  std::string mode = c.text("mode", "nearest"), place = c.text("coordinate_transformation_mode", "half_pixel");
  InterpolateOptions options;
  options.mode = mode == "nearest"  ? Interpolation::nearest
                 : mode == "linear" ? Interpolation::linear
                                    : Interpolation::cubic;
  options.align_corners = place == "align_corners";
  bool nearest = mode == "nearest";
  if ((nearest && (place != "asymmetric" || c.text("nearest_mode", "round_prefer_floor") != "floor")) ||
      (!nearest && place != "half_pixel" && place != "align_corners"))
    c.refuse("reel has no such coordinates");
  Tensor x = c.in(0);
  if (x.rank() < 3 || x.rank() > 5) c.refuse("its operand has not 1 to 3 spatial axes");
  std::vector<double> scales;
  std::vector<std::int64_t> sizes;
  if (c.has(3)) {
    sizes = c.list(3);
  } else {
    scales = to_if_needed(Arg(c.in(2), c.where()), f64).to_vector<double>();
    if (scales.size() == static_cast<std::size_t>(x.rank()))
      for (int axis = 0; axis < x.rank(); ++axis) {
        double size = static_cast<double>(x.size(axis)) * scales[static_cast<std::size_t>(axis)];
        sizes.push_back(size >= 0 && size < 1e9 ? static_cast<std::int64_t>(size) : std::int64_t{1} << 40);
      }
  }
  if (sizes.size() != static_cast<std::size_t>(x.rank())) c.refuse("there is not one size for each axis");
  static_cast<void>(c.shape(sizes));
  for (int axis = 0; axis < x.rank(); ++axis) {
    auto at = static_cast<std::size_t>(axis);
    if (axis < 2 && sizes[at] != x.size(axis)) c.refuse("it resizes examples or channels");
  }
  if (!scales.empty()) {
    // All axes that change have one scale, or one alone does.
    int changed = -1;
    for (int axis = 2; axis < x.rank(); ++axis)
      if (scales[static_cast<std::size_t>(axis)] != 1) {
        if (changed >= 0) c.refuse("reel resizes one axis by a scale");
        changed = axis;
      }
    if (changed < 0) return {x};
    Tensor moved = transpose(Arg(x, c.where()), changed, x.rank() - 1);
    std::int64_t length = moved.size(-1), channels = length == 0 ? 0 : moved.numel() / length;
    options.scale = scales[static_cast<std::size_t>(changed)];
    Tensor rows = interpolate(Arg(reshape(moved, {1, channels, length}), c.where()), options);
    Shape shape = moved.shape();
    shape[-1] = rows.size(2);
    return {transpose(reshape(rows, shape), changed, x.rank() - 1)};
  }
  for (int axis = 2; axis < x.rank(); ++axis) options.size.push_back(sizes[static_cast<std::size_t>(axis)]);
  return {interpolate(c.first(), options)};
}

// Blocks of a weight (1, blocks H, I) or bias (1, blocks H) of ONNX in reel's order, transposed.
Tensor in_order(const Tensor& x, std::span<const int> order, bool is_bias) {
  Tensor own = is_bias ? x : transpose(x);
  std::vector<Tensor> parts = chunk(own, static_cast<std::int64_t>(order.size()), -1), ordered;
  for (int block : order) ordered.push_back(parts[static_cast<std::size_t>(block)]);
  return concat(ordered, -1);
}

template <char cell>
Results run_recurrent(const NodeCall& c) {
  static constexpr std::array<int, 4> lstm_order{0, 2, 3, 1}, gru_order{1, 0, 2, 0}, plain_order{0, 0, 0, 0};
  constexpr std::size_t blocks = cell == 'l' ? 4 : cell == 'g' ? 3 : 1;
  std::span<const int> order(cell == 'l'   ? lstm_order.data()
                             : cell == 'g' ? gru_order.data()
                                           : plain_order.data(),
                             blocks);
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
      __builtin_mul_overflow(size, blocks, &rows) || W.size(1) != rows || R.shape() != Shape{1, W.size(1), size})
    c.refuse("its weights do not fit");
  const std::vector<std::string>* activations = c.texts("activations");
  bool is_relu = cell == 'r' && activations && activations->size() == 1 && activations->front() == "Relu";
  if (activations && !is_relu) c.refuse("reel has no such activations");
  RecurrentWeights weights{in_order(squeeze(W, 0), order, false), in_order(squeeze(R, 0), order, false)};
  if (cell == 'g' && c.integer("linear_before_reset", 0) == 0) c.refuse("its reset gate is before the product");
  if (c.has(3)) {
    const Tensor& b = c.in(3);
    if (b.shape() != Shape{1, 2 * W.size(1)}) c.refuse("its biases do not fit");
    std::vector<Tensor> both = chunk(squeeze(b, 0), 2, 0);
    if (cell == 'g') {
      std::vector<Tensor> p = chunk(both[0], 3, 0), q = chunk(both[1], 3, 0);
      weights.bias = concat({p[1] + q[1], p[0] + q[0], p[2], q[2]}, 0);
    } else {
      weights.bias = in_order(both[0] + both[1], order, true);
    }
  }
  Tensor from = reverse ? flip(x, 0) : x, h = c.has(5) ? c.in(5) : Tensor(), y, last, memory;
  if (cell == 'l') {
    LSTMOutput found = lstm(from, {h, c.has(6) ? c.in(6) : Tensor()}, weights);
    y = found.output, last = found.h_n, memory = found.c_n;
  } else if (cell == 'g') {
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

std::span<const Runner> layer_runners() {
  static constexpr Runner table[] = {
      {"MatMul", run_matmul},
      {"Gemm", run_gemm},
      {"Det", run_det},
      {"Softmax", run_softmax<false>},
      {"LogSoftmax", run_softmax<true>},
      {"LayerNormalization", run_layer_norm},
      {"BatchNormalization", run_batch_norm},
      {"Conv", run_conv},
      {"ConvTranspose", run_conv_transposed},
      {"MaxPool", run_pool<true>},
      {"AveragePool", run_pool<false>},
      {"GlobalMaxPool", run_global_pool<true>},
      {"GlobalAveragePool", run_global_pool<false>},
      {"Resize", run_resize},
      {"LSTM", run_recurrent<'l'>},
      {"GRU", run_recurrent<'g'>},
      {"RNN", run_recurrent<'r'>},
  };
  return table;
}

}  // namespace reel::io::onnx
