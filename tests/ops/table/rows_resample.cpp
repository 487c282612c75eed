#include <algorithm>
#include <cmath>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

double clamped(const Array& x, Index i) {
  for (std::size_t axis = 2; axis < i.size(); ++axis)
    i[axis] = std::clamp<std::int64_t>(i[axis], 0, x.shape[static_cast<int>(axis)] - 1);
  return at(x, i);
}

// Keys's kernel with a = −3/4.
double keys(double distance) {
  double x = std::abs(distance);
  if (x < 1) return 1.25 * x * x * x - 2.25 * x * x + 1;
  return x < 2 ? -0.75 * (x * x * x - 5 * x * x + 8 * x - 4) : 0;
}

// The weight of old element i for new element o of an axis; i may be up to two beyond the ends.
double weight_of(const InterpolateOptions& options, std::int64_t old_size, std::int64_t new_size, std::int64_t i,
                 std::int64_t o) {
  double from = static_cast<double>(old_size), to = static_cast<double>(new_size), place = static_cast<double>(o);
  double step = options.scale != 0 ? 1 / options.scale : from / to;
  double coordinate = (place + 0.5) * step - 0.5;
  if (options.align_corners) coordinate = new_size > 1 ? place * (from - 1) / (to - 1) : 0;
  switch (options.mode) {
    case Interpolation::nearest:
      return static_cast<double>(i) == std::floor(static_cast<float>(place) * static_cast<float>(step));
    case Interpolation::linear:
      return std::max(0.0, 1 - std::abs(std::clamp(coordinate, 0.0, from - 1) - static_cast<double>(i)));
    case Interpolation::cubic: return keys(coordinate - static_cast<double>(i));
    case Interpolation::area: break;
  }
  std::int64_t begin = o * old_size / new_size, end = ((o + 1) * old_size + new_size - 1) / new_size;
  return i >= begin && i < end ? 1 / static_cast<double>(end - begin) : 0;
}

// All axes at once: the sum over every old element near by.
Array interpolated(const Array& x, const Shape& shape, const InterpolateOptions& options) {
  Array y{shape, {}};
  Shape wide = shape;
  for (int axis = 2; axis < shape.rank(); ++axis) wide[axis] = x.shape[axis] + 4;
  for_each_index(shape, [&](const Index& o) {
    double sum = 0;
    Shape near = wide;
    near[0] = near[1] = 1;
    for_each_index(near, [&](Index i) {
      double weight = 1;
      i[0] = o[0];
      i[1] = o[1];
      for (std::size_t axis = 2; axis < i.size(); ++axis) {
        i[axis] -= 2;
        weight *= weight_of(options, x.shape[static_cast<int>(axis)], shape[static_cast<int>(axis)], i[axis], o[axis]);
      }
      if (weight == 0) return;
      sum += weight * clamped(x, i);
    });
    y.values.push_back(sum);
    // The error scales with the elements, since the weights are not exact.
    y.scales.push_back(2);
  });
  return y;
}

void add_interpolate(std::vector<Row>& rows, const Shape& shape, const InterpolateOptions& options) {
  Shape result = shape;
  Attributes::Numbers sizes;
  double sizes_and_sums = 0;
  for (int axis = 2; axis < shape.rank(); ++axis) {
    result[axis] = options.size.empty()
                       ? static_cast<std::int64_t>(std::floor(static_cast<double>(shape[axis]) * options.scale))
                       : options.size[axis - 2];
    sizes.push_back(static_cast<double>(result[axis]));
    sizes_and_sums += 3 + static_cast<double>(shape[axis]);
  }
  rows.push_back({.name = "interpolate" + to_string(shape) + " to " + to_string(result) + " by " +
                          std::to_string(static_cast<int>(options.mode)) + (options.align_corners ? " aligned" : ""),
                  .run = [=](auto x) { return interpolate(x[0], options); },
                  .inputs = {{shape}},
                  .reference = [=](const Arrays& x) { return interpolated(x[0], result, options); },
                  // A coordinate's error is half a unit of the old size, and so is that of the weights; with 3 more
                  // for the product and up to 4 sums of each axis.
                  .ulps = options.mode == Interpolation::nearest ? 0.5 : sizes_and_sums,
                  .attributes = {{"mode", {static_cast<double>(options.mode)}},
                                 {"align_corners", {static_cast<double>(options.align_corners)}},
                                 {"scale", {options.scale}},
                                 {"sizes", sizes}}});
}

constexpr Interpolation modes[] = {Interpolation::nearest, Interpolation::linear, Interpolation::cubic,
                                   Interpolation::area};

void add_to_size(std::vector<Row>& rows, const Shape& shape, const Shape& size) {
  for (Interpolation mode : modes) {
    if (mode == Interpolation::cubic && shape.rank() != 4) continue;
    add_interpolate(rows, shape, {.size = size, .mode = mode});
    if (mode == Interpolation::linear || mode == Interpolation::cubic)
      add_interpolate(rows, shape, {.size = size, .mode = mode, .align_corners = true});
  }
}

void add_by_scale(std::vector<Row>& rows, const Shape& shape, double scale) {
  for (Interpolation mode : {Interpolation::nearest, Interpolation::linear})
    add_interpolate(rows, shape, {.scale = scale, .mode = mode});
}

struct Patches {
  Shape shape;  // (N, C, H, W), or (C, H, W)
  RowsAndColumns kernel;
  UnfoldOptions options = {};
};

