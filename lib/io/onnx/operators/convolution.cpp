#include "../../../kernels/convolution.h"

#include <algorithm>
#include <limits>

#include <reel/interpolation.h>
#include <reel/ops.h>

#include "../../../kernels/pooling.h"
#include "../../../kernels/resample.h"
#include "../../../ops/if_needed.h"
#include "operators.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

// The order of axes that moves the channels from the end to axis 1, and the one that moves them back.
std::vector<std::int64_t> channels_first(int rank) {
  std::vector<std::int64_t> order{0, rank - 1};
  for (int axis = 1; axis + 1 < rank; ++axis) order.push_back(axis);
  return order;
}
std::vector<std::int64_t> channels_last(int rank) {
  std::vector<std::int64_t> order{0};
  for (int axis = 2; axis < rank; ++axis) order.push_back(axis);
  order.push_back(1);
  return order;
}

/// The numbers of windows over spatial axes, which are the last ones of three.
struct Windows {
  Writer& w;
  int spatial;
  bool last;  // the channels
  std::vector<std::int64_t> strides = {}, dilations = {}, begins = {}, ends = {};

  Windows(Writer& writer, bool channels_at_end) : w(writer), spatial(w.tensor(0).rank() - 2), last(channels_at_end) {
    for (int i = 0; i < spatial; ++i)
      if (w.tensor(0).size(axis(i)) == 0 || w.out().size(axis(i)) == 0) w.refuse("a spatial axis has no elements");
  }

  int axis(int i) const { return last ? 1 + i : 2 + i; }
  std::string x() const { return last ? w.transposed(w.in(0), channels_first(spatial + 2)) : w.in(0); }
  void result(const std::string& y) const { w.result(last ? w.transposed(y, channels_last(spatial + 2)) : y); }
  std::vector<std::int64_t> pads() const {
    std::vector<std::int64_t> all = begins;
    all.insert(all.end(), ends.begin(), ends.end());
    return all;
  }
  void add(std::int64_t stride, std::int64_t dilation, std::int64_t before, std::int64_t after) {
    strides.push_back(stride);
    dilations.push_back(dilation);
    begins.push_back(before);
    ends.push_back(after);
  }
};

// The padding behind the last element with which the sizes are those of the runs, rounded down.
std::int64_t padding_after(Writer& w, const Numbers& from, const Numbers& to, std::int64_t extent, std::int64_t stride,
                           std::int64_t before) {
  auto fits = [&](std::int64_t after) {
    for (std::size_t run = 0; run < from.size(); ++run)
      if ((from[run] + before + after - extent) / stride + 1 != to[run]) return false;
    return true;
  };
  if (fits(before)) return before;
  for (std::int64_t after = 0; after <= extent + stride; ++after)
    if (fits(after)) return after;
  w.refuse("its padding depends on the size of an axis");
}

void write_convolution(Writer& w) {
  const auto& c = w.attributes<Convolution>();
  Windows windows(w, c.channels_last != 0);
  std::vector<std::int64_t> kernel;
  for (int i = 0; i < windows.spatial; ++i) {
    int own = 3 - windows.spatial + i;
    std::int64_t size = w.fixed(w.in_size(1, 2 + i), "the size of the filter");
    kernel.push_back(size);
    std::int64_t before = c.padding[own], extent = (size - 1) * c.dilation[own] + 1;
    std::int64_t after =
        padding_after(w, w.in_size(0, windows.axis(i)), w.out_size(0, windows.axis(i)), extent, c.stride[own], before);
    windows.add(c.stride[own], c.dilation[own], before, after);
  }
  Names inputs{windows.x(), w.in(1)};
  if (w.has(2)) inputs.push_back(w.in(2));
  windows.result(w.node(
      "Conv", inputs,
      {attribute("kernel_shape", kernel), attribute("strides", windows.strides),
       attribute("dilations", windows.dilations), attribute("pads", windows.pads()), attribute("group", c.groups)}));
}

