#include <algorithm>
#include <cmath>

#include "ops/table/table.h"

// Rows of products over axes, of diagonals and of grids.

namespace reel_test {

using namespace reel;

namespace {

Attributes::Numbers numbers_of(const Shape& axes) { return {axes.begin(), axes.end()}; }

std::size_t from_front(std::int64_t axis, const Shape& x) {
  return static_cast<std::size_t>(axis < 0 ? axis + x.rank() : axis);
}

// Axes of a and b that are summed over, pairwise.
struct Contraction {
  Shape a, b, axes_a, axes_b;
  bool counted = false;  // the last of a and the first of b
};

Row tensordot_row(const Contraction& c) {
  auto kept = [](const Shape& shape, const Shape& axes) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < static_cast<std::size_t>(shape.rank()); ++i)
      if (std::none_of(axes.begin(), axes.end(), [&](std::int64_t axis) { return from_front(axis, shape) == i; }))
        places.push_back(i);
    return places;
  };
  return {.name = "tensordot" + to_string(c.a) + to_string(c.b) + to_string(c.axes_a),
          .run =
              [c](auto x) {
                return c.counted ? tensordot(x[0], x[1], c.axes_a.rank()) : tensordot(x[0], x[1], c.axes_a, c.axes_b);
              },
          .inputs = {{c.a}, {c.b}},
          .reference =
              [c, kept](const Arrays& x) {
                std::vector<std::size_t> of_a = kept(c.a, c.axes_a), of_b = kept(c.b, c.axes_b);
                Shape shape, inner;
                for (std::size_t i : of_a) shape.push_back(c.a[static_cast<int>(i)]);
                for (std::size_t i : of_b) shape.push_back(c.b[static_cast<int>(i)]);
                for (std::int64_t axis : c.axes_a) inner.push_back(c.a[static_cast<int>(axis)]);
                Array scales = make(shape, [](const Index&) { return 0.0; });
                std::size_t next = 0;
                Array y = make(shape, [&](const Index& i) {
                  Index left(static_cast<std::size_t>(c.a.rank())), right(static_cast<std::size_t>(c.b.rank()));
                  std::size_t k = 0;
                  for (std::size_t place : of_a) left[place] = i[k++];
                  for (std::size_t place : of_b) right[place] = i[k++];
                  double sum = 0, size = 0;
                  for_each_index(inner, [&](const Index& j) {
                    for (std::size_t n = 0; n < j.size(); ++n) {
                      left[from_front(c.axes_a[static_cast<int>(n)], c.a)] = j[n];
                      right[from_front(c.axes_b[static_cast<int>(n)], c.b)] = j[n];
                    }
                    double term = at(x[0], left) * at(x[1], right);
                    sum += term;
                    size += std::abs(term);
                  });
                  scales.values[next++] = size;
                  return sum;
                });
                y.scales = scales.values;
                return y;
              },
          .ulps = 20,
          .dtypes = all_numbers,
          .reorders = true,
          .attributes = {{"axes_a", numbers_of(c.axes_a)}, {"axes_b", numbers_of(c.axes_b)}}};
}

Row kron_row(const Shape& a, const Shape& b) {
  return {.name = "kron" + to_string(a) + to_string(b),
          .run = [](auto x) { return kron(x[0], x[1]); },
          .inputs = {{a}, {b}},
          .reference =
              [=](const Arrays& x) {
                Shape shape, wide_b;
                int rank = std::max(a.rank(), b.rank());
                for (int i = 0; i < rank; ++i) {
                  std::int64_t of_a = i < rank - a.rank() ? 1 : a[i - rank + a.rank()];
                  wide_b.push_back(i < rank - b.rank() ? 1 : b[i - rank + b.rank()]);
                  shape.push_back(of_a * wide_b[i]);
                }
                return make(shape, [&](Index i) {
                  Index within = i;
                  for (std::size_t k = 0; k < i.size(); ++k) {
                    within[k] = i[k] % wide_b[static_cast<int>(k)];
                    i[k] /= wide_b[static_cast<int>(k)];
                  }
                  return at(x[0], i) * at(x[1], within);
                });
              },
          .dtypes = all_numbers};
}

