#include "../../../kernels/convolution.h"

#include <reel/interpolation.h>

#include "../../../kernels/pooling.h"
#include "../../../kernels/resample.h"
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

}  // namespace

std::span<const Operator> convolution_operators() {
  static constexpr Operator table[] = {
      {"conv1d", write_convolution},
      {"conv2d", write_convolution},
      {"conv3d", write_convolution},
      {"convolution", write_convolution},
      {"conv_transposed1d", write_transposed_convolution},
      {"conv_transposed2d", write_transposed_convolution},
      {"conv_transposed3d", write_transposed_convolution},
      {"convolution_backward_data", write_transposed_convolution},
      {"max_pool1d", write_pool<true>},
      {"max_pool2d", write_pool<true>},
      {"max_pool3d", write_pool<true>},
      {"max_pool1d_with_indices", write_pool<true>},
      {"max_pool2d_with_indices", write_pool<true>},
      {"max_pool3d_with_indices", write_pool<true>},
      {"adaptive_max_pool1d", write_pool<true>},
      {"adaptive_max_pool2d", write_pool<true>},
      {"adaptive_max_pool3d", write_pool<true>},
      {"adaptive_max_pool1d_with_indices", write_pool<true>},
      {"adaptive_max_pool2d_with_indices", write_pool<true>},
      {"adaptive_max_pool3d_with_indices", write_pool<true>},
      {"avg_pool1d", write_pool<false>},
      {"avg_pool2d", write_pool<false>},
      {"avg_pool3d", write_pool<false>},
      {"adaptive_avg_pool1d", write_pool<false>},
      {"adaptive_avg_pool2d", write_pool<false>},
      {"adaptive_avg_pool3d", write_pool<false>},
      {"interpolate", write_interpolate},
  };
  return table;
}

}  // namespace reel::io::onnx
