#include <cmath>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

using Numbers = std::vector<std::int64_t>;
enum class Rule : std::uint8_t { numbers, same, valid };

// A convolution, its sizes given with the channels behind the examples.
struct Window {
  Shape x = {}, w = {};
  Numbers stride = {}, padding = {}, dilation = {};
  std::int64_t groups = 1;
  bool bias = false, last = false;
  Rule rule = Rule::numbers;
  bool transposed = false;
  Numbers output_padding = {};

  int axes() const { return x.rank() - 2; }
  static std::int64_t pick(const Numbers& numbers, int axis, std::int64_t none) {
    if (numbers.empty()) return none;
    return numbers[numbers.size() == 1 ? 0 : static_cast<std::size_t>(axis)];
  }
  std::int64_t stride_of(int axis) const { return pick(stride, axis, 1); }
  std::int64_t dilation_of(int axis) const { return pick(dilation, axis, 1); }
  std::int64_t extent(int axis) const { return (w[2 + axis] - 1) * dilation_of(axis) + 1; }
  // TensorFlow's formulas.
  std::int64_t total_padding(int axis) const {
    if (rule == Rule::numbers) return 2 * pick(padding, axis, 0);
    if (transposed) return rule == Rule::valid ? 0 : std::max<std::int64_t>(extent(axis) - stride_of(axis), 0);
    std::int64_t in = x[2 + axis], out = (in + stride_of(axis) - 1) / stride_of(axis);
    return rule == Rule::valid ? 0 : std::max<std::int64_t>((out - 1) * stride_of(axis) + extent(axis) - in, 0);
  }
  std::int64_t padding_before(int axis) const { return total_padding(axis) / 2; }
  std::int64_t result(int axis) const {
    std::int64_t in = x[2 + axis], s = stride_of(axis);
    if (transposed && rule == Rule::same) return in * s;
    if (transposed) return (in - 1) * s - total_padding(axis) + extent(axis) + pick(output_padding, axis, 0);
    if (rule == Rule::same) return (in + s - 1) / s;
    if (rule == Rule::valid) return (in - extent(axis) + s) / s;
    return (in + total_padding(axis) - extent(axis)) / s + 1;
  }
  std::int64_t result_channels() const { return transposed ? w[1] * groups : w[0]; }
  Shape laid_out(std::int64_t n, std::int64_t channels, const Numbers& sizes) const {
    Shape shape{n};
    if (!last) shape.push_back(channels);
    for (std::int64_t size : sizes) shape.push_back(size);
    if (last) shape.push_back(channels);
    return shape;
  }
  Shape x_shape() const { return laid_out(x[0], x[1], {x.begin() + 2, x.end()}); }
  Index x_index(std::int64_t n, std::int64_t channel, const Numbers& at) const {
    Shape index = laid_out(n, channel, at);
    return {index.begin(), index.end()};
  }
  Shape y_shape() const {
    Numbers sizes;
    for (int axis = 0; axis < axes(); ++axis) sizes.push_back(result(axis));
    return laid_out(x[0], result_channels(), sizes);
  }
  int terms() const {
    std::int64_t count = x[1] / groups;
    for (int axis = 0; axis < axes(); ++axis) count *= w[2 + axis];
    return static_cast<int>(count);
  }
};

// The index in x of a window's element for an output position; −1 if it is outside.
std::int64_t seen(const Window& c, int axis, std::int64_t place, std::int64_t k) {
  std::int64_t at = 0, stride = c.stride_of(axis), in = c.x[2 + axis];
  if (!c.transposed) {
    at = place * stride + k * c.dilation_of(axis) - c.padding_before(axis);
  } else {
    at = place + c.padding_before(axis) - k * c.dilation_of(axis);
    if (at % stride != 0) return -1;
    at /= stride;
  }
  return at >= 0 && at < in ? at : -1;
}

// One element, and Σ |terms|.
std::pair<double, double> element(const Window& c, const Arrays& inputs, const Index& place) {
  std::int64_t n = place[0], channel = c.last ? place.back() : place[1];
  Numbers spatial(place.begin() + (c.last ? 1 : 2), place.end() - (c.last ? 1 : 0));
  std::int64_t in_group = c.x[1] / c.groups, out_group = c.result_channels() / c.groups, group = channel / out_group;
  double sum = c.bias ? at(inputs[2], {channel}) : 0, size = std::abs(sum);
  Shape window(std::span(c.w.begin() + 2, c.w.end()));
  for (std::int64_t i = 0; i < in_group; ++i)
    for_each_index(window, [&](const Index& k) {
      Numbers from;
      for (int axis = 0; axis < c.axes(); ++axis) {
        from.push_back(seen(c, axis, spatial[static_cast<std::size_t>(axis)], k[static_cast<std::size_t>(axis)]));
        if (from.back() < 0) return;
      }
      Index weight = c.transposed ? Index{group * in_group + i, channel % out_group} : Index{channel, i};
      weight.insert(weight.end(), k.begin(), k.end());
      double term = at(inputs[0], c.x_index(n, group * in_group + i, from)) * at(inputs[1], weight);
      sum += term;
      size += std::abs(term);
    });
  return {sum, size};
}