Row cross_row(const Shape& a, const Shape& b, int axis) {
  return {.name = "cross" + to_string(a) + to_string(b) + " axis " + std::to_string(axis),
          .run = [=](auto x) { return cross(x[0], x[1], axis); },
          .inputs = {{a}, {b}},
          .reference =
              [=](const Arrays& x) {
                Shape shape = broadcast_all(x);
                std::size_t along = from_front(axis, shape);
                auto element = [&](const Array& of, Index i, std::int64_t further) {
                  i[along] = (i[along] + further) % 3;
                  return at(of, i);
                };
                Array y = make(shape, [&](const Index& i) {
                  return element(x[0], i, 1) * element(x[1], i, 2) - element(x[0], i, 2) * element(x[1], i, 1);
                });
                y.scales.assign(y.values.size(), 8);
                return y;
              },
          .ulps = 2,
          .dtypes = all_numbers,
          .half_roundings = 20,
          .attributes = {{"axis", {static_cast<double>(axis)}}}};
}

Attributes of_axes(const DiagonalAxes& axes) {
  return {{"diagonal", {static_cast<double>(axes.diagonal)}},
          {"first", {static_cast<double>(axes.first)}},
          {"second", {static_cast<double>(axes.second)}}};
}

std::string text_of(const DiagonalAxes& axes) {
  return " " + std::to_string(axes.diagonal) + " of axes " + std::to_string(axes.first) + " and " +
         std::to_string(axes.second);
}

Row diagonal_row(const Shape& x, const DiagonalAxes& axes) {
  return {.name = "diagonal" + to_string(x) + text_of(axes),
          .run = [=](auto in) { return diagonal(in[0], axes); },
          .inputs = {{x}},
          .reference =
              [=](const Arrays& in) {
                std::size_t first = from_front(axes.first, x), second = from_front(axes.second, x);
                std::int64_t below = std::max<std::int64_t>(-axes.diagonal, 0),
                             beside = std::max<std::int64_t>(axes.diagonal, 0);
                Shape shape;
                for (std::size_t i = 0; i < static_cast<std::size_t>(x.rank()); ++i)
                  if (i != first && i != second) shape.push_back(x[static_cast<int>(i)]);
                shape.push_back(std::max<std::int64_t>(
                    0, std::min(x[static_cast<int>(first)] - below, x[static_cast<int>(second)] - beside)));
                return make(shape, [&](const Index& i) {
                  Index from;
                  std::size_t next = 0;
                  for (std::size_t k = 0; k < static_cast<std::size_t>(x.rank()); ++k) {
                    if (k == first)
                      from.push_back(i.back() + below);
                    else if (k == second)
                      from.push_back(i.back() + beside);
                    else
                      from.push_back(i[next++]);
                  }
                  return at(in[0], from);
                });
              },
          .ulps = 0,
          .dtypes = all_dtypes,
          .attributes = of_axes(axes)};
}

Row diag_embed_row(const Shape& x, const DiagonalAxes& axes) {
  return {.name = "diag_embed" + to_string(x) + text_of(axes),
          .run = [=](auto in) { return diag_embed(in[0], axes); },
          .inputs = {{x}},
          .reference =
              [=](const Arrays& in) {
                Shape shape = x;
                shape.push_back(0);
                std::size_t first = from_front(axes.first, shape), second = from_front(axes.second, shape);
                std::int64_t size = x[-1] + std::abs(axes.diagonal);
                for (int i = 0, next = 0; i < shape.rank(); ++i) {
                  bool is_matrix = static_cast<std::size_t>(i) == first || static_cast<std::size_t>(i) == second;
                  shape[i] = is_matrix ? size : x[next++];
                }
                return make(shape, [&](const Index& i) {
                  if (i[second] - i[first] != axes.diagonal) return 0.0;
                  Index from;
                  for (std::size_t k = 0; k < i.size(); ++k)
                    if (k != first && k != second) from.push_back(i[k]);
                  from.push_back(std::min(i[first], i[second]));
                  return at(in[0], from);
                });
              },
          .ulps = 0,
          .dtypes = all_dtypes,
          .attributes = of_axes(axes)};
}