void write_transposed_convolution(Writer& w) {
  const auto& c = w.attributes<Convolution>();
  Windows windows(w, c.channels_last != 0);
  std::vector<std::int64_t> kernel, more;
  for (int i = 0; i < windows.spatial; ++i) {
    int own = 3 - windows.spatial + i;
    std::int64_t size = w.fixed(w.in_size(1, 2 + i), "the size of the filter");
    kernel.push_back(size);
    std::int64_t extent = (size - 1) * c.dilation[own] + 1, padding = c.padding[own];
    Numbers from = w.in_size(0, windows.axis(i)), to = w.out_size(0, windows.axis(i));
    std::int64_t missing = w.fixed(
        w.numbers([&](std::size_t run) { return to[run] - ((from[run] - 1) * c.stride[own] + extent - 2 * padding); }),
        "the padding of the result");
    windows.add(c.stride[own], c.dilation[own], padding, missing < 0 ? padding - missing : padding);
    more.push_back(std::max<std::int64_t>(missing, 0));
  }
  Names inputs{windows.x(), w.in(1)};
  if (w.has(2)) inputs.push_back(w.in(2));
  windows.result(w.node("ConvTranspose", inputs,
                        {attribute("kernel_shape", kernel), attribute("strides", windows.strides),
                         attribute("dilations", windows.dilations), attribute("pads", windows.pads()),
                         attribute("output_padding", more), attribute("group", c.groups)}));
}

bool is_global(Writer& w, const Windows& windows) {
  for (int i = 0; i < windows.spatial; ++i)
    if (w.out_size(0, windows.axis(i)) != Numbers(w.run_count(), 1)) return false;
  return true;
}

template <bool takes_largest>
void write_pool(Writer& w) {
  const auto& p = w.attributes<Pooling>(0);
  w.refuse_output(1, "the indices of the largest elements in reel's order");
  Windows windows(w, p.channels_last != 0);
  if (p.adaptive && is_global(w, windows))
    return windows.result(w.node(takes_largest ? "GlobalMaxPool" : "GlobalAveragePool", {windows.x()}));
  std::vector<std::int64_t> kernel;
  std::int64_t rounds_up = 0;
  for (int i = 0; i < windows.spatial; ++i) {
    int own = 3 - windows.spatial + i;
    Numbers from = w.in_size(0, windows.axis(i)), to = w.out_size(0, windows.axis(i));
    if (p.adaptive) {
      std::int64_t whole = w.fixed(from, "an axis of an adaptive pooling"), parts = to[0];
      if (whole % parts != 0) w.refuse("its windows are not of one size");
      kernel.push_back(whole / parts);
      windows.add(whole / parts, 1, 0, 0);
      continue;
    }
    for (auto part : {&Pooling::window, &Pooling::stride, &Pooling::padding, &Pooling::dilation})
      w.fixed(w.numbers([&](std::size_t run) { return (w.attributes<Pooling>(run).*part)[own]; }), "its window");
    kernel.push_back(p.window[own]);
    std::int64_t extent = (p.window[own] - 1) * p.dilation[own] + 1, before = p.padding[own], stride = p.stride[own];
    auto fits = [&](std::int64_t more) {
      for (std::size_t run = 0; run < from.size(); ++run)
        if ((from[run] + 2 * before - extent + more) / stride + 1 != to[run]) return false;
      return true;
    };
    std::int64_t after = before;
    if (!fits(0)) {
      if (fits(stride - 1))
        rounds_up = 1;
      else
        after = padding_after(w, from, to, extent, stride, before);
    }
    windows.add(stride, p.dilation[own], before, after);
  }
  Attributes attributes{attribute("kernel_shape", kernel), attribute("strides", windows.strides),
                        attribute("pads", windows.pads()), attribute("ceil_mode", rounds_up)};
  if (takes_largest) {
    attributes.push_back(attribute("dilations", windows.dilations));
  } else {
    // Runtimes differ in whether a window that reaches beyond the padding counts what is there.
    if (rounds_up && p.counts_padding) w.refuse("its windows reach beyond the padding, which is counted");
    attributes.push_back(attribute("count_include_pad", p.counts_padding));
  }
  windows.result(w.node(takes_largest ? "MaxPool" : "AveragePool", {windows.x()}, attributes));
}