std::int64_t patches_along(std::int64_t size, std::int64_t kernel, std::int64_t dilation, std::int64_t padding,
                           std::int64_t stride) {
  return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

void add_unfold(std::vector<Row>& rows, const Patches& p) {
  const auto& [dilation, padding, stride] = p.options;
  bool has_batch = p.shape.rank() == 4;
  std::int64_t height = p.shape[-2], width = p.shape[-1], channels = p.shape[-3], batch = has_batch ? p.shape[0] : 1;
  std::int64_t down = patches_along(height, p.kernel.rows, dilation.rows, padding.rows, stride.rows);
  std::int64_t across = patches_along(width, p.kernel.columns, dilation.columns, padding.columns, stride.columns);
  std::int64_t patch = p.kernel.rows * p.kernel.columns;
  Shape columns = has_batch ? Shape{batch, channels * patch, down * across} : Shape{channels * patch, down * across};
  // Calls f(element of the images, element of the patches) for each pair that belongs together.
  auto for_each_pair = [=, options = p.options, kernel = p.kernel](auto f) {
    std::size_t place = 0;
    for_each_index({batch * channels, kernel.rows, kernel.columns, down, across}, [&](const Index& i) {
      std::int64_t y = i[3] * options.stride.rows + i[1] * options.dilation.rows - options.padding.rows;
      std::int64_t x = i[4] * options.stride.columns + i[2] * options.dilation.columns - options.padding.columns;
      if (y >= 0 && y < height && x >= 0 && x < width)
        f(static_cast<std::size_t>((i[0] * height + y) * width + x), place);
      ++place;
    });
  };
  std::string name = to_string(p.shape) + " in " + to_string(columns);
  auto pair = [](RowsAndColumns both) {
    return Attributes::Numbers{static_cast<double>(both.rows), static_cast<double>(both.columns)};
  };
  Attributes attributes{{"kernel", pair(p.kernel)},
                        {"dilation", pair(dilation)},
                        {"padding", pair(padding)},
                        {"stride", pair(stride)},
                        {"size", pair({height, width})}};
  rows.push_back({.name = "unfold" + name,
                  .run = [=](auto x) { return unfold(x[0], p.kernel, p.options); },
                  .inputs = {{p.shape}},
                  .reference =
                      [=](const Arrays& x) {
                        Array y{columns, std::vector<double>(static_cast<std::size_t>(columns.numel()))};
                        for_each_pair(
                            [&](std::size_t image, std::size_t place) { y.values[place] = x[0].values[image]; });
                        return y;
                      },
                  .ulps = 0,
                  .attributes = attributes});
  rows.push_back({.name = "fold" + name,
                  .run =
                      [=](auto x) {
                        return fold(x[0], {height, width}, p.kernel, p.options);
                      },
                  .inputs = {{columns}},
                  .reference =
                      [=](const Arrays& x) {
                        std::vector<double> nothing(static_cast<std::size_t>(p.shape.numel()));
                        Array y{p.shape, nothing, nothing};
                        for_each_pair([&](std::size_t image, std::size_t place) {
                          y.values[image] += x[0].values[place];
                          y.scales[image] += std::abs(x[0].values[place]);
                        });
                        return y;
                      },
                  // Half a unit for each sum.
                  .ulps = 0.5 * static_cast<double>(patch),
                  .attributes = attributes});
}

void add_rows(std::vector<Row>& rows) {
  add_to_size(rows, {2, 3, 5}, {8});
  add_to_size(rows, {1, 2, 7}, {3});
  add_to_size(rows, {1, 1, 1}, {4});
  add_to_size(rows, {0, 2, 3}, {4});
  add_to_size(rows, {1, 2, 4, 3}, {6, 5});
  add_to_size(rows, {2, 1, 5, 6}, {2, 1});
  add_to_size(rows, {1, 1, 2, 3, 2}, {3, 2, 4});
  add_to_size(rows, {1, 2, 20, 30}, {31, 17});
  for (double scale : {2.0, 0.6, 1.7}) add_by_scale(rows, {1, 2, 5, 4}, scale);
  add_unfold(rows, {{1, 2, 5, 4}, 2});
  add_unfold(rows, {{2, 4, 3}, {3, 2}, {.padding = {1, 2}, .stride = {2, 1}}});
  add_unfold(rows, {{1, 1, 6, 7}, {2, 3}, {.dilation = {3, 2}, .padding = {0, 1}}});
  add_unfold(rows, {{1, 1, 1, 1}, 1, {.padding = 2, .stride = 3}});
  add_unfold(rows, {{0, 2, 3, 3}, 2});
  add_unfold(rows, {{2, 3, 12, 9}, 3, {.padding = 1}});
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int rank : {1, 2, 3}) {
    Shape shape = random_shape(random, 2, 3), size = random_shape(random, rank, 9);
    for (int axis = 0; axis < rank; ++axis) shape.push_back(random_size(random, 1, 9));
    add_to_size(rows, shape, size);
  }
  for (int trial = 0; trial < 3; ++trial) {
    Shape shape = random_shape(random, 2, 3);
    for (int axis = 0; axis < 2; ++axis) shape.push_back(random_size(random, 4, 12));
    add_by_scale(rows, shape, 0.5 + 0.25 * static_cast<double>(random_size(random, 0, 8)));
    auto both = [&](std::int64_t low, std::int64_t high) {
      return RowsAndColumns(random_size(random, low, high), random_size(random, low, high));
    };
    add_unfold(rows, {shape, both(1, 2), {.dilation = both(1, 3), .padding = both(0, 2), .stride = both(1, 3)}});
  }
}

}  // namespace

const RowFamily resample_rows{add_rows, add_random_rows};

}  // namespace reel_test