AxisNumbers numbers_or(const Numbers& given, std::int64_t none) {
  switch (given.size()) {
    case 0: return none;
    case 1: return given[0];
    case 2: return {given[0], given[1]};
    default: return {given[0], given[1], given[2]};
  }
}

ConvolutionPadding padding_of(const Window& c) {
  if (c.rule == Rule::same) return Padding::same;
  if (c.rule == Rule::valid) return Padding::valid;
  switch (c.padding.size()) {
    case 0: return 0;
    case 1: return c.padding[0];
    case 2: return {c.padding[0], c.padding[1]};
    default: return {c.padding[0], c.padding[1], c.padding[2]};
  }
}

Tensor run(const Window& c, std::span<const Tensor> x) {
  Layout layout = c.last ? Layout::nhwc : Layout::nchw;
  if (c.transposed) {
    TransposedConvolutionOptions options{.stride = numbers_or(c.stride, 1),
                                         .padding = padding_of(c),
                                         .output_padding = numbers_or(c.output_padding, 0),
                                         .dilation = numbers_or(c.dilation, 1),
                                         .groups = c.groups,
                                         .layout = layout};
    switch (c.axes()) {
      case 1: return c.bias ? conv_transposed1d(x[0], x[1], x[2], options) : conv_transposed1d(x[0], x[1], options);
      case 2: return c.bias ? conv_transposed2d(x[0], x[1], x[2], options) : conv_transposed2d(x[0], x[1], options);
      default: return c.bias ? conv_transposed3d(x[0], x[1], x[2], options) : conv_transposed3d(x[0], x[1], options);
    }
  }
  ConvolutionOptions options{.stride = numbers_or(c.stride, 1),
                             .padding = padding_of(c),
                             .dilation = numbers_or(c.dilation, 1),
                             .groups = c.groups,
                             .layout = layout};
  switch (c.axes()) {
    case 1: return c.bias ? conv1d(x[0], x[1], x[2], options) : conv1d(x[0], x[1], options);
    case 2: return c.bias ? conv2d(x[0], x[1], x[2], options) : conv2d(x[0], x[1], options);
    default: return c.bias ? conv3d(x[0], x[1], x[2], options) : conv3d(x[0], x[1], options);
  }
}

// For the peer: the padding before and after each axis, or the cropping.
Attributes attributes_of(const Window& c) {
  Attributes::Numbers stride, dilation, before, after, more;
  for (int axis = 0; axis < c.axes(); ++axis) {
    stride.push_back(static_cast<double>(c.stride_of(axis)));
    dilation.push_back(static_cast<double>(c.dilation_of(axis)));
    before.push_back(static_cast<double>(c.padding_before(axis)));
    after.push_back(static_cast<double>(c.total_padding(axis) - c.padding_before(axis)));
    more.push_back(static_cast<double>(Window::pick(c.output_padding, axis, 0)));
  }
  return {{"stride", stride},        {"dilation", dilation},   {"before", before},
          {"after", after},          {"output_padding", more}, {"groups", {static_cast<double>(c.groups)}},
          {"last", {double(c.last)}}};
}

void add(std::vector<Row>& rows, const Window& c) {
  std::string op = (c.transposed ? "conv_transposed" : "conv") + std::to_string(c.axes()) + "d";
  std::string name = op + to_string(c.x) + " with " + to_string(c.w);
  const std::pair<const char*, const Numbers*> named[] = {{" stride", &c.stride},
                                                          {" padding", &c.padding},
                                                          {" dilation", &c.dilation},
                                                          {" output_padding", &c.output_padding}};
  for (const auto& [what, numbers] : named)
    for (std::size_t i = 0; i < numbers->size(); ++i)
      name += (i == 0 ? std::string(what) + " " : "x") + std::to_string((*numbers)[i]);
  if (c.groups != 1) name += " groups " + std::to_string(c.groups);
  if (c.rule != Rule::numbers) name += c.rule == Rule::same ? " same" : " valid";
  if (c.last) name += " nhwc";
  std::vector<Input> inputs{{c.x_shape()}, {c.w}};
  if (c.bias) inputs.push_back({{c.result_channels()}});
  rows.push_back({.name = name,
                  .run = [=](auto x) { return run(c, x); },
                  .inputs = inputs,
                  .reference =
                      [=](const Arrays& x) {
                        Array y{c.y_shape(), {}};
                        for_each_index(y.shape, [&](const Index& place) {
                          auto [sum, size] = element(c, x, place);
                          y.values.push_back(sum);
                          y.scales.push_back(size);
                        });
                        return y;
                      },
                  // Each term is added with one rounding, and so is the bias.
                  .ulps = 1 + c.terms() / 2.0,
                  .attributes = attributes_of(c)});
}