Row trace_row(const Shape& x) {
  return {.name = "trace" + to_string(x),
          .run = [](auto in) { return trace(in[0]); },
          .inputs = {{x}},
          .reference =
              [=](const Arrays& in) {
                Shape shape;
                for (int i = 0; i + 2 < x.rank(); ++i) shape.push_back(x[i]);
                std::vector<double> scales;
                Array y = make(shape, [&](Index i) {
                  double sum = 0, size = 0;
                  i.insert(i.end(), {0, 0});
                  for (std::int64_t k = 0; k < std::min(x[-2], x[-1]); ++k) {
                    i[i.size() - 2] = i.back() = k;
                    sum += at(in[0], i);
                    size += std::abs(at(in[0], i));
                  }
                  scales.push_back(size);
                  return sum;
                });
                y.scales = scales;
                return y;
              },
          .ulps = 2,
          .dtypes = all_dtypes,
          .reorders = true};
}

// Tensor k of the grid.
Row meshgrid_row(const std::vector<Shape>& shapes, std::size_t k, GridIndexing indexing) {
  std::vector<Input> inputs;
  for (const Shape& shape : shapes) inputs.push_back({shape});
  return {.name = "meshgrid of " + std::to_string(shapes.size()) + " part " + std::to_string(k),
          .run = [=](auto in) { return meshgrid(in, {.indexing = indexing})[k]; },
          .inputs = inputs,
          .reference =
              [=](const Arrays& in) {
                Shape shape;
                for (const Shape& one : shapes) shape.push_back(one.numel());
                auto axis = static_cast<int>(k);
                if (indexing == GridIndexing::xy && shapes.size() > 1) {
                  std::swap(shape[0], shape[1]);
                  if (axis < 2) axis = 1 - axis;
                }
                return make(shape, [&](const Index& i) {
                  return in[k].values[static_cast<std::size_t>(i[static_cast<std::size_t>(axis)])];
                });
              },
          .ulps = 0,
          .dtypes = all_dtypes,
          .attributes = {{"part", {static_cast<double>(k)}}, {"xy", {indexing == GridIndexing::xy ? 1.0 : 0.0}}}};
}

Row logspace_row(double start, double stop, std::int64_t count, double base, DType dtype) {
  return {
      .name = "logspace of " + std::to_string(count),
      // The input says on which device the numbers are made.
      .run =
          [=](auto in) {
            return logspace(start, stop, count, {.base = base, .dtype = dtype, .device = needed(in[0]).device()});
          },
      .inputs = {{{1}}},
      .reference =
          [=](const Arrays&) {
            return make({count}, [&](const Index& i) {
              double fraction = count > 1 ? static_cast<double>(i[0]) / static_cast<double>(count - 1) : 0;
              return std::pow(base, start + (stop - start) * fraction);
            });
          },
      .ulps = dtype == f64 ? 8.0 : 0.51,
      .dtypes = {dtype},
      .differentiable = false,
      .attributes = {{"start", {start}}, {"stop", {stop}}, {"count", {static_cast<double>(count)}}, {"base", {base}}}};
}

