#include <reel/ops/convolution.h>

#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>

#include <algorithm>

#include "../../core/op_error.h"
#include "../../dispatch/autocast.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/convolution.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../linear_algebra/multiplications.h"
#include "../registry.h"

namespace reel {

using namespace detail;

namespace {

// The three bilinear maps, whose gradients are each other.
Tensor convolve(const Tensor& x, const Tensor& w, const Tensor* bias, const Shape& y, const Convolution& c,
                Location where);
Tensor backward_data(const Tensor& d, const Tensor& w, const Tensor* bias, const Shape& x, const Convolution& c,
                     Location where);
Tensor backward_weights(const Tensor& x, const Tensor& d, const Shape& w, const Convolution& c, Location where);

// Returns null if the call has no bias.
View const* bias_of(const Call& call, View& view) {
  if (call.inputs.size() < 3) return nullptr;
  view = call.input(2);
  return &view;
}

// Counts the multiplications: each element of y is multiplied with those of a filter, in each of the three maps.
void count_filters(const View& y, const View& w) { count_products(y, w.numel / std::max<std::int64_t>(w.dims[0], 1)); }

void accumulate_bias(Gradient& g) {
  constexpr std::size_t in_bias = 2;
  if (g.input_count() <= in_bias || !g.wants(in_bias)) return;
  const Tensor& d = g.output();
  int channel = g.attributes<Convolution>().channels_last ? d.rank() - 1 : 1;
  Shape others;
  for (int axis = 0; axis < d.rank(); ++axis)
    if (axis != channel) others.push_back(axis);
  g.accumulate(in_bias, sum(d, others));
}

// Calls with the same filters and bias are joined along the batch axis.
Joining joining_of_images(const Call&) { return {.by = Joining::By::rows, .shared = inputs({1, 2})}; }

// y = x ∗ w + b;  dx = backward_data(d, w),  dw = backward_weights(x, d),  db = Σ d

constexpr OpInfo forward_op(const char* name, bool internal = false) {
  return {.name = name,
          .forward =
              [](Call& call) {
                View bias;
                count_filters(call.output(), call.input(1));
                kernels(call.output().device)
                    .convolution->forward(call.output(), call.input(0), call.input(1), bias_of(call, bias),
                                          call.attributes<Convolution>());
              },
          .gradient =
              [](Gradient& g) {
                enum { in_x, in_w };
                const Tensor& d = g.output();
                const auto& c = g.attributes<Convolution>();
                if (g.wants(in_x))
                  g.accumulate(in_x, backward_data(d, g.saved_input(in_w), nullptr, g.input_shape(in_x), c, g.where()));
                if (g.wants(in_w))
                  g.accumulate(in_w, backward_weights(g.saved_input(in_x), d, g.input_shape(in_w), c, g.where()));
                accumulate_bias(g);
              },
          .saves_input_for = {inputs({1}), inputs({0})},
          .keeps_input_shapes = true,
          .joining = joining_of_images,
          .shares_weight = true,
          .internal = internal};
}

constexpr OpInfo convolution_op = forward_op("convolution", true);

// y = backward_data(x, w) + b;  dx = d ∗ w,  dw = backward_weights(d, x),  db = Σ d

constexpr OpInfo backward_data_op(const char* name, bool internal = false) {
  return {.name = name,
          .forward =
              [](Call& call) {
                View bias;
                count_filters(call.input(0), call.input(1));
                kernels(call.output().device)
                    .convolution->backward_data(call.output(), call.input(0), call.input(1), bias_of(call, bias),
                                                call.attributes<Convolution>());
              },
          .gradient =
              [](Gradient& g) {
                enum { in_x, in_w };
                const Tensor& d = g.output();
                const auto& c = g.attributes<Convolution>();
                if (g.wants(in_x))
                  g.accumulate(in_x, convolve(d, g.saved_input(in_w), nullptr, g.input_shape(in_x), c, g.where()));
                if (g.wants(in_w))
                  g.accumulate(in_w, backward_weights(d, g.saved_input(in_x), g.input_shape(in_w), c, g.where()));
                accumulate_bias(g);
              },
          .saves_input_for = {inputs({1}), inputs({0})},
          .keeps_input_shapes = true,
          .joining = joining_of_images,
          .shares_weight = true,
          .internal = internal};
}

constexpr OpInfo convolution_backward_data_op = backward_data_op("convolution_backward_data", true);

// w = backward_weights(x, d);  dx = backward_data(d, dw),  dd = x ∗ dw

constexpr OpInfo convolution_backward_weights_op{
    .name = "convolution_backward_weights",
    .forward =
        [](Call& call) {
          count_filters(call.input(1), call.output());
          kernels(call.output().device)
              .convolution->backward_weights(call.output(), call.input(0), call.input(1),
                                             call.attributes<Convolution>());
        },
    .gradient =
        [](Gradient& g) {
          enum { in_x, in_d };
          const Tensor& w = g.output();
          const auto& c = g.attributes<Convolution>();
          if (g.wants(in_x))
            g.accumulate(in_x, backward_data(g.saved_input(in_d), w, nullptr, g.input_shape(in_x), c, g.where()));
          if (g.wants(in_d))
            g.accumulate(in_d, convolve(g.saved_input(in_x), w, nullptr, g.input_shape(in_d), c, g.where()));
        },
    .saves_input_for = {inputs({1}), inputs({0})},
    .keeps_input_shapes = true,
    .internal = true,
};

Tensor invoke_with_bias(const OpInfo& op, const Tensor& x, const Tensor& w, const Tensor* bias, const Shape& y,
                        const Convolution& c, Location where) {
  OutputSpec spec(y, x.dtype(), x.device());
  if (bias) return invoke(op, {&x, &w, bias}, spec, where, bytes_of(c));
  return invoke(op, {&x, &w}, spec, where, bytes_of(c));
}

Tensor convolve(const Tensor& x, const Tensor& w, const Tensor* bias, const Shape& y, const Convolution& c,
                Location where) {
  return invoke_with_bias(convolution_op, x, w, bias, y, c, where);
}

Tensor backward_data(const Tensor& d, const Tensor& w, const Tensor* bias, const Shape& x, const Convolution& c,
                     Location where) {
  return invoke_with_bias(convolution_backward_data_op, d, w, bias, x, c, where);
}

Tensor backward_weights(const Tensor& x, const Tensor& d, const Shape& w, const Convolution& c, Location where) {
  return invoke(convolution_backward_weights_op, {&x, &d}, {w, x.dtype(), x.device()}, where, bytes_of(c));
}

constexpr OpInfo conv_ops[] = {forward_op("conv1d"), forward_op("conv2d"), forward_op("conv3d")};
constexpr OpInfo conv_transposed_ops[] = {backward_data_op("conv_transposed1d"), backward_data_op("conv_transposed2d"),
                                          backward_data_op("conv_transposed3d")};

// The operands of one call, with the checks that do not depend on the direction of the map.
struct Operands {
  const OpInfo& op;
  const Tensor &x, &w, *bias;
  int spatial;
  Layout layout;
  Location where;

