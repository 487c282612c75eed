#include <algorithm>
#include <cmath>

#include "core/philox.h"
#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

double norm_of(const std::vector<double>& values, double p) {
  double sum = 0, largest = 0;
  for (double value : values) {
    sum += p == 0 ? double(value != 0) : std::pow(std::abs(value), p);
    largest = std::max(largest, std::abs(value));
  }
  return std::isinf(p) ? largest : p == 0 ? sum : std::pow(sum, 1 / p);
}

// The row of x through an element along an axis that `index` has.
std::vector<double> line_of(const Array& x, Index index, int axis) {
  std::vector<double> values;
  auto place = static_cast<std::size_t>(axis < 0 ? axis + x.shape.rank() : axis);
  for (std::int64_t i = 0; i < x.shape[axis]; ++i) {
    index[place] = i;
    values.push_back(at(x, index));
  }
  return values;
}

std::string of_order(double p) { return " of order " + std::to_string(p); }

void add_cosine_similarity(std::vector<Row>& rows, const Shape& a, const Shape& b, int axis) {
  rows.push_back({.name = "cosine_similarity" + to_string(a) + to_string(b) + " along " + std::to_string(axis),
                  .run = [=](auto x) { return cosine_similarity(x[0], x[1], {.axis = axis}); },
                  .inputs = {{a, Fill::nonzero}, {b, Fill::nonzero}},
                  .reference =
                      [=](const Arrays& x) {
                        Shape shape = broadcast_all(x);
                        auto whole = [&](const Array& y) {
                          return make(shape, [&](const Index& i) { return at(y, i); });
                        };
                        Array left = whole(x[0]), right = whole(x[1]);
                        int place = axis < 0 ? axis + shape.rank() : axis;
                        Shape heads;
                        for (int k = 0; k < shape.rank(); ++k)
                          if (k != place) heads.push_back(shape[k]);
                        Array y = make(heads, [&](Index i) {
                          i.insert(i.begin() + place, 0);
                          std::vector<double> u = line_of(left, i, place), v = line_of(right, i, place);
                          double product = 0;
                          for (std::size_t j = 0; j < u.size(); ++j) product += u[j] * v[j];
                          return product / std::max(norm_of(u, 2), 1e-8) / std::max(norm_of(v, 2), 1e-8);
                        });
                        y.scales.assign(y.values.size(), 1);
                        return y;
                      },
                  .ulps = 6,
                  .reorders = true,
                  .attributes = {{"axis", {static_cast<double>(axis)}}}});
}

void add_pairwise_distance(std::vector<Row>& rows, const Shape& a, const Shape& b, double p, bool keepdims = false) {
  rows.push_back({.name = "pairwise_distance" + to_string(a) + to_string(b) + of_order(p),
                  .run = [=](auto x) { return pairwise_distance(x[0], x[1], {.p = p, .keepdims = keepdims}); },
                  .inputs = {{a}, {b}},
                  .reference =
                      [=](const Arrays& x) {
                        Shape shape = broadcast_all(x), heads = shape;
                        heads[-1] = 1;
                        Array away = make(shape, [&](const Index& i) { return at(x[0], i) - at(x[1], i) + 1e-6; });
                        Array y = make(heads, [&](const Index& i) { return norm_of(line_of(away, i, -1), p); });
                        if (!keepdims) y.shape = Shape(std::span(shape.begin(), shape.end() - 1));
                        // Differences of numbers up to 4.
                        for (double value : y.values) y.scales.push_back(value + 4);
                        return y;
                      },
                  .ulps = 6,
                  .reorders = true,
                  .attributes = {{"p", {p}}, {"keepdims", {double(keepdims)}}}});
}

void add_cdist(std::vector<Row>& rows, const Shape& a, const Shape& b, double p) {
  rows.push_back({.name = "cdist" + to_string(a) + to_string(b) + of_order(p),
                  .run = [=](auto x) { return cdist(x[0], x[1], {.p = p}); },
                  .inputs = {{a}, {b}},
                  .reference =
                      [=](const Arrays& x) {
                        Shape left(std::span(a.begin(), a.end() - 2)), right(std::span(b.begin(), b.end() - 2)), shape;
                        broadcast(left, right, shape);
                        shape.push_back(a[-2]);
                        shape.push_back(b[-2]);
                        Array y = make(shape, [&](const Index& i) {
                          std::vector<double> away;
                          for (std::int64_t k = 0; k < a[-1]; ++k) {
                            Index first(i.begin(), i.end() - 2), second = first;
                            first.insert(first.end(), {*(i.end() - 2), k});
                            second.insert(second.end(), {i.back(), k});
                            away.push_back(at(x[0], first) - at(x[1], second));
                          }
                          return norm_of(away, p);
                        });
                        for (double value : y.values) y.scales.push_back(value + 4);
                        return y;
                      },
                  // The matrix product gives the square with some roundings; the distances are mostly above 1.
                  .ulps = 8 + static_cast<double>(a[-1]),
                  .reorders = true,
                  .attributes = {{"p", {p}}}});
}