void add_one_axis(std::vector<Row>& rows) {
  add(rows, {.x = {2, 3, 7}, .w = {4, 3, 3}, .bias = true});
  add(rows, {.x = {2, 4, 6}, .w = {2, 2, 3}, .stride = {2}, .padding = {1}, .groups = 2, .last = true});
  add(rows, {.x = {1, 1, 9}, .w = {1, 1, 4}, .stride = {3}, .dilation = {2}, .bias = true, .rule = Rule::same});
  add(rows, {.x = {1, 2, 1}, .w = {3, 2, 1}});
  add(rows, {.x = {2, 1, 5}, .w = {3, 1, 2}, .stride = {4}, .padding = {3}});
  add(rows, {.x = {1, 2, 4}, .w = {2, 2, 2}, .dilation = {5}, .rule = Rule::same});
  add(rows, {.x = {0, 2, 5}, .w = {3, 2, 3}, .bias = true});
  add(rows, {.x = {2, 0, 5}, .w = {3, 0, 3}, .bias = true});
  add(rows, {.x = {2, 2, 0}, .w = {3, 2, 3}, .rule = Rule::same});
  add(rows, {.x = {2, 17, 70}, .w = {33, 17, 5}, .padding = {2}});
}

void add_two_axes(std::vector<Row>& rows) {
  add(rows, {.x = {1, 2, 5, 4}, .w = {2, 2, 3, 2}, .bias = true});
  add(rows, {.x = {1, 2, 4, 5}, .w = {4, 1, 3, 3}, .stride = {2, 1}, .padding = {1}, .groups = 2, .last = true});
  add(rows, {.x = {1, 3, 4, 3}, .w = {3, 1, 2, 2}, .groups = 3, .bias = true, .rule = Rule::same});
  add(rows, {.x = {1, 1, 7, 6}, .w = {2, 1, 2, 3}, .stride = {1, 3}, .dilation = {3, 2}, .rule = Rule::same});
  add(rows, {.x = {1, 1, 6, 7}, .w = {2, 1, 2, 2}, .stride = {2}, .dilation = {2, 1}, .rule = Rule::valid});
  add(rows, {.x = {2, 3, 3, 3}, .w = {2, 3, 1, 1}, .bias = true, .last = true});
  add(rows, {.x = {1, 2, 3, 3}, .w = {1, 2, 3, 3}});
  add(rows, {.x = {3, 2, 5, 6}, .w = {0, 2, 3, 3}});
  add(rows, {.x = {0, 1, 5, 6}, .w = {2, 1, 3, 3}, .last = true});
  add(rows, {.x = {2, 19, 18, 21}, .w = {18, 19, 3, 3}, .padding = {1}});
  add(rows, {.x = {2, 34, 9, 11}, .w = {34, 1, 3, 3}, .padding = {1}, .groups = 34, .bias = true});
}

void add_three_axes(std::vector<Row>& rows) {
  add(rows, {.x = {1, 1, 3, 4, 3}, .w = {2, 1, 2, 2, 2}, .bias = true});
  add(rows, {.x = {1, 2, 2, 3, 2},
             .w = {2, 1, 1, 2, 2},
             .stride = {1, 2, 1},
             .padding = {0, 1, 1},
             .groups = 2,
             .last = true});
  add(rows,
      {.x = {1, 1, 3, 3, 4}, .w = {1, 1, 2, 3, 2}, .stride = {2, 1, 3}, .dilation = {1, 2, 1}, .rule = Rule::same});
  add(rows, {.x = {2, 1, 2, 3, 0}, .w = {1, 1, 2, 2, 2}, .rule = Rule::same});
  add(rows, {.x = {1, 5, 6, 7, 8}, .w = {17, 5, 3, 3, 3}, .padding = {1, 0, 2}});
}