  Operands(const OpInfo& op, int spatial, const Arg& x, const Arg& w, const Arg* bias, Layout layout)
      : op(op),
        x(tensor_of(op.name, x)),
        w(tensor_of(op.name, w)),
        bias(bias ? &tensor_of(op.name, *bias) : nullptr),
        spatial(spatial),
        layout(layout),
        where(x.location()) {
    check();
  }

  std::string shapes() const {
    std::string text = fmt::format("x {}, w {}", to_string(x.shape()), to_string(w.shape()));
    return bias ? fmt::format("{}, bias {}", text, to_string(bias->shape())) : text;
  }
  int channel_axis() const { return layout == Layout::nhwc ? spatial + 1 : 1; }
  int axis(int i) const { return layout == Layout::nhwc ? 1 + i : 2 + i; }
  std::int64_t channels() const { return x.size(channel_axis()); }
  std::int64_t size(int i) const { return x.size(axis(i)); }
  std::int64_t window(int i) const { return w.size(2 + i); }

  // x's shape with other channels and spatial sizes.
  Shape result(std::int64_t channels, const std::int64_t* sizes) const {
    Shape shape = x.shape();
    shape[channel_axis()] = channels;
    for (int i = 0; i < spatial; ++i) shape[axis(i)] = sizes[i];
    return shape;
  }