void add_normalize(std::vector<Row>& rows, const Shape& shape, double p, int axis) {
  rows.push_back({.name = "normalize" + to_string(shape) + of_order(p) + " along " + std::to_string(axis),
                  .run = [=](auto x) { return normalize(x[0], {.p = p, .axis = axis}); },
                  .inputs = {{shape, Fill::nonzero}},
                  .reference =
                      [=](const Arrays& x) {
                        return make(shape, [&](const Index& i) {
                          return at(x[0], i) / std::max(norm_of(line_of(x[0], i, axis), p), 1e-12);
                        });
                      },
                  .ulps = 4 + static_cast<double>(shape[axis]) / 4,
                  .reorders = true,
                  .attributes = {{"p", {p}}, {"axis", {static_cast<double>(axis)}}}});
}

void add_local_response_norm(std::vector<Row>& rows, const Shape& shape, std::int64_t size) {
  rows.push_back({.name = "local_response_norm" + to_string(shape) + " of " + std::to_string(size),
                  .run = [=](auto x) { return local_response_norm(x[0], size, {.alpha = 0.5, .beta = 0.75, .k = 2}); },
                  .inputs = {{shape}},
                  .reference =
                      [=](const Arrays& x) {
                        return make(shape, [&](const Index& i) {
                          double sum = 0;
                          for (std::int64_t c = i[1] - size / 2; c <= i[1] + (size - 1) / 2; ++c) {
                            Index other = i;
                            other[1] = c;
                            if (c >= 0 && c < shape[1]) sum += at(x[0], other) * at(x[0], other);
                          }
                          return at(x[0], i) / std::pow(2 + 0.5 / static_cast<double>(size) * sum, 0.75);
                        });
                      },
                  .ulps = 6,
                  .attributes = {{"size", {static_cast<double>(size)}}}});
}

void add_pixel_shuffle(std::vector<Row>& rows, const Shape& shape, std::int64_t factor, bool inverse) {
  Shape result = shape;
  std::int64_t square = factor * factor;
  result[-3] = inverse ? shape[-3] * square : shape[-3] / square;
  for (int axis : {-2, -1}) result[axis] = inverse ? shape[axis] / factor : shape[axis] * factor;
  rows.push_back(
      {.name = (inverse ? "pixel_unshuffle" : "pixel_shuffle") + to_string(shape) + " by " + std::to_string(factor),
       .run = [=](auto x) { return (inverse ? pixel_unshuffle : pixel_shuffle)(x[0], factor); },
       .inputs = {{shape}},
       .reference =
           [=](const Arrays& x) {
             return make(result, [&](Index i) {
               std::int64_t &c = *(i.end() - 3), &h = *(i.end() - 2), &w = i.back();
               if (inverse) {
                 std::int64_t rest = c % square;
                 c /= square;
                 h = h * factor + rest / factor;
                 w = w * factor + rest % factor;
               } else {
                 c = c * square + h % factor * factor + w % factor;
                 h /= factor;
                 w /= factor;
               }
               return at(x[0], i);
             });
           },
       .ulps = 0,
       .dtypes = all_dtypes,
       .attributes = {{"factor", {static_cast<double>(factor)}}}});
}

void add_dropout2d(std::vector<Row>& rows, const Shape& shape, double probability) {
  constexpr std::uint64_t seed = 77;
  rows.push_back({.name = "dropout2d of " + std::to_string(probability) + to_string(shape),
                  .run =
                      [=](auto x) {
                        Generator generator(seed);
                        return dropout2d(x[0], {.probability = probability, .generator = &generator});
                      },
                  .inputs = {{shape}},
                  .reference =
                      [=](const Arrays& x) {
                        std::uint64_t element = 0, pixels = static_cast<std::uint64_t>(shape[-1] * shape[-2]);
                        return make(shape, [&](const Index& i) {
                          std::uint32_t word = detail::philox(seed, 0, element++ / pixels).word[0];
                          return word < std::ceil(probability * 0x1p32) ? 0 : at(x[0], i) / (1 - probability);
                        });
                      },
                  .ulps = 1});
}

double mirrored(double p, double low, double span) {
  if (span == 0) return 0;
  double away = std::abs(p - low), rest = std::fmod(away, span);
  return (std::fmod(std::floor(away / span), 2) == 0 ? rest : span - rest) + low;
}