void add_transposed(std::vector<Row>& rows) {
  add(rows, {.x = {2, 3, 4}, .w = {3, 2, 3}, .bias = true, .transposed = true});
  add(rows, {.x = {1, 4, 3},
             .w = {4, 1, 4},
             .stride = {2},
             .padding = {1},
             .groups = 2,
             .bias = true,
             .last = true,
             .transposed = true,
             .output_padding = {1}});
  add(rows, {.x = {2, 1, 3},
             .w = {1, 2, 2},
             .stride = {4},
             .dilation = {2},
             .bias = true,
             .transposed = true,
             .output_padding = {3}});
  add(rows, {.x = {0, 2, 3}, .w = {2, 2, 2}, .transposed = true});
  for (std::int64_t stride : {1, 2, 4})
    add(rows,
        {.x = {2, 2, 4}, .w = {2, 3, 3}, .stride = {stride}, .bias = true, .rule = Rule::same, .transposed = true});
  add(rows, {.x = {1, 2, 3, 2},
             .w = {2, 1, 4, 2},
             .stride = {2, 3},
             .dilation = {1, 2},
             .last = true,
             .rule = Rule::same,
             .transposed = true});
  add(rows, {.x = {2, 0, 3}, .w = {0, 2, 2}, .bias = true, .transposed = true});
  add(rows, {.x = {2, 19, 40}, .w = {19, 17, 4}, .stride = {2}, .padding = {1}, .transposed = true});
  add(rows, {.x = {1, 2, 3, 3},
             .w = {2, 2, 3, 2},
             .stride = {2, 1},
             .padding = {1, 0},
             .bias = true,
             .transposed = true,
             .output_padding = {1, 0}});
  add(rows, {.x = {1, 4, 2, 3},
             .w = {4, 2, 2, 2},
             .stride = {3, 2},
             .dilation = {1, 2},
             .groups = 2,
             .last = true,
             .transposed = true});
  add(rows, {.x = {0, 2, 3, 3}, .w = {2, 1, 2, 2}, .transposed = true});
  add(rows, {.x = {2, 18, 9, 10}, .w = {18, 16, 4, 4}, .stride = {2}, .padding = {1}, .transposed = true});
  add(rows, {.x = {1, 2, 2, 2, 3},
             .w = {2, 1, 2, 2, 2},
             .stride = {1, 2, 1},
             .padding = {1, 0, 0},
             .bias = true,
             .transposed = true});
  add(rows, {.x = {1, 2, 2, 3, 2},
             .w = {2, 1, 1, 2, 3},
             .dilation = {1, 2, 1},
             .groups = 2,
             .last = true,
             .transposed = true});
  add(rows, {.x = {0, 2, 3, 3, 2}, .w = {2, 1, 2, 2, 1}, .transposed = true});
}

Window random_window(Random& random, int axes, bool transposed) {
  Window c{.groups = random_size(random, 1, 3),
           .bias = random_size(random, 0, 1) == 1,
           .last = random_size(random, 0, 1) == 1,
           .transposed = transposed};
  std::int64_t in = c.groups * random_size(random, 1, 9), out = random_size(random, 1, 9);
  c.x = {random_size(random, 1, 3), in};
  c.w = transposed ? Shape{in, out} : Shape{c.groups * out, in / c.groups};
  c.rule = transposed ? Rule::numbers : static_cast<Rule>(random_size(random, 0, 2));
  for (int axis = 0; axis < axes; ++axis) {
    c.w.push_back(random_size(random, 1, 3));
    c.stride.push_back(random_size(random, 1, 3));
    c.dilation.push_back(random_size(random, 1, 3));
    c.padding.push_back(c.rule == Rule::numbers ? random_size(random, 0, 1) : 0);
    // Something must be left once the padding is cut off.
    std::int64_t least = transposed ? 3 : c.extent(axis);
    c.x.push_back(least + random_size(random, 0, axes == 1 ? 30 : axes == 2 ? 9 : 3));
    if (transposed)
      c.output_padding.push_back(random_size(random, 0, std::max(c.stride.back(), c.dilation.back()) - 1));
  }
  return c;
}

void add_rows(std::vector<Row>& rows) {
  add_one_axis(rows);
  add_two_axes(rows);
  add_three_axes(rows);
  add_transposed(rows);
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int axes : {1, 2, 3})
    for (bool transposed : {false, true})
      for (int trial = 0; trial < 4; ++trial) add(rows, random_window(random, axes, transposed));
}

}  // namespace

const RowFamily convolution_rows{add_rows, add_random_rows};

}  // namespace reel_test