  std::int64_t number(const AxisNumbers& numbers, int i, const char* what, std::int64_t least) const {
    const Shape& given = numbers.given();
    if (given.rank() != 1 && given.rank() != spatial)
      fail<ShapeError>(op.name, where, "{} {} must be one number or one for each of {} spatial axes ({})", what,
                       to_string(given), spatial, shapes());
    std::int64_t found = given[given.rank() == 1 ? 0 : i];
    if (found < least)
      fail<ShapeError>(op.name, where, "{} {} must be at least {} ({})", what, to_string(given), least, shapes());
    return found;
  }

  // The size of the dilated window: (window − 1) dilation + 1.
  std::int64_t extent(int i, std::int64_t dilation) const {
    std::int64_t extent;
    if (__builtin_mul_overflow(window(i) - 1, dilation, &extent) || extent > largest) fail_large("dilation");
    return extent + 1;
  }

  // The hint of an error where x has its channels at the end and the layout says otherwise, or the reverse.
  std::string layout_hint(std::int64_t groups, std::int64_t per_group) const {
    bool last = layout == Layout::nhwc;
    auto fits = [&](std::int64_t channels) { return channels % groups == 0 && channels / groups == per_group; };
    if (fits(channels()) || !fits(x.size(last ? 1 : spatial + 1))) return {};
    return last ? "; x seems to have its channels first: leave out .layout = Layout::nhwc"
                : "; x seems to have its channels last: give .layout = Layout::nhwc";
  }

  void check_groups(std::int64_t groups, std::int64_t per_group, std::int64_t other, const char* other_name) const {
    if (groups < 1) fail<ShapeError>(op.name, where, "groups {} must be at least 1 ({})", groups, shapes());
    if (channels() % groups != 0 || channels() / groups != per_group || other % groups != 0)
      fail<ShapeError>(op.name, where,
                       "with groups {}, {} must be a multiple of them, and w's channels {} those of a "
                       "group of x's {} ({}){}",
                       groups, other_name, per_group, channels(), shapes(), layout_hint(groups, per_group));
  }

  void check_bias(std::int64_t channels) const {
    if (bias && bias->shape() != Shape{channels})
      fail<ShapeError>(op.name, where, "bias must be of shape ({},), a number for each channel of the result ({})",
                       channels, shapes());
  }

  [[noreturn]] void fail_large(const char* what) const {
    fail<ShapeError>(op.name, where, "{} goes beyond any size ({})", what, shapes());
  }

  // Sizes up to this limit can be added and doubled without overflow.
  static constexpr std::int64_t largest = std::int64_t{1} << 60;