double position(double c, std::int64_t size, const GridSampleOptions& options) {
  auto count = static_cast<double>(size);
  bool align = options.align_corners;
  double p = align ? (c + 1) / 2 * (count - 1) : ((c + 1) * count - 1) / 2;
  if (options.padding == GridPadding::reflection) p = mirrored(p, align ? 0 : -0.5, align ? count - 1 : count);
  return options.padding == GridPadding::zeros ? p : std::clamp(p, 0.0, count - 1);
}

void add_grid_sample(std::vector<Row>& rows, const Shape& x_shape, const Shape& grid,
                     const GridSampleOptions& options) {
  Shape result = grid;
  result[1] = x_shape[1];
  for (int axis = 2; axis < grid.rank(); ++axis) result[axis] = grid[axis - 1];
  bool nearest = options.mode == Interpolation::nearest;
  rows.push_back(
      {.name = "grid_sample" + to_string(x_shape) + to_string(grid) + (nearest ? " nearest" : " linear") + " padding " +
               std::to_string(static_cast<int>(options.padding)) + (options.align_corners ? " aligned" : ""),
       .run = [=](auto x) { return grid_sample(x[0], x[1], options); },
       .inputs = {{x_shape}, {grid}},
       .reference =
           [=](const Arrays& x) {
             Array y = make(result, [&](const Index& i) {
               Index point{i[0]}, pixel{i[0], i[1]};
               point.insert(point.end(), i.begin() + 2, i.end());
               std::vector<double> p;
               for (int axis = 2; axis < x_shape.rank(); ++axis) {
                 point.push_back(x_shape.rank() - 1 - axis);
                 p.push_back(position(at(x[1], point), x_shape[axis], options));
                 point.pop_back();
               }
               double sum = 0;
               Shape inside(std::span(x_shape.begin() + 2, x_shape.end()));
               for_each_index(inside, [&](const Index& place) {
                 double weight = 1;
                 for (std::size_t k = 0; k < place.size(); ++k) {
                   double away = std::abs((nearest ? std::nearbyint(p[k]) : p[k]) - static_cast<double>(place[k]));
                   weight *= std::max(0.0, 1 - away);
                 }
                 Index at_place = pixel;
                 at_place.insert(at_place.end(), place.begin(), place.end());
                 if (weight != 0) sum += weight * at(x[0], at_place);
               });
               return sum;
             });
             y.scales.assign(y.values.size(), 2);
             return y;
           },
       // The error of a position is half a unit of its size for each of three roundings.
       .ulps = nearest ? 0.5 : 40,
       .differentiable = !nearest,
       .attributes = {{"mode", {static_cast<double>(nearest)}},
                      {"padding", {static_cast<double>(options.padding)}},
                      {"align_corners", {double(options.align_corners)}}}});
}

void add_affine_grid(std::vector<Row>& rows, std::int64_t count, const Shape& size, bool align) {
  int spatial = size.rank();
  Shape theta{count, spatial, spatial + 1}, result{count};
  Attributes::Numbers sizes;
  for (std::int64_t each : size) {
    result.push_back(each);
    sizes.push_back(static_cast<double>(each));
  }
  result.push_back(spatial);
  rows.push_back({.name = "affine_grid" + to_string(theta) + to_string(size) + (align ? " aligned" : ""),
                  .run = [=](auto x) { return affine_grid(x[0], size, {.align_corners = align}); },
                  .inputs = {{theta}},
                  .reference =
                      [=](const Arrays& x) {
                        Array y = make(result, [&](const Index& i) {
                          double sum = at(x[0], {i[0], i.back(), spatial});
                          for (int k = 0; k < spatial; ++k) {
                            auto n = static_cast<double>(size[spatial - 1 - k]);
                            auto place = static_cast<double>(i[static_cast<std::size_t>(spatial - k)]);
                            double c = align ? (n > 1 ? 2 * place / (n - 1) - 1 : 0) : (2 * place + 1) / n - 1;
                            sum += c * at(x[0], {i[0], i.back(), k});
                          }
                          return sum;
                        });
                        y.scales.assign(y.values.size(), 2);
                        return y;
                      },
                  .ulps = 8,
                  .attributes = {{"size", sizes}, {"align_corners", {double(align)}}}});
}

