#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr std::int64_t same = -1;  // as padding

struct Case {
  int spatial;
  Shape shape;  // (N, C, d…), whatever the layout
  std::int64_t window, stride = 0, padding = 0, dilation = 1;
  bool ceil_mode = false, counts_padding = true, last = false;
  bool adaptive = false;  // the window is the number of results
};

// The positions of x along an axis of each result's window.
using Windows = std::vector<std::vector<std::int64_t>>;

Windows windows_of(const Case& c, std::int64_t size, std::vector<double>& padded_counts) {
  Windows windows;
  std::int64_t stride = c.stride == 0 ? c.window : c.stride, extent = c.dilation * (c.window - 1) + 1;
  std::int64_t count = (size + stride - 1) / stride;
  std::int64_t before =
      c.padding == same ? std::max<std::int64_t>((count - 1) * stride + extent - size, 0) / 2 : c.padding;
  for (std::int64_t o = 0;; ++o) {
    std::int64_t start = o * stride - before;
    bool fits = start + extent <= size + before;
    bool follows = c.ceil_mode && start < size && (o == 0 || start - stride + extent < size + before);
    if (c.adaptive ? o == c.window : c.padding == same ? o == count : !fits && !follows) return windows;
    if (c.adaptive) {
      start = o * size / c.window;
      extent =
          static_cast<std::int64_t>(std::ceil(static_cast<double>((o + 1) * size) / static_cast<double>(c.window))) -
          start;
    }
    auto& window = windows.emplace_back();
    for (std::int64_t place = start; place < start + extent; place += c.dilation)
      if (place >= 0 && place < size) window.push_back(place);
    bool counts = c.counts_padding && !c.adaptive && c.padding != same;
    padded_counts.push_back(counts ? static_cast<double>(std::min(start + c.window, size + before) - start)
                                   : static_cast<double>(window.size()));
  }
}

enum class Kind : std::uint8_t { average, largest, place };

// The pooling of x as (N, C, d…), with one spatial axis after the other.
Array pooled(const Array& x, const Case& c, Kind kind) {
  std::vector<Windows> windows;
  std::vector<std::vector<double>> counts(3);
  Shape shape{x.shape[0], x.shape[1]};
  for (int i = 0; i < c.spatial; ++i) {
    windows.push_back(windows_of(c, x.shape[2 + i], counts[static_cast<std::size_t>(i)]));
    shape.push_back(std::ssize(windows.back()));
  }
  std::vector<double> scales;
  Array y = make(shape, [&](const Index& o) {
    double sum = 0, magnitudes = 0, count = 1, most = -std::numeric_limits<double>::infinity(), best = -1;
    Shape taps;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      auto at_axis = static_cast<std::size_t>(o[2 + i]);
      taps.push_back(std::ssize(windows[i][at_axis]));
      count *= counts[i][at_axis];
    }
    for_each_index(taps, [&](const Index& tap) {
      Index place{o[0], o[1]};
      std::int64_t flat = 0;
      for (std::size_t i = 0; i < windows.size(); ++i) {
        place.push_back(windows[i][static_cast<std::size_t>(o[2 + i])][static_cast<std::size_t>(tap[i])]);
        flat = flat * x.shape[2 + static_cast<int>(i)] + place.back();
      }
      double number = at(x, place);
      sum += number;
      magnitudes += std::abs(number);
      if (number > most || best < 0) best = static_cast<double>(flat), most = number;
    });
    scales.push_back(magnitudes / count);
    return kind == Kind::average ? sum / count : kind == Kind::largest ? most : best;
  });
  if (kind == Kind::average) y.scales = scales;
  return y;
}

// (N, C, d…) as (N, d…, C) or back.
Shape moved(const Shape& shape, int from, int to) {
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  std::int64_t size = sizes[static_cast<std::size_t>(from)];
  sizes.erase(sizes.begin() + from);
  sizes.insert(sizes.begin() + to, size);
  return Shape(std::span<const std::int64_t>(sizes));
}

Array with_channels_moved(const Array& x, int from, int to) {
  auto moved_array = [&](const std::vector<double>& values) {
    Array given{x.shape, values};
    return make(moved(x.shape, from, to), [&](Index i) {
      std::int64_t at_axis = i[static_cast<std::size_t>(to)];
      i.erase(i.begin() + to);
      i.insert(i.begin() + from, at_axis);
      return at(given, i);
    });
  };
  Array y = moved_array(x.values);
  if (!x.scales.empty()) y.scales = moved_array(x.scales).values;
  return y;
}