 private:
  void check() const {
    check_floating(op.name, x, where);
    for (const Tensor* other : {&w, bias}) {
      if (!other) continue;
      if (other->dtype() != x.dtype())
        fail<DTypeError>(op.name, where, "operands must have one dtype: x {}, {} {}; convert with to(…, {})",
                         describe(x), other == &w ? "w" : "bias", describe(*other), name_of(x.dtype()));
      check_same_device(op.name, x, *other, where);
    }
    if (x.rank() != spatial + 2 || w.rank() != spatial + 2)
      fail<ShapeError>(op.name, where, "x and w must have rank {}: examples, channels and {} spatial {} ({})",
                       spatial + 2, spatial, spatial == 1 ? "axis" : "axes", shapes());
    for (int i = 0; i < spatial; ++i)
      if (window(i) == 0) fail<ShapeError>(op.name, where, "w has no elements along a spatial axis ({})", shapes());
  }
};

Convolution convolution_of(std::int64_t groups, Layout layout) {
  return {{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, groups, layout == Layout::nhwc};
}

Tensor conv_batch(int spatial, const Arg& given_x, const Arg& given_w, const Arg* given_bias,
                  const ConvolutionOptions& options) {
  const AutocastArg x(Precision::low, given_x), w(Precision::low, given_w);
  const AutocastArg bias(Precision::low, given_bias ? *given_bias : Arg(0));
  Operands all(conv_ops[spatial - 1], spatial, x, w, given_bias ? &*bias : nullptr, options.layout);
  const char* name = all.op.name;
  std::int64_t filters = all.w.size(0);
  all.check_groups(options.groups, all.w.size(1), filters, "the number of filters");
  all.check_bias(filters);
  Convolution c = convolution_of(options.groups, options.layout);
  std::int64_t sizes[3];
  for (int i = 0; i < spatial; ++i) {
    int own = 3 - spatial + i;
    std::int64_t stride = c.stride[own] = all.number(options.stride, i, "stride", 1);
    std::int64_t dilation = c.dilation[own] = all.number(options.dilation, i, "dilation", 1);
    std::int64_t extent = all.extent(i, dilation), size = all.size(i), padded = size;
    if (options.padding.by_number()) {
      c.padding[own] = all.number(options.padding.numbers(), i, "padding", 0);
      if (c.padding[own] > Operands::largest) all.fail_large("padding");
      padded += 2 * c.padding[own];
    } else if (options.padding.rule() == Padding::same) {
      // A stride beyond the end leaves one result.
      std::int64_t results = size == 0 ? 0 : (size - 1) / stride + 1;
      std::int64_t lacking = size == 0 ? 0 : std::max<std::int64_t>((results - 1) * stride + extent - size, 0);
      c.padding[own] = lacking / 2;
      sizes[i] = results;
      continue;
    }
    if (extent > padded)
      fail<ShapeError>(name, all.where,
                       "the window spans {} elements along spatial axis {}, but x has {} with its padding ({})", extent,
                       i, padded, all.shapes());
    sizes[i] = (padded - extent) / stride + 1;
  }
  return invoke_with_bias(all.op, all.x, all.w, all.bias, all.result(filters, sizes), c, all.where);
}

Tensor conv_transposed_batch(int spatial, const Arg& given_x, const Arg& given_w, const Arg* given_bias,
                             const TransposedConvolutionOptions& options) {
  const AutocastArg x(Precision::low, given_x), w(Precision::low, given_w);
  const AutocastArg bias(Precision::low, given_bias ? *given_bias : Arg(0));
  Operands all(conv_transposed_ops[spatial - 1], spatial, x, w, given_bias ? &*bias : nullptr, options.layout);
  const char* name = all.op.name;
  std::int64_t groups = options.groups, channels;
  all.check_groups(groups, groups < 1 ? 0 : all.w.size(0) / groups, all.w.size(0), "the first size of w");
  if (__builtin_mul_overflow(all.w.size(1), groups, &channels)) all.fail_large("groups");
  all.check_bias(channels);
  Convolution c = convolution_of(groups, options.layout);
  const Shape& sized = options.output_size;
  if (!sized.empty() && sized.rank() != spatial)
    fail<ShapeError>(name, all.where, "output_size {} must have one number for each of {} spatial axes ({})",
                     to_string(sized), spatial, all.shapes());
  const bool same = !options.padding.by_number() && options.padding.rule() == Padding::same;
  for (std::int64_t more : options.output_padding.given())
    if (more != 0 && (same || !sized.empty()))
      fail<ShapeError>(name, all.where, "output_padding {} contradicts {} ({})",
                       to_string(options.output_padding.given()), same ? "Padding::same" : "output_size", all.shapes());
  std::int64_t sizes[3];
  for (int i = 0; i < spatial; ++i) {
    int own = 3 - spatial + i;
    std::int64_t stride = c.stride[own] = all.number(options.stride, i, "stride", 1);
    std::int64_t dilation = c.dilation[own] = all.number(options.dilation, i, "dilation", 1);
    std::int64_t padding = all.number(options.padding.numbers(), i, "padding", 0);
    std::int64_t more = all.number(options.output_padding, i, "output_padding", 0);
    if (more >= std::max(stride, dilation))
      fail<ShapeError>(name, all.where, "output_padding {} must be less than the stride {} or the dilation {} ({})",
                       more, stride, dilation, all.shapes());
    std::int64_t reach;
    if (padding > Operands::largest) all.fail_large("padding");
    if (__builtin_mul_overflow(all.size(i) - 1, stride, &reach) || reach > Operands::largest ||
        stride > Operands::largest || more > Operands::largest)
      all.fail_large("stride");
    std::int64_t extent = all.extent(i, dilation);
    std::int64_t least = same ? reach + 1 : reach + extent - 2 * padding;
    sizes[i] = same && sized.empty() ? reach + stride : least + more;
    if (!sized.empty()) {
      sizes[i] = sized[i];
      if (sizes[i] < least || sizes[i] - least >= stride)
        fail<ShapeError>(name, all.where, "output_size {} of spatial axis {} must be in [{}, {}] ({})", sizes[i], i,
                         least, least + stride - 1, all.shapes());
    }
    // The padding of the convolution of which this is the gradient.
    c.padding[own] = same ? std::max<std::int64_t>(reach + extent - sizes[i], 0) / 2 : padding;
    if (all.size(i) == 0 || sizes[i] < 1)
      fail<ShapeError>(name, all.where, "nothing is left of spatial axis {} of the result, with padding {} ({})", i,
                       padding, all.shapes());
  }
  return invoke_with_bias(all.op, all.x, all.w, all.bias, all.result(channels, sizes), c, all.where);
}

// f of x, or of a batch with x alone if that is an example without its axis.
template <class F>
Tensor run_batch(const OpInfo& op, int spatial, const Arg& x, F f) {
  if (tensor_of(op.name, x).rank() != spatial + 1) return f(x);
  CallerScope caller(x.location());
  return squeeze(f(Arg(unsqueeze(x, 0), x.location())), 0);
}

Tensor conv(int spatial, const Arg& given_x, const Arg& w, const Arg* bias, const ConvolutionOptions& options) {
  return run_batch(conv_ops[spatial - 1], spatial, given_x,
                   [&](const Arg& x) { return conv_batch(spatial, x, w, bias, options); });
}

Tensor conv_transposed(int spatial, const Arg& given_x, const Arg& w, const Arg* bias,
                       const TransposedConvolutionOptions& options) {
  return run_batch(conv_transposed_ops[spatial - 1], spatial, given_x,
                   [&](const Arg& x) { return conv_transposed_batch(spatial, x, w, bias, options); });
}

}  // namespace

Tensor conv1d(const Arg& x, const Arg& w, const ConvolutionOptions& options) { return conv(1, x, w, nullptr, options); }
Tensor conv1d(const Arg& x, const Arg& w, const Arg& bias, const ConvolutionOptions& options) {
  return conv(1, x, w, &bias, options);
}
Tensor conv2d(const Arg& x, const Arg& w, const ConvolutionOptions& options) { return conv(2, x, w, nullptr, options); }
Tensor conv2d(const Arg& x, const Arg& w, const Arg& bias, const ConvolutionOptions& options) {
  return conv(2, x, w, &bias, options);
}
Tensor conv3d(const Arg& x, const Arg& w, const ConvolutionOptions& options) { return conv(3, x, w, nullptr, options); }
Tensor conv3d(const Arg& x, const Arg& w, const Arg& bias, const ConvolutionOptions& options) {
  return conv(3, x, w, &bias, options);
}

Tensor conv_transposed1d(const Arg& x, const Arg& w, const TransposedConvolutionOptions& options) {
  return conv_transposed(1, x, w, nullptr, options);
}
Tensor conv_transposed1d(const Arg& x, const Arg& w, const Arg& bias, const TransposedConvolutionOptions& options) {
  return conv_transposed(1, x, w, &bias, options);
}
Tensor conv_transposed2d(const Arg& x, const Arg& w, const TransposedConvolutionOptions& options) {
  return conv_transposed(2, x, w, nullptr, options);
}
Tensor conv_transposed2d(const Arg& x, const Arg& w, const Arg& bias, const TransposedConvolutionOptions& options) {
  return conv_transposed(2, x, w, &bias, options);
}
Tensor conv_transposed3d(const Arg& x, const Arg& w, const TransposedConvolutionOptions& options) {
  return conv_transposed(3, x, w, nullptr, options);
}
Tensor conv_transposed3d(const Arg& x, const Arg& w, const Arg& bias, const TransposedConvolutionOptions& options) {
  return conv_transposed(3, x, w, &bias, options);
}

OpList detail::convolution_ops() {
  static constexpr const OpInfo* ops[] = {&conv_ops[0],
                                          &conv_ops[1],
                                          &conv_ops[2],
                                          &conv_transposed_ops[0],
                                          &conv_transposed_ops[1],
                                          &conv_transposed_ops[2],
                                          &convolution_op,
                                          &convolution_backward_data_op,
                                          &convolution_backward_weights_op};
  return ops;
}

}  // namespace reel