void add_rows(std::vector<Row>& rows) {
  for (const Contraction& c :
       {Contraction{{2, 3, 4}, {4, 2}, {2}, {0}, true}, Contraction{{2, 3, 4}, {3, 4, 2}, {1, 2}, {0, 1}, true},
        Contraction{{2, 3}, {2}, {}, {}, true}, Contraction{{2, 3, 4}, {4, 5, 2}, {0, 2}, {2, 0}},
        Contraction{{3}, {3}, {-1}, {0}}, Contraction{{0, 2}, {2, 3}, {1}, {0}}, Contraction{{2, 0}, {0, 3}, {1}, {0}}})
    rows.push_back(tensordot_row(c));
  for (const auto& [a, b] : std::initializer_list<std::pair<Shape, Shape>>{
           {{2, 3}, {3, 2}}, {{3}, {2}}, {{2}, {2, 2}}, {{2, 1, 2}, {2}}, {{}, {3}}, {{0, 2}, {2, 2}}})
    rows.push_back(kron_row(a, b));
  rows.push_back(cross_row({3}, {3}, 0));
  rows.push_back(cross_row({4, 3}, {3}, -1));
  rows.push_back(cross_row({3, 4}, {3, 1}, 0));
  rows.push_back(cross_row({2, 1, 3}, {4, 3}, 2));
  rows.push_back(cross_row({0, 3}, {3}, 1));
  for (std::int64_t k : {0, 1, -2, 5}) {
    rows.push_back(diagonal_row({3, 4}, {.diagonal = k}));
    rows.push_back(diagonal_row({2, 3, 4}, {.diagonal = k, .first = 0, .second = 1}));
    rows.push_back(diagonal_row({2, 3, 2, 3}, {.diagonal = k, .first = 3, .second = 1}));
    rows.push_back(diag_embed_row({3}, {.diagonal = k}));
    rows.push_back(diag_embed_row({2, 3}, {.diagonal = k, .first = 0, .second = 2}));
    rows.push_back(diag_embed_row({2, 2, 2}, {.diagonal = k, .first = -1, .second = 1}));
  }
  rows.push_back(diagonal_row({0, 3, 3}, {}));
  rows.push_back(diagonal_row({3, 0}, {.diagonal = -1}));
  rows.push_back(diag_embed_row({2, 0}, {.diagonal = 1}));
  for (const Shape& shape : {Shape{3, 3}, Shape{2, 4}, Shape{2, 3, 2}, Shape{0, 0}, Shape{0, 2, 2}})
    rows.push_back(trace_row(shape));
  for (GridIndexing indexing : {GridIndexing::ij, GridIndexing::xy}) {
    for (std::size_t k : {0, 1, 2}) rows.push_back(meshgrid_row({{2}, {3}, {4}}, k, indexing));
    rows.push_back(meshgrid_row({{3}}, 0, indexing));
    rows.push_back(meshgrid_row({{3}, {}}, 1, indexing));
    rows.push_back(meshgrid_row({{0}, {2}}, 1, indexing));
  }
  for (DType dtype : {f32, f64, bf16}) {
    rows.push_back(logspace_row(-2, 3, 11, 10, dtype));
    rows.push_back(logspace_row(1, 0.5, 4, 2, dtype));
    rows.push_back(logspace_row(2, 5, 1, 2, dtype));
    rows.push_back(logspace_row(2, 5, 0, 2, dtype));
  }
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int repeat = 0; repeat < 3; ++repeat) {
    Shape x = random_shape(random, 3, 9), y = random_shape(random, 2, 9);
    rows.push_back(tensordot_row({x, {y[0], x[2], x[0]}, {0, 2}, {2, 1}}));
    rows.push_back(kron_row({x[0], x[1]}, y));
    rows.push_back(cross_row({x[0], 3}, {x[0], 3}, 1));
    DiagonalAxes axes{.diagonal = random_size(random, -2, 2), .first = repeat, .second = (repeat + 1) % 3};
    rows.push_back(diagonal_row(x, axes));
    rows.push_back(diag_embed_row(y, axes));
    rows.push_back(trace_row(y));
    rows.push_back(meshgrid_row({{x[0]}, {x[1]}, {x[2]}}, static_cast<std::size_t>(repeat),
                                repeat == 1 ? GridIndexing::xy : GridIndexing::ij));
    rows.push_back(logspace_row(-1, 2, random_size(random), 10, f32));
  }
}

}  // namespace

const RowFamily products_rows{add_rows, add_random_rows};

}  // namespace reel_test