reel::Layout layout_of(const Case& c) { return c.last ? reel::Layout::nhwc : reel::Layout::nchw; }

ConvolutionPadding padding_of(const Case& c) {
  return c.padding == same ? ConvolutionPadding(Padding::same) : ConvolutionPadding(c.padding);
}

MaxPoolOptions max_options(const Case& c) {
  return {.stride = c.stride,
          .padding = padding_of(c),
          .dilation = c.dilation,
          .ceil_mode = c.ceil_mode,
          .layout = layout_of(c)};
}

AveragePoolOptions average_options(const Case& c) {
  return {.stride = c.stride,
          .padding = padding_of(c),
          .ceil_mode = c.ceil_mode,
          .count_include_pad = c.counts_padding,
          .layout = layout_of(c)};
}

template <class F>
auto by_rank(int spatial, F one, F two, F three) {
  return spatial == 1 ? one : spatial == 2 ? two : three;
}

void add_row(std::vector<Row>& rows, const std::string& op, const Case& c, Kind kind, Function run) {
  int channel_axis = c.spatial + 1;
  auto reference = [=](const Arrays& x) {
    Array y = pooled(c.last ? with_channels_moved(x[0], channel_axis, 1) : x[0], c, kind);
    return c.last ? with_channels_moved(y, 1, channel_axis) : y;
  };
  double taps = c.adaptive ? 40 : std::pow(static_cast<double>(c.window), c.spatial);
  std::string name = op + to_string(c.shape) + " of " + std::to_string(c.window) + " by " + std::to_string(c.stride) +
                     " padding " + std::to_string(c.padding) + (c.dilation > 1 ? " dilated" : "") +
                     (c.ceil_mode ? " ceil" : "") + (c.counts_padding ? "" : " padding left out") +
                     (c.last ? " nhwc" : "") + (kind == Kind::place ? " indices" : "");
  auto number = [](auto n) { return Attributes::Numbers{static_cast<double>(n)}; };
  rows.push_back({.name = name,
                  .run = std::move(run),
                  .inputs = {{c.last ? moved(c.shape, 1, channel_axis) : c.shape,
                              kind == Kind::average ? Fill::any : Fill::spread}},
                  .reference = reference,
                  // Half a unit for each sum, and for the quotient.
                  .ulps = kind == Kind::average ? 1 + taps / 2 : 0,
                  .differentiable = kind != Kind::place,
                  .reorders = kind == Kind::average,
                  .attributes = {{"window", number(c.window)},
                                 {"stride", number(c.stride == 0 ? c.window : c.stride)},
                                 {"padding", number(c.padding)},
                                 {"dilation", number(c.dilation)},
                                 {"ceil", number(c.ceil_mode)},
                                 {"counts_padding", number(c.counts_padding)},
                                 {"indices", number(kind == Kind::place)},
                                 {"last", number(c.last)}}});
}

std::string with_rank(const std::string& op, int spatial) { return op + std::to_string(spatial) + "d"; }

void add_max(std::vector<Row>& rows, const Case& c) {
  auto f = by_rank(c.spatial, max_pool1d, max_pool2d, max_pool3d);
  auto g = by_rank(c.spatial, max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices);
  std::string op = with_rank("max_pool", c.spatial), with_indices = op + "_with_indices";
  add_row(rows, op, c, Kind::largest, [=](auto x) { return f(x[0], c.window, max_options(c)); });
  add_row(rows, with_indices, c, Kind::largest, [=](auto x) { return g(x[0], c.window, max_options(c)).values; });
  add_row(rows, with_indices, c, Kind::place, [=](auto x) { return g(x[0], c.window, max_options(c)).indices; });
}

void add_average(std::vector<Row>& rows, const Case& c) {
  auto f = by_rank(c.spatial, avg_pool1d, avg_pool2d, avg_pool3d);
  add_row(rows, with_rank("avg_pool", c.spatial), c, Kind::average,
          [=](auto x) { return f(x[0], c.window, average_options(c)); });
}