// One axis after the other.
void write_interpolate(Writer& w) {
  const auto& taps = w.attributes<AxisTaps>(0);
  int axis = static_cast<int>(taps.axis), rank = w.tensor(0).rank();
  Numbers from = w.in_size(0, axis), to = w.out_size(0, axis);
  auto mode = static_cast<Interpolation>(taps.mode);
  if (mode == Interpolation::area) w.refuse("ONNX has no resampling by means of areas");
  double ratio = static_cast<double>(from[0]) / static_cast<double>(to[0]);
  bool by_sizes = taps.align_corners != 0 || static_cast<double>(taps.step) == ratio;
  std::vector<Numbers> sizes;
  for (int i = 0; i < rank; ++i) sizes.push_back(i == axis ? to : w.in_size(0, i));
  Names inputs{w.in(0), "", ""};
  if (by_sizes && is_constant(to) && is_constant(from)) {
    inputs.push_back(w.sizes(sizes));
  } else {
    w.fixed(w.numbers([&](std::size_t run) {
      return static_cast<double>(w.attributes<AxisTaps>(run).step) == static_cast<double>(taps.step);
    }),
            "whether its scale is that of the first call");
    if (taps.align_corners) w.refuse("its corners are aligned, and an axis has no fixed size");
    Names scales;
    for (int i = 0; i < rank; ++i)
      scales.push_back(
          w.node("Unsqueeze", {w.scalar(i == axis ? 1 / static_cast<double>(taps.step) : 1, f32), w.integers({0})}));
    inputs[2] = w.node("Concat", scales, {attribute("axis", std::int64_t{0})});
  }
  bool nearest = mode == Interpolation::nearest;
  Attributes attributes{attribute("mode", nearest                         ? "nearest"
                                          : mode == Interpolation::linear ? "linear"
                                                                          : "cubic"),
                        attribute("coordinate_transformation_mode", nearest              ? "asymmetric"
                                                                    : taps.align_corners ? "align_corners"
                                                                                         : "half_pixel"),
                        attribute("cubic_coeff_a", -0.75)};
  if (nearest) attributes.push_back(attribute("nearest_mode", "floor"));
  w.result(w.node("Resize", inputs, attributes));
}

/// The windows of a node over the spatial axes of (N, C, d…).
struct NodeWindows {
  const NodeCall& c;
  int spatial;
  std::vector<std::int64_t> strides, dilations, pads;

  explicit NodeWindows(const NodeCall& call) : c(call), spatial(c.in(0).rank() - 2) {
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
  NodeWindows w(c);
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
  NodeWindows w(c);
  std::vector<std::int64_t> more = w.numbers("output_padding", 1, 0);
  w.check_size([&](int i, double size) {
    auto at = static_cast<std::size_t>(i);
    auto window = static_cast<double>(c.in(1).size(2 + i)), dilation = static_cast<double>(w.dilations[at]);
    return (size - 1) * static_cast<double>(w.strides[at]) + (window - 1) * dilation + 1 +
           static_cast<double>(more[at]);
  });
  // Without padding, then cut: the two ends may differ.
  TransposedConvolutionOptions options{.stride = w.stride(),
                                       .output_padding = NodeWindows::numbers_of(more),
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
  NodeWindows w(c);
  AxisNumbers window = NodeWindows::numbers_of(w.numbers("kernel_shape", 1, 0));
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

}  // namespace

std::span<const Operator> convolution_operators() {
  static constexpr Operator table[] = {
      {"conv1d conv2d conv3d convolution", "Conv", run_conv, write_convolution},
      {"conv_transposed1d conv_transposed2d conv_transposed3d convolution_backward_data", "ConvTranspose",
       run_conv_transposed, write_transposed_convolution},
      {"max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices "
       "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d adaptive_max_pool1d_with_indices "
       "adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices",
       "MaxPool", run_pool<true>, write_pool<true>},
      {"avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d", "AveragePool",
       run_pool<false>, write_pool<false>},
      // Adaptive pooling to one window.
      {.type = "GlobalMaxPool", .run = run_global_pool<true>},
      {.type = "GlobalAveragePool", .run = run_global_pool<false>},
      {"interpolate", "Resize", run_resize, write_interpolate},
  };
  return table;
}

}  // namespace reel::io::onnx