void add_rows(std::vector<Row>& rows) {
  add_cosine_similarity(rows, {5}, {5}, 0);
  add_cosine_similarity(rows, {3, 4}, {3, 4}, 1);
  add_cosine_similarity(rows, {2, 1, 4}, {3, 1}, 1);
  add_cosine_similarity(rows, {0, 3}, {0, 3}, -1);
  for (double p : {2.0, 1.0, 3.0, static_cast<double>(INFINITY)}) {
    add_pairwise_distance(rows, {3, 4}, {3, 4}, p);
    add_cdist(rows, {3, 4}, {2, 4}, p);
    add_cdist(rows, {3, 1}, {2, 1}, p);
    add_normalize(rows, {3, 4}, p, 1);
  }
  add_pairwise_distance(rows, {5}, {5}, 2);
  add_pairwise_distance(rows, {2, 1, 3}, {4, 3}, 2, true);
  add_pairwise_distance(rows, {0, 3}, {0, 3}, 2);
  add_cdist(rows, {2, 3, 4}, {1, 5, 4}, 2);
  add_cdist(rows, {3, 4}, {27, 4}, 2);
  add_cdist(rows, {2, 30, 3}, {28, 3}, 2);
  add_cdist(rows, {0, 3}, {2, 3}, 2);
  add_cdist(rows, {30, 3}, {0, 3}, 2);
  add_cdist(rows, {2, 0}, {3, 0}, 2);
  add_normalize(rows, {2, 3, 5}, 2, -1);
  add_normalize(rows, {5}, 2, 0);
  add_normalize(rows, {0, 3}, 2, 1);
  add_normalize(rows, {3, 0}, 2, 1);
  for (std::int64_t size : {1, 2, 5, 40}) add_local_response_norm(rows, {2, 6, 3}, size);
  add_local_response_norm(rows, {0, 2, 3, 2}, 3);
  for (bool inverse : {false, true}) {
    add_pixel_shuffle(rows, {8, 6, 4}, 2, inverse);
    add_pixel_shuffle(rows, {2, 9, 3, 6}, 3, inverse);
    add_pixel_shuffle(rows, {2, 1, 4, 2, 2}, 1, inverse);
    add_pixel_shuffle(rows, {0, 4, 2, 2}, 2, inverse);
  }
  for (double probability : {0.0, 0.3, 1.0}) {
    add_dropout2d(rows, {3, 4, 2, 3}, probability);
    add_dropout2d(rows, {5, 2, 3}, probability);
  }
  add_dropout2d(rows, {0, 4, 2, 3}, 0.5);
  for (Interpolation mode : {Interpolation::linear, Interpolation::nearest})
    for (GridPadding padding : {GridPadding::zeros, GridPadding::border, GridPadding::reflection})
      for (bool align : {false, true}) {
        add_grid_sample(rows, {2, 3, 4, 5}, {2, 3, 2, 2}, {mode, padding, align});
        add_grid_sample(rows, {1, 2, 3, 2, 4}, {1, 2, 1, 3, 3}, {mode, padding, align});
      }
  add_grid_sample(rows, {1, 2, 1, 1}, {1, 2, 2, 2}, {.padding = GridPadding::reflection, .align_corners = true});
  add_grid_sample(rows, {0, 2, 3, 3}, {0, 2, 2, 2}, {});
  add_grid_sample(rows, {2, 2, 3, 3}, {2, 0, 2, 2}, {});
  for (bool align : {false, true}) {
    add_affine_grid(rows, 2, {3, 4}, align);
    add_affine_grid(rows, 1, {1, 5}, align);
    add_affine_grid(rows, 2, {2, 3, 2}, align);
    add_affine_grid(rows, 0, {2, 3}, align);
  }
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int trial = 0; trial < 3; ++trial) {
    Shape shape = random_shape(random, 2, 30);
    add_cosine_similarity(rows, shape, shape, trial == 0 ? 0 : 1);
    add_pairwise_distance(rows, shape, shape, trial + 1);
    add_cdist(rows, shape, {random_size(random), shape[1]}, trial + 1);
    add_normalize(rows, shape, trial + 1, trial == 0 ? 0 : 1);
    add_local_response_norm(rows, random_shape(random, 3, 12), random_size(random, 1, 6));
    std::int64_t factor = random_size(random, 1, 3), height = random_size(random, 1, 5) * factor;
    Shape image{2, random_size(random, 1, 3) * factor * factor, height, random_size(random, 1, 5) * factor};
    for (bool inverse : {false, true}) add_pixel_shuffle(rows, image, factor, inverse);
    for (Interpolation mode : {Interpolation::linear, Interpolation::nearest})
      for (bool align : {false, true})
        add_grid_sample(rows, {2, 2, random_size(random, 2, 9), random_size(random, 2, 9)}, {2, 3, 4, 2},
                        {mode, static_cast<GridPadding>(trial), align});
    add_affine_grid(rows, 2, {random_size(random, 2, 9), random_size(random, 2, 9)}, trial == 0);
  }
}

}  // namespace

const RowFamily functional_rows{add_rows, add_random_rows};

}  // namespace reel_test