void add_adaptive(std::vector<Row>& rows, Case c) {
  c.adaptive = true;
  auto average = by_rank(c.spatial, adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d);
  auto most = by_rank(c.spatial, adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d);
  AdaptivePoolOptions options{.layout = layout_of(c)};
  add_row(rows, with_rank("adaptive_avg_pool", c.spatial), c, Kind::average,
          [=](auto x) { return average(x[0], c.window, options); });
  add_row(rows, with_rank("adaptive_max_pool", c.spatial), c, Kind::largest,
          [=](auto x) { return most(x[0], c.window, options); });
  auto with_indices = by_rank(c.spatial, adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices,
                              adaptive_max_pool3d_with_indices);
  std::string op = with_rank("adaptive_max_pool", c.spatial) + "_with_indices";
  add_row(rows, op, c, Kind::largest, [=](auto x) { return with_indices(x[0], c.window, options).values; });
  add_row(rows, op, c, Kind::place, [=](auto x) { return with_indices(x[0], c.window, options).indices; });
}

Shape spatial_shape(int spatial, std::int64_t examples, std::int64_t channels,
                    std::initializer_list<std::int64_t> sizes) {
  Shape shape{examples, channels};
  for (int i = 0; i < spatial; ++i) shape.push_back(*(sizes.begin() + i));
  return shape;
}

struct Unpooling {
  int spatial;
  Shape shape;  // (N, C, o…), whatever the layout
  std::int64_t size;
  bool last = false, repeats = false;
};

void add_unpool(std::vector<Row>& rows, const Unpooling& c) {
  auto f = by_rank(c.spatial, max_unpool1d, max_unpool2d, max_unpool3d);
  int channel_axis = c.spatial + 1;
  std::int64_t places = 1, given = 1;
  for (int i = 0; i < c.spatial; ++i) places *= c.size, given *= c.shape[2 + i];
  Shape whole{c.shape[0], c.shape[1]};
  for (int i = 0; i < c.spatial; ++i) whole.push_back(c.size);
  Array indices = make(c.shape, [&](const Index& i) {
    std::int64_t o = 0;
    for (int axis = 2; axis < c.shape.rank(); ++axis) o = o * c.shape[axis] + i[static_cast<std::size_t>(axis)];
    return static_cast<double>(c.repeats ? o / 2 : (o * (places / given) + i[0] + i[1]) % places);
  });
  if (c.last) indices = with_channels_moved(indices, 1, channel_axis);
  auto reference = [=](const Arrays& x) {
    Array values = c.last ? with_channels_moved(x[0], channel_axis, 1) : x[0];
    Array at_places = c.last ? with_channels_moved(x[1], channel_axis, 1) : x[1];
    Array y = make(whole, [](const Index&) { return 0.0; });
    for (std::size_t i = 0; i < values.values.size(); ++i) {
      std::size_t plane = i / static_cast<std::size_t>(given);
      y.values[plane * static_cast<std::size_t>(places) + static_cast<std::size_t>(at_places.values[i])] =
          values.values[i];
    }
    return c.last ? with_channels_moved(y, 1, channel_axis) : y;
  };
  MaxUnpoolOptions options{.layout = c.last ? reel::Layout::nhwc : reel::Layout::nchw};
  auto number = [](auto n) { return Attributes::Numbers{static_cast<double>(n)}; };
  rows.push_back({.name = with_rank("max_unpool", c.spatial) + to_string(c.shape) + " to " + std::to_string(c.size) +
                          (c.last ? " nhwc" : "") + (c.repeats ? " repeated" : ""),
                  .run = [=](auto x) { return f(x[0], x[1], c.size, options); },
                  .inputs = {{indices.shape},
                             {indices.shape, Fill::indices,
                              std::vector<std::int64_t>(indices.values.begin(), indices.values.end())}},
                  .reference = reference,
                  .ulps = 0,
                  .attributes = {{"size", number(c.size)}, {"last", number(c.last)}}});
}

// z where x is largest: the gradient by d of z's share in the gradient of d's share in max_pool.
void add_second_order(std::vector<Row>& rows, const Case& c) {
  auto run = [=](std::span<const Tensor> x) {
    Tensor d = ones_like(max_pool1d(x[0], c.window, max_options(c)));
    Tape outer;
    outer.watch(d);
    Tensor dx;
    {
      Tape tape;
      tape.watch(x[0]);
      dx = tape.gradient(max_pool1d(x[0], c.window, max_options(c)), x[0], {.seed = d});
    }
    return outer.gradient(sum(dx * x[1]), d);
  };
  auto reference = [=](const Arrays& x) {
    Array places = pooled(x[0], c, Kind::place);
    return make(places.shape, [&](const Index& o) {
      return at(x[1], {o[0], o[1], static_cast<std::int64_t>(at(places, o))});
    });
  };
  rows.push_back({.name = "max_pool1d" + to_string(c.shape) + ", of second order",
                  .run = run,
                  .inputs = {{c.shape, Fill::spread}, {c.shape}},
                  .reference = reference,
                  .ulps = 0});
}

void add_rows(std::vector<Row>& rows) {
  add_second_order(rows, {.spatial = 1, .shape = {2, 3, 5}, .window = 3, .stride = 2});
  for (int spatial : {1, 2, 3})
    for (bool last : {false, true}) {
      Shape small = spatial_shape(spatial, 2, 2, {5, 4, 2}), tall = spatial_shape(spatial, 1, 2, {6, 3, 2}),
            none = spatial_shape(spatial, 0, 2, {4, 4, 4}), mute = spatial_shape(spatial, 2, 0, {4, 4, 4}),
            large = spatial_shape(spatial, 2, 3, {37, 19, 5});
      for (const Case& c : {Case{spatial, small, 2},
                            {spatial, small, 2, 1},
                            {spatial, small, 2, 2, 1},
                            {spatial, small, 2, 3, 0, 1, true},
                            {spatial, tall, 2, 2, 1, 1, true, false},
                            {spatial, small, 2, 2, same},
                            {spatial, tall, 3, 1, same},
                            {spatial, none, 2},
                            {spatial, mute, 2},
                            {spatial, large, 3, 2, 1}}) {
        Case laid_out = c;
        laid_out.last = last;
        add_max(rows, laid_out);
        add_average(rows, laid_out);
      }
      for (const Case& c :
           {Case{spatial, spatial_shape(spatial, 1, 2, {7, 5, 3}), 2, 1, 1, 2}, {spatial, large, 2, 3, 1, 3, true}}) {
        Case laid_out = c;
        laid_out.last = last;
        add_max(rows, laid_out);
      }
      for (const Shape& shape : {small, none, large})
        for (std::int64_t results : {1, 2, 3})
          add_adaptive(rows, {.spatial = spatial, .shape = shape, .window = results, .last = last});
      for (const Shape& shape : {spatial_shape(spatial, 2, 2, {3, 2, 2}), none, mute, large})
        add_unpool(rows, {spatial, shape, shape == large ? 40 - 10 * (spatial - 1) : 4, last});
      add_unpool(rows, {spatial, spatial_shape(spatial, 1, 2, {3, 2, 2}), 4, last, true});
    }
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int spatial : {1, 2, 3})
    for (int trial = 0; trial < 3; ++trial) {
      auto size = [&] { return random_size(random, 4, spatial == 3 ? 9 : 24); };
      std::int64_t window = random_size(random, 1, 4);
      Case c{.spatial = spatial,
             .shape =
                 spatial_shape(spatial, random_size(random, 1, 4), random_size(random, 1, 9), {size(), size(), size()}),
             .window = window,
             .stride = random_size(random, 1, 4),
             .padding = random_size(random, 0, window / 2),
             .ceil_mode = trial == 1,
             .counts_padding = trial != 2,
             .last = trial == 2};
      add_average(rows, c);
      c.dilation =
          trial == 0 ? 1 : std::min<std::int64_t>(random_size(random, 1, 2), 3 / std::max<std::int64_t>(window - 1, 1));
      c.dilation = std::max<std::int64_t>(c.dilation, 1);
      add_max(rows, c);
      c.window = random_size(random, 1, 6);
      c.stride = c.padding = 0;
      c.dilation = 1;
      c.ceil_mode = false;
      add_adaptive(rows, c);
      add_unpool(rows, {spatial, c.shape, spatial == 3 ? 9 : 24, c.last});
    }
}

}  // namespace

const RowFamily pooling_rows{add_rows, add_random_rows};

}  // namespace reel_test
